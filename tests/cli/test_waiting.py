"""``plaita wait``: it stays as long as the execution goes on by itself, and says until when."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.shell import Shell, until

pytestmark = pytest.mark.timeout(60)

NAP = """\
flow_id: nap
nodes:
  - {id: begin, type: start, next: rest}
  - {id: rest, type: delay, delay_seconds: 1, next: again}
  - {id: again, type: delay, delay_seconds: 1, next: done}
  - {id: done, type: end, output: awake}
"""
ASK = NAP.replace("again, type: delay, delay_seconds: 1", "again, type: event, event_type: bell")
BOTH = """\
flow_id: both
nodes:
  - {id: begin, type: start, next: both}
  - id: both
    type: parallel
    next: done
    branches:
      - name: sleeps
        flow: {nodes: [{id: s, type: start, next: d}, {id: d, type: delay, delay_seconds: 1, next: e}, END]}
      - name: asks
        flow: {nodes: [{id: s, type: start, next: a}, {id: a, type: event, event_type: bell, next: e}, END]}
  - {id: done, type: end}
""".replace("END", "{id: e, type: end}")
DREAM = """\
from plaita import Flow, Node

class Dream(Node):
    node_type = "dream"

    def execute(self, execution):
        return "seen"

flow = Flow(flow_id="dreamer", nodes=[
    {"id": "s", "type": "start", "next": "d"},
    {"id": "d", "type": "delay", "delay_seconds": 4, "next": "n"},
    Dream(id="n", next="e"),
    {"id": "e", "type": "end", "output": "$NODE.n"},
])
"""


@contextmanager
def worker_of(shell: Shell) -> Iterator[None]:
    worker = shell.begin("worker", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()


def test_a_delay_is_waited_through_and_it_is_said_until_when(anywhere: Shell) -> None:
    anywhere.write("nap.yaml", NAP)
    anywhere.plaita("start nap.yaml --id nap-1")
    waited = anywhere.plaita("wait nap-1")
    assert (waited.code, waited.out) == (0, '"awake"\n')
    said = [line for line in waited.err.splitlines() if "waits for its time" in line]
    assert [line.split()[0] for line in said] == ["rest", "again"]
    assert all(", until 2" in line for line in said)
    assert "plaita wait" not in waited.err


def test_a_delay_is_waited_through_beside_a_worker(anywhere: Shell) -> None:
    anywhere.write("nap.yaml", NAP)
    with worker_of(anywhere):
        anywhere.plaita("start nap.yaml --id nap-1")
        waited = anywhere.plaita("wait nap-1 --timeout 20 --json")
    assert (waited.code, waited.json["output"], waited.err) == (0, "awake", "")


def test_the_history_of_a_delay_says_until_when_and_that_its_time_came(shell: Shell) -> None:
    shell.write("nap.yaml", NAP)
    shell.plaita("start nap.yaml --id nap-1")
    shell.plaita("wait nap-1")
    told = [re.split(" {2,}", line)[1:] for line in shell.plaita("logs nap-1").out.splitlines() if "wait" in line]
    assert told == [
        ["wait", "rest", "wait_id=@rest#1", "kind=delay", told[0][-1]],
        ["wait_closed", "rest", "wait=@rest#1", 'by={"kind": "timeout"}'],
        ["wait", "again", "wait_id=@again#1", "kind=delay", told[2][-1]],
        ["wait_closed", "again", "wait=@again#1", 'by={"kind": "timeout"}'],
    ]
    assert all(re.fullmatch(r"until=2\d{3}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", told[at][-1]) for at in (0, 2))
    assert "until=2" in shell.plaita("inspect nap-1 --history").out


def test_the_time_of_waiting_bounds_a_delay(shell: Shell) -> None:
    shell.write(
        "nap.yaml", NAP.replace("rest, type: delay, delay_seconds: 1,", "rest, type: delay, delay_seconds: 600,")
    )
    shell.plaita("start nap.yaml --id nap-1")
    waited = shell.plaita("wait nap-1 --timeout 1 --json")
    assert (waited.code, waited.json["status"], waited.json["waits"][0]["node"]) == (3, "suspended", "rest")
    assert "plaita wait nap-1  # stays until then" in shell.plaita("inspect nap-1").out


@pytest.mark.parametrize("limit", ["", "--timeout 20"])
def test_waiting_ends_where_somebody_must_answer(shell: Shell, limit: str) -> None:
    shell.write("ask.yaml", ASK)
    shell.plaita("start ask.yaml --id nap-1")
    waited = shell.plaita(f"wait nap-1 {limit}")
    assert (waited.code, waited.out) == (3, "")
    assert "plaita event publish bell" in waited.err.splitlines()[-1]


def test_what_is_asked_of_somebody_beside_a_delay_is_said_meanwhile(shell: Shell) -> None:
    shell.write("both.yaml", BOTH)
    shell.plaita("start both.yaml --id both-1")
    waited = shell.plaita("wait both-1")
    assert (waited.code, waited.err.count("plaita event publish bell")) == (3, 2)
    assert waited.err.count("waits for its time") == 1


def test_a_start_that_is_set_for_later_is_waited_for(shell: Shell) -> None:
    shell.write("nap.yaml", NAP)
    shell.plaita("start nap.yaml --id nap-1 --not-before PT8S")
    waited = shell.plaita("wait nap-1")
    assert (waited.code, "  begins 2" in waited.err.splitlines()[1]) == (0, True)


def test_what_a_worker_cannot_load_after_a_delay_is_moved_here_or_said(shell: Shell) -> None:
    shell.write("dream.py", DREAM)
    shell.plaita("publish dream.py")
    shell.plaita("start dreamer --id dream-0")
    shell.plaita("start dreamer --id dream-1")
    assert shell.plaita("wait dream-1 --import dream.py --timeout 0.5 --json").json["waits"][0]["node"] == "d"
    with worker_of(shell):
        until(lambda: "blocked" in shell.plaita("inspect dream-0").out)
        without = shell.plaita("wait dream-1")
        assert (without.code, "unknown node type 'dream'" in without.err) == (2, True)
        assert shell.plaita("wait dream-1 --import dream.py --json").json["output"] == "seen"
