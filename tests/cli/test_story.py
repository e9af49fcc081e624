"""An expense from the first command to its end, each command a process of its own."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.shell import EXAMPLES, Shell, lines_of

pytestmark = pytest.mark.timeout(60)

EXPENSE = EXAMPLES / "expense.yaml"
WAITING_TEXT = """\
flow_id: pay
nodes:
  - {id: start, type: start, next: paid}
  - {id: paid, type: event, eventType: paid, correlation: $INPUT.order, next: end}
  - {id: end, type: end, output: $NODE.paid.event_data}
"""


def test_an_expense_waits_for_two_of_three_and_then_ends(anywhere: Shell) -> None:
    ran = anywhere.plaita(f"run {EXPENSE} -i employee=dora -i amount=480")
    assert (ran.code, ran.out) == (3, "")
    [task] = anywhere.plaita("inbox --json").json["items"]
    assert f"plaita approve {task['task_id']} --by ann" in ran.err
    assert "waits for an approval since" in ran.err
    assert "in 3 days" in ran.err

    first = anywhere.plaita(f"approve {task['task_id']} --by ann -m fine")
    assert first.code == 0
    assert "needs 1 vote of bob, cleo" in first.err
    second = anywhere.plaita(f"approve {task['task_id']} --by bob --json").json
    assert (second["decided"], second["outcome"]) == (True, "approved")

    execution = anywhere.plaita(f"inspect {task['execution_id']} --json").json
    assert execution["status"] == "completed"
    assert execution["output"] == {"result": "approved", "reason": "2 votes", "notified": "dora"}
    [message] = [json.loads(line) for line in lines_of(anywhere.folder / "outbox.jsonl")]
    assert message["text"] == "Your claim of 480 euros is approved: 2 votes."


def test_a_small_expense_passes_and_its_result_is_on_stdout_alone(shell: Shell) -> None:
    ran = shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=20")
    assert ran.code == 0
    assert ran.json["result"] == "approved"
    assert "done   notify  notify" in ran.err


def test_two_rejections_decide_because_a_majority_cannot_be_reached(anywhere: Shell) -> None:
    anywhere.plaita(f"run {EXPENSE} -i employee=dora -i amount=480")
    [task] = anywhere.plaita("inbox --by cleo --json").json["items"]
    assert anywhere.plaita(f"reject {task['task_id']} --by ann").code == 0
    rejected = anywhere.plaita(f"reject {task['task_id']} --by cleo")
    assert rejected.json["result"] == "rejected"


def test_the_store_is_private_and_found_from_a_directory_below(shell: Shell) -> None:
    shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=20")
    assert stat.S_IMODE((shell.folder / ".plaita").stat().st_mode) == 0o700
    below = shell.folder / "a" / "b"
    below.mkdir(parents=True)
    assert len(shell.plaita("ps --json", folder=below).json["items"]) == 1
    assert not (below / ".plaita").exists()


def test_each_round_of_a_loop_waits_in_its_child_and_goes_on_in_its_own_round(anywhere: Shell) -> None:
    anywhere.plaita(f"run {EXAMPLES / 'agent_loop.yaml'} -i goal=ship")
    [first] = anywhere.plaita("inbox --json").json["items"]
    again = anywhere.plaita(f"reject {first['task_id']} --by ann -m shorter --json").json["execution"]
    assert again["waits"][0]["node"] == "refine:1/review/ask"
    [second] = anywhere.plaita("inbox --json").json["items"]
    assert second["content"] == "Attempt 2. Last remark: shorter"
    done = anywhere.plaita(f"approve {second['task_id']} --by ann --json").json["execution"]
    assert done["output"]["text"] == "Proposal 2 for: ship"


def test_an_event_wakes_the_execution_with_its_key_and_no_other(shell: Shell) -> None:
    shell.write("pay.yaml", WAITING_TEXT)
    ran = shell.plaita("run pay.yaml -i order=17")
    assert "plaita event publish paid --key 17" in ran.err
    shell.plaita("run pay.yaml -i order=18")
    told = shell.plaita("event publish paid --key 17 --data '{\"euros\": 5}' --id e1 --json").json
    assert (told["matched"], told["woken"]) == (1, 1)
    assert told["executions"][0]["output"] == {"euros": 5}
    assert shell.plaita("event publish paid --key 17 --id e1 --json").json["duplicate"] is True
    [left] = shell.plaita("ps --status waiting --json").json["items"]
    assert left["waits"][0]["key"] == "18"


def test_a_published_flow_is_started_and_moved_by_whoever_waits_for_it(shell: Shell) -> None:
    node = EXAMPLES / "nodes" / "notify.py"
    assert shell.plaita(f"publish {EXPENSE} --json").json["version"] == "1"
    line = f"start expense -i employee=dora -i amount=20 --id e-1 --key k --tag t --import {node} --json"
    started = shell.plaita(line).json
    assert (started["status"], started["business_key"], started["tags"]) == ("queued", "k", ["t"])
    assert shell.plaita(line).json["execution_id"] == "e-1"
    assert shell.plaita("wait e-1 --timeout 10 --json").json["status"] == "completed"
    assert [f["flow_id"] for f in shell.plaita("flows --json").json["items"]] == ["expense"]


def test_a_failed_execution_is_retried_at_the_failed_node_once_its_cause_is_gone(shell: Shell) -> None:
    shell.write("nodes.py", FAILING)
    shell.write("fail.yaml", FAILING_FLOW)
    ran = shell.plaita("run fail.yaml --json")
    assert (ran.code, ran.json["status"]) == (1, "error")
    execution_id = ran.json["execution_id"]
    assert "absent" in ran.json["error"]["message"]
    shell.write("present", "")
    assert shell.plaita(f"retry {execution_id}").json == "found"
    assert lines_of(shell.folder / "first.log") == ["ran"]
    assert shell.plaita(f"delete {execution_id}").code == 0
    assert shell.plaita(f"inspect {execution_id}").code == 4


FAILING = """\
from pathlib import Path
from plaita import Node

class First(Node):
    node_type = "first"

    def execute(self, execution):
        with Path("first.log").open("a") as log:
            log.write("ran\\n")

class Look(Node):
    node_type = "look"

    def execute(self, execution):
        if not Path("present").exists():
            raise ValueError("it is absent")
        return "found"
"""
FAILING_FLOW = """\
flow_id: fail
metadata: {imports: [nodes.py]}
nodes:
  - {id: start, type: start, next: first}
  - {id: first, type: first, next: look}
  - {id: look, type: look, next: end}
  - {id: end, type: end, output: $NODE.look}
"""


def test_two_stores_know_nothing_of_each_other_and_every_message_names_its_own(shell: Shell, tmp_path: Path) -> None:
    one, two = (f"sqlite:///{tmp_path / name}" for name in ("one.db", "two.db"))
    ran = shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=480 --store {one}")
    [task] = shell.plaita(f"inbox --json --store {one}").json["items"]
    assert f"plaita approve {task['task_id']} --by ann --store {one}" in ran.err
    shell.plaita(f"run {EXPENSE} -i employee=dora -i amount=20 --store {two}")
    missing = shell.plaita(f"approve {task['task_id']} --by ann --store {two}")
    assert (missing.code, two in missing.err) == (4, True)
    assert len(shell.plaita(f"ps --json --store {two}").json["items"]) == 1
    assert not (shell.folder / ".plaita").exists()
