"""A ``plaita run`` that is cut: kill -9, Ctrl-C, a worker that drains."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.cli.shell import EXAMPLES, Shell, lines_of, until

pytestmark = pytest.mark.timeout(60)

JOB = EXAMPLES / "long_job.py"


def works(shell: Shell, count: int) -> Callable[[], bool]:
    return lambda: len(lines_of(shell.folder / "long_job.log")) >= count


def test_a_killed_run_is_named_and_goes_on_with_the_step_that_was_cut(shell: Shell) -> None:
    process = shell.begin(f"run {JOB} -i steps=5 -i seconds=0.2")
    until(works(shell, 3))
    process.kill()
    process.communicate()
    [cut] = shell.plaita("ps --json").json["items"]
    assert shell.plaita("ps").out.split("\t")[2] == "interrupted"

    named = shell.plaita(f"run {JOB} -i steps=0")
    assert named.code == 0
    assert f"plaita run --continue {cut['execution_id']}" in named.err
    assert shell.plaita(f"run --continue {cut['execution_id']}").json == {"steps": 5}
    lines = lines_of(shell.folder / "long_job.log")
    assert [line.split()[0] for line in dict.fromkeys(lines)] == ["1", "2", "3", "4", "5"]
    assert len(lines) <= 6
    assert "--continue" not in shell.plaita(f"run {JOB} -i steps=0").err


def test_ctrl_c_in_a_pipe_leaves_the_execution_at_its_next_commit(shell: Shell) -> None:
    process = shell.begin(f"run {JOB} -i steps=5 -i seconds=0.3")
    until(works(shell, 2))
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    [left] = shell.plaita("ps --json").json["items"]
    assert f"plaita run --continue {left['execution_id']}" in err
    assert shell.plaita(f"wait {left['execution_id']} --json").json["output"] == {"steps": 5}
    assert len(lines_of(shell.folder / "long_job.log")) == 5


def test_a_second_ctrl_c_quits_at_once(shell: Shell) -> None:
    process = shell.begin(f"run {JOB} -i steps=1 -i seconds=60")
    until(works(shell, 1))
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "once more quits" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130


def test_ctrl_c_on_a_terminal_asks_and_cancels(shell: Shell) -> None:
    terminal, inner = pty.openpty()
    process = shell.begin(f"run {JOB} -i steps=1 -i seconds=60", stdin=inner, stderr=inner)
    os.close(inner)
    until(works(shell, 1))
    process.send_signal(signal.SIGINT)
    seen = ""
    while "[c]ancel" not in seen:
        seen += os.read(terminal, 4096).decode()
    os.write(terminal, b"c\n")
    assert process.stdout is not None
    process.stdout.read()
    assert process.wait() == 1
    process.stdout.close()
    os.close(terminal)
    [cancelled] = shell.plaita("ps --json").json["items"]
    assert cancelled["status"] == "cancelled"


def test_what_happens_while_the_question_is_open_is_said_after_the_answer(shell: Shell) -> None:
    terminal, inner = pty.openpty()
    process = shell.begin(f"run {JOB} -i steps=60 -i seconds=0.1", stdin=inner, stderr=inner)
    os.close(inner)
    until(works(shell, 1))
    process.send_signal(signal.SIGINT)
    seen = ""
    while "for later? " not in seen:
        seen += os.read(terminal, 4096).decode()
    until(works(shell, len(lines_of(shell.folder / "long_job.log")) + 3))
    os.write(terminal, b"l\n")
    while "it goes on with" not in seen:
        seen += os.read(terminal, 4096).decode()
    process.communicate()
    os.close(terminal)
    after = seen.partition("\n[c]ancel the execution, or [l]eave it for later? ")[2]
    assert after.startswith("l\r\n")
    assert after.count("work  work") >= 3


def test_watch_says_what_it_waits_for_and_stays_until_another_process_has_approved(shell: Shell) -> None:
    process = shell.begin(f"run {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480 --watch")
    assert process.stderr is not None
    while "--by bob" not in (line := process.stderr.readline()):
        pass
    task = line.split()[2]
    shell.plaita(f"approve {task} --by ann")
    approved = shell.plaita(f"approve {task} --by bob --json").json
    out, _ = process.communicate()
    assert process.returncode == 0
    assert '"result": "approved"' in out
    assert approved["execution"]["status"] == "completed"


def test_a_worker_takes_what_is_queued_and_drains_on_sigterm(shell: Shell) -> None:
    started = shell.plaita(f"start {JOB} -i steps=2 -i seconds=0.1 --queue slow --json").json["execution_id"]
    worker = shell.begin("worker --queues default,slow --concurrency 2", stdout=subprocess.DEVNULL)
    until(lambda: bool(shell.plaita("workers --json").json["items"]))
    assert shell.plaita(f"wait {started} --timeout 10 --json").json["output"] == {"steps": 2}
    assert len(lines_of(shell.folder / "long_job.log")) == 2
    worker.send_signal(signal.SIGTERM)
    _, err = worker.communicate()
    assert worker.returncode == 0
    assert "worker_stopped" in err


def test_the_documented_module_name_of_the_worker_starts_the_same_worker(shell: Shell) -> None:
    started = shell.plaita(f"start {JOB} -i steps=1 -i seconds=0 --json").json["execution_id"]
    worker = subprocess.Popen(
        [sys.executable, "-m", "plaita.server.flow_worker", "--cache-size", "7"],
        cwd=shell.folder,
        env=shell.environment | {"PLAITA_STORE": "sqlite:///.plaita/plaita.db"},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert worker.stderr is not None
    said = []
    for line in worker.stderr:
        said.append(line)
        if "worker_started" in line:
            break
    assert said[0].startswith("--cache-size has no effect")
    assert shell.plaita(f"wait {started} --timeout 10 --json").json["status"] == "completed"
    worker.terminate()
    worker.communicate()
    assert worker.returncode == 0
