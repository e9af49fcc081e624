"""``plaita test``: saved cases, run and reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import EXAMPLES, Shell

FLOW = """\
flow_id: shop
metadata: {imports: [nodes.py]}
inputType: {type: object, required: [amount], properties: {amount: {type: number}}}
nodes:
  - {id: begin, type: start, next: pay}
  - {id: pay, type: pay, amount: $INPUT.amount, next: ask}
  - {id: ask, type: event, event_type: sent, subscription_timeout: 3600, next: done}
  - {id: done, type: end, output: {paid: $NODE.pay, sent: $NODE.ask.status}}
"""
NODES = """\
from typing import Any, ClassVar
from plaita import Node

class Pay(Node):
    node_type: ClassVar[str] = "pay"
    amount: Any

    def execute(self, execution):
        return {"real": execution.evaluate(self.amount)}
"""
CASES = """\
given: {input: {amount: 12}}
mocks:
  pay: {returns: {ok: true}}
cases:
  - name: sent and paid
    steps: [{waits: sent}, {event: {type: sent, data: {n: 1}}}]
    expect: {output: {paid: {ok: true}, sent: completed}, calls: {pay: [{amount: 12}]}, path: [begin, pay, ask, done]}
    crash: true
  - name: never sent
    steps: [{advance: PT1H}]
    expect: {contains: {sent: timeout}, status: completed}
"""


@pytest.fixture
def shop(shell: Shell) -> Shell:
    shell.write("shop.yaml", FLOW)
    shell.write("nodes.py", NODES)
    shell.write("shop.cases.yaml", CASES)
    return shell


def case(**parts: Any) -> str:
    """One case as JSON, which is YAML as well."""
    return json.dumps({"name": "one", "given": {"input": {"amount": 12}}, "mocks": {"pay": {"returns": 1}}} | parts)


def test_the_cases_beside_a_flow_run_one_line_each(shop: Shell) -> None:
    done = shop.plaita("test shop.yaml")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "ok      sent and paid  survives 13 runs with crashes",
        "ok      never sent",
        "2 cases: all ok",
    ]
    assert ".plaita" not in shop.files()


def test_a_name_chooses_cases_and_a_name_of_none_is_refused(shop: Shell) -> None:
    assert shop.plaita("test shop.yaml -k NEVER").out.splitlines() == ["ok      never sent", "1 case: all ok"]
    done = shop.plaita("test shop.yaml -k nobody")
    assert (done.code, done.out) == (2, "")
    assert "no case has 'nobody' in its name: sent and paid; never sent" in done.err


def test_a_failing_case_shows_the_difference_its_place_and_where_the_run_is(shop: Shell) -> None:
    shop.write("bad.yaml", case(expect={"output": {"paid": 2, "sent": "timeout"}}, steps=[{"advance": "PT1H"}]))
    done = shop.plaita("test shop.yaml bad.yaml")
    assert done.code == 1
    assert done.out.splitlines() == [
        "failed  one",
        "  bad.yaml:1",
        "  output: is not as expected",
        "      {",
        '    -   "paid": 2,',
        '    +   "paid": 1,',
        '        "sent": "timeout"',
        "      }",
        '  the run completed with {"paid": 1, "sent": "timeout"}',
        "1 case: 1 failed",
    ]


UNMET: dict[str, tuple[dict[str, Any], str]] = {
    "a status": ({"expect": {"status": "completed"}}, 'status: is not as expected\n    - "completed"'),
    "an output": ({"expect": {"output": 1}}, "output: the run has not completed\n  the run waits for"),
    "a part": ({"expect": {"contains": {"sent": "x"}}, "steps": ["jump"]}, "the output does not contain it"),
    "an error": ({"expect": {"error": {"code": 1}}}, "error: the run did not fail"),
    "a code": (
        {"expect": {"error": {"code": "E2", "message": "funds"}},
         "mocks": {"pay": {"raises": {"kind": "error_result", "code": "E1", "message": "no"}}}},
        'error.code: is "E1", not "E2"\n  error.message: \'no\' does not contain \'funds\'',
    ),
    "a wait": ({"expect": {"waits": "approval"}}, "waits: it does not wait for 'approval'"),
    "no wait": ({"expect": {"waits": []}}, "waits: it also waits at ask"),
    "a path": ({"expect": {"path": ["begin", "ask"]}}, "path: is not as expected"),
    "a number of calls": ({"expect": {"calls": {"pay": 2}}}, "calls of pay: is not as expected\n    - 2\n    + 1"),
    "a step": (
        {"steps": [{"waits": "ask"}, {"approve": "ann"}], "expect": {"waits": "ask"}},
        "step 2 (approve): there is no open task",
    ),
    "an input": ({"given": {"input": {}}, "expect": {"output": 1}}, "start: the input is refused: $.amount"),
    "a mock": ({"mocks": {}, "expect": {"waits": "ask"}}, "start: pay (pay) is performed, and there is no mock for it"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "told"), UNMET.values(), ids=list(UNMET))
def test_whatever_is_not_as_expected_is_told(shop: Shell, parts: dict[str, Any], told: str) -> None:
    shop.write("one.json", case(**parts))
    done = shop.plaita("test shop.yaml one.json")
    assert done.code == 1
    assert told in done.out


MET: dict[str, dict[str, Any]] = {
    "a refused input": {"given": {"input": {}}, "expect": {"error": {"kind": "input_error", "message": "amount"}}},
    "a failure after retries": {
        "mocks": {"pay": {"in_turn": [{"raises": "busy"}, {"returns": 3, "after": "PT5S"}]}},
        "steps": [{"event": "sent"}],
        "expect": {"contains": {"paid": 3}, "calls": {"pay": 2}},
    },
    "a permanent failure": {
        "mocks": {"pay": {"raises": {"message": "no money", "retryable": False}}},
        "expect": {"error": {"kind": "node_error", "message": "no money"}, "calls": {"pay": 1}},
    },
    "a cancelled run": {"steps": ["cancel"], "expect": {"status": "cancelled"}},
    "an answer by hand": {"steps": [{"resume": {"data": 1, "at": "ask"}}], "expect": {"status": "completed"}},
    "a node as it is": {
        "mocks": {},
        "real": ["pay"],
        "steps": ["jump"],
        "expect": {"contains": {"paid": {"real": 12}}},
    },
    "another try": {
        "mocks": {"pay": {"in_turn": [{"raises": {"message": "no", "retryable": False}}, {"returns": 1}]}},
        "steps": ["retry", {"advance": {"hours": 1}}],
        "expect": {"contains": {"paid": 1}},
    },
}


@pytest.mark.parametrize("parts", MET.values(), ids=list(MET))
def test_a_case_that_is_met_is_ok(shop: Shell, parts: dict[str, Any]) -> None:
    shop.write("one.json", case(**parts))
    done = shop.plaita("test shop.yaml one.json")
    assert done.code == 0, done.out + done.err


def test_a_file_of_cases_with_mistakes_is_told_line_by_line_and_nothing_runs(shop: Shell) -> None:
    shop.write(
        "bad.yaml",
        """\
moks: {}
cases:
  - name: one
    mocks: {pya: {returns: 1}, begin: {returns: 1}, pay: {return: 1}, ask: {hangs: true, returns: 2}}
    steps: [aprove, {advance: soon}, {advance: PT1H, jump: }]
    expect: {outptu: 1, calls: {pay: many}}
  - name: one
    given: {now: someday}
""",
    )
    done = shop.plaita("test shop.yaml bad.yaml")
    assert (done.code, done.out) == (2, "")
    for told in (
        "line 1, column 7: $.moks: 'moks' is not a known key (did you mean 'mocks'?)",
        "line 4, column 18: $.cases[0].mocks.pya: the flow has no node 'pya' (did you mean 'pay'?)",
        "$.cases[0].mocks.begin: node 'begin' (start) can have no mock",
        "$.cases[0].mocks.pay.return: 'return' is not a known key (did you mean 'returns'?)",
        "$.cases[0].mocks.ask: a mock says one of returns, raises, in_turn and hangs, not 2",
        "line 5, column 13: $.cases[0].steps[0].aprove: 'aprove' is no step (did you mean 'approve'?)",
        "$.cases[0].steps[1].advance: 'soon' is not a duration",
        "$.cases[0].steps[2]: a step says one thing, not 2",
        "line 6, column 22: $.cases[0].expect.outptu: 'outptu' is not a known key (did you mean 'output'?)",
        "$.cases[0].expect.calls.pay: calls are a list of what each was given, or their number",
        "$.cases[1]: a case needs 'expect'",
        "$.cases[1].name: there are two cases called 'one'",
        "$.cases[1].given.now: 'someday' is no time",
    ):
        assert told in done.err, done.err


def test_cases_in_a_folder_beside_the_flow_are_found_unless_they_name_another_one(shop: Shell) -> None:
    (shop.folder / "shop.cases.yaml").unlink()
    (shop.folder / "cases").mkdir()
    shop.write("cases/a.yaml", case(expect={"waits": "ask"}))
    shop.write("cases/b.yaml", case(name="two", flow="../shop.yaml", expect={"waits": "ask"}))
    shop.write("cases/c.yaml", case(name="three", flow="../other.yaml", expect={"waits": "ask"}))
    assert shop.plaita("test shop.yaml").out.splitlines() == ["ok      one", "ok      two", "2 cases: all ok"]


def test_a_flow_without_cases_says_where_to_write_them(shop: Shell) -> None:
    (shop.folder / "shop.cases.yaml").unlink()
    done = shop.plaita("test shop.yaml")
    assert done.code == 4
    assert "there are no cases of shop.yaml" in done.err
    assert "write shop.cases.yaml" in done.err


def test_a_report_as_json_has_a_stable_shape(shop: Shell) -> None:
    shop.write("one.json", case(expect={"status": "error"}))
    done = shop.plaita("test shop.yaml shop.cases.yaml one.json --json")
    assert done.code == 1
    assert done.json["next"] is None
    assert done.json["items"][0] == {
        "name": "sent and paid", "file": "shop.cases.yaml", "line": 5, "ok": True, "findings": [], "state": None,
        "place": None, "crash": {"settles": 3, "worlds": 13, "repeated": 2},
    }  # fmt: skip
    assert done.json["items"][2]["findings"] == [
        {"what": "status", "message": "is not as expected", "difference": ['- "error"', '+ "suspended"']}
    ]
    assert done.json["items"][2]["state"].startswith("the run waits for")


def test_a_flow_that_does_not_survive_is_shown_with_the_command_that_repeats_it(shop: Shell) -> None:
    shop.write("shop.yaml", FLOW.replace("sent: $NODE.ask.status", "at: $F.now()"))
    shop.write("one.json", case(steps=["jump"], expect={"contains": {"paid": 1}}, crash=True))
    done = shop.plaita("test shop.yaml one.json")
    assert done.code == 1
    told = "crash: the flow is not the same when the process is killed before settle 1 of 3 (pay begins)"
    assert told in done.out
    command = "plaita test shop.yaml one.json -k one --place before-1"
    assert f"to repeat it: {command}" in done.out
    assert "is killed before settle 1" in shop.plaita(command.removeprefix("plaita ")).out


@pytest.mark.parametrize("flow", ["expense.yaml", "agent_loop.yaml"])
def test_the_cases_of_the_examples_pass(shell: Shell, flow: str) -> None:
    done = shell.plaita(f"test {EXAMPLES / flow}")
    assert done.code == 0, done.out + done.err


def test_every_yaml_example_has_cases() -> None:
    flows = {p.name for p in Path(EXAMPLES).glob("*.yaml") if ".cases." not in p.name}
    assert {f"{Path(name).stem}.cases.yaml" for name in flows} <= {p.name for p in Path(EXAMPLES).glob("*.yaml")}
