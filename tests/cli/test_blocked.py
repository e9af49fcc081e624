"""An execution that no live worker can move, because they lack a node: every command says so and what to do."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.shell import EXAMPLES, Shell, until

pytestmark = pytest.mark.timeout(60)

JOB = EXAMPLES / "long_job.py"


@pytest.fixture
def blocked(anywhere: Shell) -> Iterator[Shell]:
    """An execution ``job`` beside a worker that does not know its node."""
    anywhere.plaita(f"publish {JOB}")
    worker = anywhere.begin("worker", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    anywhere.plaita("start long_job --id job -i steps=2 -i seconds=0")
    until(lambda: "blocked" in anywhere.plaita("inspect job").out)
    yield anywhere
    worker.send_signal(signal.SIGTERM)
    worker.wait()


def test_an_execution_that_no_worker_can_load_is_shown_as_blocked(blocked: Shell) -> None:
    digits = "a worker could not load the definition [0-9a-f]{12}"
    [shape] = blocked.plaita("ps --json").json["items"]
    assert blocked.plaita("ps").out.rstrip("\n").endswith("\tsomebody: it is blocked")
    assert shape["blocked_reason"].rpartition(" ")[0] == digits.rpartition(" ")[0]
    assert len(shape["blocked_reason"].rpartition(" ")[2]) == 12
    assert f"  blocked: {shape['blocked_reason']}\n  plaita explain job\n" in blocked.plaita("inspect job").out
    told = blocked.plaita("explain job").out
    assert "its log (flow_unloadable) names what is missing" in told and "plaita worker --import FILE.py" in told
    followed = blocked.plaita("logs job --follow")
    assert followed.err == f"blocked: {shape['blocked_reason']}\n  plaita explain job\n"


def test_waiting_for_an_execution_that_no_worker_can_load_says_what_is_missing(blocked: Shell) -> None:
    waited = blocked.plaita("wait job")
    assert waited.code == 2
    assert "unknown node type 'work'" in waited.err and "--import MODULE or FILE.py" in waited.err


def test_a_process_that_can_load_what_no_worker_can_moves_it(blocked: Shell) -> None:
    assert blocked.plaita(f"wait job --import {JOB} --json").json["output"] == {"steps": 2}


def test_the_time_of_waiting_bounds_it_also_for_what_is_blocked(blocked: Shell) -> None:
    waited = blocked.plaita("wait job --timeout 0")
    assert (waited.code, "plaita explain job" in waited.err) == (3, True)
