"""Looking after executions: explain, logs, backup, graph, flow, many at once, and what the shell offers."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from tests.cli.shell import EXAMPLES, Shell

pytestmark = pytest.mark.timeout(60)

LEAVE = """\
flow_id: leave
nodes:
  - {id: begin, type: start, next: ask}
  - {id: ask, type: event, event_type: answer, next: done}
  - {id: done, type: end, output: $NODE.ask.event_data}
"""
BAD = """\
flow_id: bad
nodes:
  - {id: begin, type: start, next: sum}
  - {id: sum, type: assignment, output: "$( $INPUT.x + 1 )", next: done}
  - {id: done, type: end, output: $NODE.sum}
"""


@pytest.fixture
def busy(shell: Shell) -> Shell:
    """A store with one execution that waits, one that failed, and one nobody takes."""
    shell.write("leave.yaml", LEAVE)
    shell.write("bad.yaml", BAD)
    assert shell.plaita("run leave.yaml").code == 3
    assert shell.plaita("run bad.yaml -i x=text").code == 1
    assert shell.plaita("start leave.yaml --queue slow").code == 0
    return shell


def ids(shell: Shell, status: str) -> list[str]:
    return [e["execution_id"] for e in shell.plaita(f"ps --status {status} --json").json["items"]]


def test_explain_says_why_and_what_to_do(busy: Shell) -> None:
    [waiting], [failed], [queued] = ids(busy, "waiting"), ids(busy, "failed"), ids(busy, "queued")
    assert "waits for the event answer" in busy.plaita(f"explain {waiting}").out
    assert f"plaita retry {failed}" in busy.plaita(f"explain {failed}").out
    found = busy.plaita(f"explain {queued} --json").json
    assert (found["status"], found["reasons"][0]["code"]) == ("queued", "no_worker")
    assert found["reasons"][0]["do"][0] == "plaita worker --queues slow"
    assert busy.plaita("explain nobody").code == 4


def test_explain_names_the_task_and_those_who_may_still_vote(shell: Shell) -> None:
    waiting = shell.plaita(f"run {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480 --json").json
    task = waiting["waits"][0]["task_id"]
    shell.plaita(f"approve {task} --by ann")
    told = shell.plaita(f"explain {waiting['execution_id']}").out
    assert f"an approval, task {task}" in told
    assert f"plaita approve {task} --by bob" in told and "--by ann" not in told


def test_logs_are_lines_for_people_and_objects_for_programs(busy: Shell) -> None:
    [failed] = ids(busy, "failed")
    lines = busy.plaita(f"logs {failed}").out.splitlines()
    assert "submitted" in lines[0] and "run_ended" in lines[-1]
    entries = [json.loads(line) for line in busy.plaita(f"logs {failed} --json --follow").out.splitlines()]
    assert [e["seq"] for e in entries] == sorted(e["seq"] for e in entries)
    assert entries[-1]["event"] == "run_ended"


def test_a_backup_is_a_whole_store(busy: Shell) -> None:
    assert busy.plaita("backup copy.db").code == 0
    refused = busy.plaita("backup copy.db")
    assert (refused.code, "--force" in refused.err) == (1, True)
    assert busy.plaita("backup copy.db --force --json").json["bytes"] > 0
    with closing(sqlite3.connect(busy.folder / "copy.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    [waiting] = ids(busy, "waiting")
    done = busy.plaita(f"""resume {waiting} --data '{{"yes": true}}' --store sqlite:///copy.db""")
    assert done.code == 0, done.err
    assert busy.plaita(f"inspect {waiting} --store sqlite:///copy.db --json").json["output"] == {"yes": True}
    assert busy.plaita(f"inspect {waiting} --json").json["status"] == "suspended"
    assert not list(busy.folder.glob("*.draft"))


def test_a_backup_that_cannot_be_written_leaves_nothing(busy: Shell) -> None:
    refused = busy.plaita("backup nowhere/copy.db")
    assert refused.code == 5
    assert not (busy.folder / "nowhere").exists()


def test_many_are_chosen_shown_and_only_then_acted_on(busy: Shell) -> None:
    where = """--where '$flow_id == "leave"'"""
    asked = busy.plaita(f"cancel {where}")
    assert (asked.code, asked.out) == (2, "")
    assert "--yes confirms it" in asked.err and len(ids(busy, "cancelled")) == 0
    done = busy.plaita(f"cancel {where} --yes --json").json
    assert [item["answer"] for item in done["items"]] == ["cancelled", "cancelled"]
    assert busy.plaita(f"delete {where} --yes").code == 0
    assert [e["flow_id"] for e in busy.plaita("ps --json").json["items"]] == ["bad"]
    assert "no executions" in busy.plaita(f"delete {where} --yes").err


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("cancel", "name executions"),
        ("cancel x --where '$status == 1' --yes", "or choose them with --where, not both"),
        ("cancel --where '$stauts == 1' --yes", "did you mean 'status'"),
        ("cancel --where '$status ==' --yes", "column 11: the expression ends where a value is expected"),
        ("ps --where '$status)'", "column 8: unexpected ')'"),
        ("ps --where '$status) or ($flow_id'", "column 8: unexpected ')'"),
        ("ps --where status", "$status for a value"),
        ("cancel --where '$status + 1' --yes", "where: $status + 1: + needs"),
        ("cancel --where '$flow_id' --yes --limit 1", "more than 1 executions"),
        ("ps --where '$status' --after 3", "no pages"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(busy: Shell, line: str, why: str) -> None:
    refused = busy.plaita(line)
    assert refused.code == 2
    assert why in refused.err
    assert len(ids(busy, "cancelled")) == 0


def test_ps_filters_by_an_expression(busy: Shell) -> None:
    found = busy.plaita("""ps --json --where '$status == "error" and $error.kind == "node_error"'""").json
    assert [e["flow_id"] for e in found["items"]] == ["bad"]


def test_many_are_retried_each_with_its_answer(busy: Shell) -> None:
    done = busy.plaita("""retry --where '$status == "error"' --yes --json""")
    assert [item["answer"] for item in done.json["items"]] == ["error"]


def test_a_flow_is_drawn_from_its_file_and_from_the_store(shell: Shell) -> None:
    flow = EXAMPLES / "order_fulfilment.json"
    assert "├─ prepare   parallel  -> complete" in shell.plaita(f"graph {flow}").out
    assert shell.plaita(f"graph {flow} --format mermaid").out.startswith("flowchart TD")
    assert shell.plaita(f"graph {flow} --format svg -o order.svg").code == 0
    assert (shell.folder / "order.svg").read_text().startswith("<svg")
    assert shell.plaita(f"graph {flow} --format png").code == 2
    shell.write("leave.yaml", LEAVE)
    shell.plaita("publish leave.yaml")
    assert "ask    event  -> done" in shell.plaita("graph leave").out
    assert shell.plaita("graph nobody").code == 4


def test_a_published_flow_shows_its_versions_and_executions(shell: Shell) -> None:
    shell.write("leave.yaml", LEAVE)
    shell.plaita("publish leave.yaml")
    shell.write("leave.yaml", LEAVE.replace("event_type: answer", "event_type: other"))
    shell.plaita("publish leave.yaml")
    shell.plaita("start leave")
    found = shell.plaita("flow leave --json").json
    assert len(found["versions"]) == 2 and found["executions"] == {"queued": 1}
    assert found["definition"]["nodes"][1]["event_type"] == "other"
    assert "may wait at: ask" in shell.plaita("flow leave").out
    old = found["versions"][1]["version"]
    assert shell.plaita(f"flow leave --version {old} --json").json["definition"]["nodes"][1]["event_type"] == "answer"
    assert shell.plaita("flow nobody").code == 4


def offered(shell: Shell, words: str) -> list[str]:
    variables = {"_PLAITA_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = Shell(shell.folder, variables).plaita("")
    assert (done.code, done.err) == (0, "")
    return done.out.split()


def test_the_shell_is_offered_commands_and_ids(busy: Shell) -> None:
    [waiting] = ids(busy, "waiting")
    assert "explain" in offered(busy, "plaita ex")
    assert offered(busy, f"plaita inspect {waiting[:6]}") == [waiting]
    busy.plaita("publish leave.yaml")
    assert offered(busy, "plaita flow l") == ["leave"]


def test_without_a_store_nothing_is_offered_and_none_is_made(shell: Shell) -> None:
    assert offered(shell, "plaita inspect a") == []
    assert not (shell.folder / ".plaita").exists()


@pytest.mark.parametrize("content", [b"", b"no database at all" * 100], ids=["empty", "garbage"])
def test_what_cannot_be_read_as_it_is_offers_nothing_and_is_not_touched(shell: Shell, content: bytes) -> None:
    (shell.folder / "s.db").write_bytes(content)
    assert offered(shell, "plaita inspect --store sqlite:///s.db a") == []
    assert (shell.folder / "s.db").read_bytes() == content
    assert shell.files() == {"s.db"}


def test_a_store_that_is_locked_offers_nothing(busy: Shell) -> None:
    [waiting] = ids(busy, "waiting")
    with closing(sqlite3.connect(busy.folder / ".plaita" / "plaita.db", isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        assert offered(busy, f"plaita inspect {waiting[:6]}") == []
    assert offered(busy, f"plaita inspect {waiting[:6]}") == [waiting]


def test_logs_do_not_stay_for_a_deadline_when_somebody_is_asked(shell: Shell) -> None:
    shell.write("ask.yaml", LEAVE.replace("event_type: answer", "event_type: answer, subscription_timeout: 86400"))
    waiting = shell.plaita("run ask.yaml --json").json["execution_id"]
    assert "wait" in shell.plaita(f"logs {waiting} --follow").out.splitlines()[-1]


def test_an_id_that_is_cut_short_is_completed_in_the_hint(busy: Shell) -> None:
    [failed] = ids(busy, "failed")
    assert f"did you mean {failed!r}?" in busy.plaita(f"inspect {failed[:8]}").err
    run = busy.plaita(f"run {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480 --json").json
    asked = run["waits"][0]["task_id"]
    assert f"did you mean {asked!r}?" in busy.plaita(f"approve {asked[:6]}").err


def test_publishing_says_which_nodes_the_flow_needs(shell: Shell) -> None:
    answer = shell.plaita(f"publish {EXAMPLES / 'expense.yaml'}")
    assert f"plaita start expense --import {EXAMPLES / 'nodes' / 'notify.py'}" in answer.err


def test_nothing_published_and_one_removed_are_said_in_words(busy: Shell) -> None:
    assert "no flow is published" in busy.plaita("flows").err
    told = (
        "1 execution removed that ended more than 0 days ago, and events, unused definitions and dead letters as old\n"
    )
    assert busy.plaita("prune --older-than 0").out == told


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("x = 1\ny = 1 / 0\n", "the module itself fails, in its line 2"),
        ("import nomod\n", "it imports nomod, which is not"),
    ],
)
def test_a_python_file_that_fails_says_where_and_why(shell: Shell, text: str, remedy: str) -> None:
    shell.write("broken.py", text)
    answer = shell.plaita("validate broken.py")
    assert answer.code == 4 and remedy in answer.err


def test_an_approval_is_not_resumed_with_nothing(shell: Shell) -> None:
    waiting = shell.plaita(f"run {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480 --json").json
    refused = shell.plaita(f"resume {waiting['execution_id']}")
    assert refused.code == 1 and f"plaita approve {waiting['waits'][0]['task_id']} --by NAME" in refused.err
    assert shell.plaita(f"inspect {waiting['execution_id']} --json").json["waits"] == waiting["waits"]


def test_an_empty_inbox_of_one_person_says_nothing_of_others(shell: Shell) -> None:
    shell.plaita(f"run {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480")
    assert shell.plaita("inbox --by zoe").err == "zoe is asked for nothing\n"
