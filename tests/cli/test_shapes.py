"""JSON shapes, exit codes and the reading of inputs."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing

import pytest
import typer

from plaita.cli.main import COMMANDS, build
from tests.cli.shell import EXAMPLES, Shell

pytestmark = pytest.mark.timeout(60)

EXPENSE = EXAMPLES / "expense.yaml"
ECHO = """\
flow_id: echo
inputType:
  type: object
  properties:
    text: {type: string}
    count: {type: integer}
    inner: {type: object, properties: {name: {type: string}}}
nodes:
  - {id: s, type: start, next: e}
  - {id: e, type: end, output: $INPUT}
"""
MINE = """\
from plaita import Node

class Mine(Node):
    node_type = "mine"

    def execute(self, execution):
        return 1
"""
EXECUTION = {
    "execution_id", "flow_id", "flow_version", "status", "output", "error", "waits", "start_time", "end_time",
}  # fmt: skip
TASK = {
    "task_id", "execution_id", "flow_id", "node", "title", "content", "form", "approvers", "strategy", "votes",
    "deadline", "status",
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("-i text=5", {"text": "5"}),
        ("-i count=5", {"count": 5}),
        ("-i other=5", {"other": 5}),
        ("-i other=five", {"other": "five"}),
        ("-i other=", {"other": ""}),
        ("-i 'other={\"a\": [1, null]}'", {"other": {"a": [1, None]}}),
        ("-i inner.name=7 -i inner.age=7", {"inner": {"name": "7", "age": 7}}),
        ("-i text=@note.txt", {"text": "a note"}),
        ("--input in.json -i count=2", {"count": 2, "text": "x"}),
        ("--input in.yaml", {"count": 3}),
        ("--input -", {"count": 4}),
    ],
)
def test_an_input_is_json_when_it_fits_its_type_and_text_otherwise(shell: Shell, line: str, expected: object) -> None:
    shell.write("echo.yaml", ECHO)
    shell.write("note.txt", "a note")
    shell.write("in.json", '{"count": 1, "text": "x"}')
    shell.write("in.yaml", "count: 3\n")
    assert shell.plaita(f"run echo.yaml --once {line}", stdin='{"count": 4}').json == expected


UNDECLARED = "note: the flow declares no input 'cuont' (did you mean 'count'?)\n"


@pytest.mark.parametrize("command", ["run echo.yaml", "start echo.yaml", "start echo"])
def test_an_input_that_is_not_declared_is_noted_and_taken(shell: Shell, command: str) -> None:
    shell.write("echo.yaml", ECHO)
    shell.plaita("publish echo.yaml")
    told = shell.plaita(f"{command} -i cuont=5 -i cuont=6 -i inner.nmae=7 -i other.deep=1 -i count=1")
    assert told.code == 0
    assert told.err.count("note:") == told.err.count("note: the flow declares no input") == 3
    assert UNDECLARED in told.err and "'inner.nmae' (did you mean 'name'?)" in told.err and "'other'\n" in told.err
    assert "note" not in told.out
    assert shell.plaita(f"{command} -i cuont=5 --json").err == ""


def test_a_note_stands_before_the_error_it_explains(shell: Shell) -> None:
    shell.write("echo.yaml", ECHO.replace("{type: integer}", "{type: integer, required: true}"))
    refused = shell.plaita("run echo.yaml -i cuont=5")
    assert refused.code == 2
    assert refused.err.startswith(UNDECLARED + "error: input $.count")


@pytest.mark.parametrize("declared", ["inputType: {type: object}", "name: no type"])
def test_a_flow_without_declared_inputs_takes_any(shell: Shell, declared: str) -> None:
    head, _, nodes = ECHO.partition("inputType:")
    shell.write("free.yaml", f"{head}{declared}\nnodes:{nodes.partition('nodes:')[2]}")
    assert "note" not in shell.plaita("run free.yaml -i any=1 -i a.b=2").err


def test_an_execution_has_the_same_shape_from_every_command(shell: Shell) -> None:
    ran = shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=480 --json")
    assert (ran.code, ran.err) == (3, "")
    shape = ran.json
    assert shape.keys() == EXECUTION
    assert shape["waits"][0].keys() == {"wait_id", "kind", "node", "since", "deadline", "task_id"}
    execution_id = shape["execution_id"]
    assert shell.plaita(f"inspect {execution_id} --json").json == shape
    assert shell.plaita(f"wait {execution_id} --json").json == shape
    page = shell.plaita("ps --json --limit 1").json
    assert page == {"items": [shape], "next": page["next"]}
    inbox = shell.plaita("inbox --json").json
    assert (inbox.keys(), inbox["items"][0].keys()) == ({"items", "next"}, TASK)
    assert shell.plaita(f"cancel {execution_id} --json").json == {
        "items": [{"execution_id": execution_id, "answer": "cancelled"}],
        "next": None,
    }
    assert shell.plaita(f"wait {execution_id}").code == 1
    history = shell.plaita(f"inspect {execution_id} --history --json").json["history"]
    assert [entry["seq"] for entry in history] == sorted(entry["seq"] for entry in history)


def test_pages_of_executions_follow_each_other(shell: Shell) -> None:
    shell.write("echo.yaml", ECHO)
    started = [shell.plaita("start echo.yaml --json").json["execution_id"] for _ in range(3)]
    first = shell.plaita("ps --json --limit 2").json
    second = shell.plaita(f"ps --json --limit 2 --after {first['next']}").json
    assert [e["execution_id"] for e in first["items"] + second["items"]] == started[::-1]
    assert second["next"] is None


def test_a_pipe_gets_columns_divided_by_tabs_and_no_colours(shell: Shell) -> None:
    ran = shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=480")
    listed = shell.plaita("ps")
    assert "\x1b" not in ran.err + listed.out
    columns = listed.out.rstrip("\n").split("\t")
    assert columns[1:3] == ["expense", "waiting"]
    assert columns[4] == "decision/approval (an approval)"


def test_validate_reports_everything_and_strict_turns_warnings_into_errors(shell: Shell) -> None:
    shell.write("warn.yaml", ECHO.replace("output: $INPUT", "output: $NODE.nowhere"))
    shell.write("bad.yaml", ECHO.replace("next: e", "next: f"))
    assert shell.plaita("validate warn.yaml").code == 0
    strict = shell.plaita("validate --strict warn.yaml --json")
    assert (strict.code, strict.json["items"][0]["ok"]) == (1, False)
    told = shell.plaita(f"validate warn.yaml bad.yaml {EXPENSE}")
    assert told.code == 1
    assert "bad.yaml:9:" in told.out
    assert f"{EXPENSE}: ok; may wait at decision/approval" in told.out


def test_the_list_of_all_node_types_stands_at_the_first_error_only(shell: Shell) -> None:
    nodes = "".join(f"  - {{id: n{i}, type: zork{i}, next: e}}\n" for i in range(3))
    shell.write("bad.yaml", ECHO + nodes)
    for told in (shell.plaita("validate bad.yaml").out, shell.plaita("run bad.yaml").err):
        assert (told.count("unknown node type"), told.count("types: approval, ")) == (3, 1)
    issues = shell.plaita("validate bad.yaml --json").json["items"][0]["issues"]
    assert [i["hint"].startswith("types: ") for i in issues if i["code"] == "unknown_node_type"] == [True] * 3


def test_doctor_finds_what_nobody_moves_and_variables_that_mean_nothing(shell: Shell) -> None:
    shell.write("echo.yaml", ECHO)
    started = shell.plaita("start echo.yaml")
    assert "no worker takes the queue" in started.err
    strange = Shell(shell.folder, {"PLAITA_STOER": "x"})
    told = strange.plaita("doctor --json")
    found = {c["check"]: c for c in told.json["items"]}
    assert told.code == 0
    assert found["store"]["status"] == found["consistency"]["status"] == "ok"
    assert started.out.strip() in found["executions"]["message"]
    assert "PLAITA_STORE" in found["settings"]["hint"]


def test_prune_removes_what_has_ended_and_leaves_what_lives(shell: Shell) -> None:
    shell.write("echo.yaml", ECHO)
    shell.plaita("run echo.yaml")
    shell.plaita("start echo.yaml")
    assert shell.plaita("prune --json").json == {"pruned": 0}
    assert shell.plaita("prune --older-than 0 --json").json == {"pruned": 1}
    [left] = shell.plaita("ps --json").json["items"]
    assert left["status"] == "queued"


def test_a_flow_that_was_pruned_with_its_executions_is_started_again_from_its_file(shell: Shell) -> None:
    shell.write("echo.yaml", ECHO)
    shell.plaita("run echo.yaml")
    with closing(sqlite3.connect(shell.folder / ".plaita" / "plaita.db", isolation_level=None)) as db:
        db.execute("UPDATE uses SET at = 0")
        shell.plaita("prune --older-than 0")
        assert db.execute("SELECT count(*) FROM closures").fetchone() == (0,)
    started = shell.plaita("start echo.yaml").out.strip()
    assert shell.plaita(f"wait {started} --json").json["status"] == "completed"


def test_settings_of_the_directory_name_imports_beside_it(shell: Shell) -> None:
    (shell.folder / ".plaita").mkdir()
    shell.write(".plaita/settings.toml", 'imports = ["mine.py"]\n')
    shell.write("mine.py", MINE)
    below = shell.folder / "below"
    below.mkdir()
    flow = {
        "nodes": [
            {"id": "s", "type": "start", "next": "m"},
            {"id": "m", "type": "mine", "next": "e"},
            {"id": "e", "type": "end", "output": "$NODE.m"},
        ]
    }
    shell.write("below/f.json", json.dumps(flow))
    assert shell.plaita("run f.json", folder=below).json == 1


def test_the_help_of_every_command_has_an_example_and_comes_quickly(shell: Shell) -> None:
    listed = shell.plaita("--help").out
    for command in ("run", "worker", "approve", "doctor"):
        assert f"\n  {command} " in listed
        assert f"Example: plaita {command}" in shell.plaita(f"{command} --help").out
    assert shell.plaita("--version").out.startswith("plaita ")


def test_a_command_alone_has_the_help_it_has_among_all(capsys: pytest.CaptureFixture[str]) -> None:
    everything = typer.main.get_command(build())
    for name in (function.__name__ for function, _ in COMMANDS):
        everything.main([name, "--help"], standalone_mode=False)
        wanted = capsys.readouterr().out
        typer.main.get_command(build(only=name)).main([name, "--help"], standalone_mode=False)
        assert capsys.readouterr().out == wanted
        assert f"plaita {name}" in wanted


@pytest.mark.parametrize("rich", [False, True])
@pytest.mark.parametrize("line", ["", "event", "event publish", *(function.__name__ for function, _ in COMMANDS)])
def test_help_names_no_python_types(line: str, rich: bool, capsys: pytest.CaptureFixture[str]) -> None:
    typer.main.get_command(build(rich=rich)).main([*line.split(), "--help"], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "Usage: " in shown
    assert not re.findall(r"<\w+(?: range)?>|<list\[|\b(?:INTEGER|FLOAT|BOOLEAN)\b", shown)


WAITS = """
flow_id: crowd
nodes:
  - {id: s, type: start, next: m}
  - id: m
    type: map
    collection: $INPUT.numbers
    concurrent: true
    childFlow:
      nodes:
        - {id: s, type: start, next: w}
        - {id: w, type: event, event_type: go, correlation: $INPUT.item, next: e}
        - {id: e, type: end}
    next: e
  - {id: e, type: end}
"""


def test_of_a_thousand_waits_a_person_sees_some_and_a_program_all(shell: Shell) -> None:
    shell.write("crowd.yaml", WAITS)
    ran = shell.plaita("run crowd.yaml --json --input -", stdin=json.dumps({"numbers": list(range(1_100))}))
    name = ran.json["execution_id"]
    shown = {line: shell.plaita(f"{line} {name}") for line in ("inspect", "explain")}
    [row] = shell.plaita("ps").out.splitlines()
    assert all(f"and 1080 more\n    plaita {line} {name} --json\n" in answer.out for line, answer in shown.items())
    assert row.endswith("m:2/w (the event go with key 2), 1097 more")
    assert len(shell.plaita(f"inspect {name} --json").json["waits"]) == 1_100


def test_the_history_is_shown_to_its_end(shell: Shell) -> None:
    shell.write("crowd.yaml", WAITS)
    ran = shell.plaita("run crowd.yaml --json --input -", stdin=json.dumps({"numbers": list(range(1_100))}))
    name = ran.json["execution_id"]
    shell.plaita(f"cancel {name}")
    history = shell.plaita(f"inspect {name} --history --json").json["history"]
    assert history == [json.loads(line) for line in shell.plaita(f"logs {name} --json").out.splitlines()]
    assert (history[-1]["event"], history[-1]["seq"]) == ("run_ended", len(history))
