"""Rough use from outside: what a person, a node or a closed terminal may do without hurting an execution."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from plaita.cli.progress import Progress
from tests.cli.shell import COMMAND, ENOUGH_S, Shell, until

pytestmark = pytest.mark.timeout(60)

FLOW = """
flow_id: rough
metadata: {imports: [nodes.py]}
nodes:
  - {id: s, type: start, next: n}
  - {id: n, type: rough, next: w}
  - {id: w, type: WAIT, next: e}
  - {id: e, type: end, output: $NODE.n}
"""
APPROVAL = "approval, approval_title: $INPUT.title, approvers: [ann]"
ASSIGNMENT = "assignment, output: 1"
NODE = "from plaita import Node\nclass Rough(Node):\n    node_type = 'rough'\n"


def give(shell: Shell, body: str = "return 1", *, wait: str = ASSIGNMENT, kind: str = "def execute") -> None:
    """A flow with one custom node, and perhaps an approval after it."""
    shell.write("nodes.py", f"import asyncio, os, sys\n{NODE}    {kind}(self, execution):\n        {body}\n")
    shell.write("flow.yaml", FLOW.replace("WAIT", wait))


@pytest.fixture
def impatient(shell: Shell) -> Shell:
    """A shell in which a failing node is not tried again, so that nobody waits for the back-off."""
    return Shell(shell.folder, {"PLAITA_MAX_DELIVERIES": "1"})


def repeats(running: subprocess.Popen[str]) -> bool:
    """Ask it to end once more; false when it has ended."""
    if running.poll() is None:
        running.terminate()
    return running.poll() is None


RAISES = {
    "a base exception": "raise BaseException('odd')",
    "Ctrl-C": "raise KeyboardInterrupt",
    "a generator's exit": "raise GeneratorExit",
    "a cancellation": "raise asyncio.CancelledError",
    "text that is not Unicode": "raise ValueError('\\ud800')",
    "no text at all": "raise type('Odd', (ValueError,), {'__str__': lambda self: 1 / 0})",
}


@pytest.mark.parametrize("body", RAISES.values(), ids=list(RAISES))
def test_whatever_a_node_raises_is_its_failure(impatient: Shell, body: str) -> None:
    give(impatient, f"{body}")
    failed = impatient.plaita("run flow.yaml --json")
    assert failed.code == 1
    assert failed.json["error"]["kind"] == "node_error"
    assert failed.json["error"]["path"] == ["n"]


def test_a_coroutine_that_cancels_itself_fails(impatient: Shell) -> None:
    give(impatient, "asyncio.current_task().cancel(); await asyncio.sleep(0)", kind="async def arun")
    assert impatient.plaita("run flow.yaml --json").json["error"]["path"] == ["n"]


def test_the_child_of_a_node_that_forks_ends_with_the_call(shell: Shell) -> None:
    give(shell, "pid = os.fork(); return pid and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])")
    assert shell.plaita("run flow.yaml --json").json["output"] == 0


def test_a_coroutine_that_ignores_its_timeout_does_not_keep_the_command(shell: Shell) -> None:
    body = "while True:\n            try: await asyncio.sleep(60)\n            except asyncio.CancelledError: pass"
    give(shell, body, kind="async def arun")
    shell.write("flow.yaml", FLOW.replace("WAIT", ASSIGNMENT).replace("type: rough", "type: rough, timeout: 100"))
    assert shell.plaita("run flow.yaml --json").json["error"]["kind"] == "timeout"


def test_a_second_sigterm_does_not_wait_for_a_long_node(shell: Shell) -> None:
    give(shell, "open('begun', 'w').close(); import time; time.sleep(60)")
    with shell.begin("run flow.yaml") as running:
        until(lambda: (shell.folder / "begun").exists())
        until(lambda: not repeats(running))
    assert running.returncode == 130
    assert shell.plaita("ps --json").json["items"][0]["status"] == "running"


def test_an_execution_goes_on_elsewhere_while_its_process_is_stopped(shell: Shell) -> None:
    give(shell, "open('begun', 'w').close(); import time; time.sleep(0.5); return 1")
    shell = Shell(shell.folder, {"PLAITA_LEASE_TTL_SECONDS": "3"})
    with shell.begin("run flow.yaml") as running:
        until(lambda: (shell.folder / "begun").exists())
        running.send_signal(signal.SIGSTOP)
        execution = shell.plaita("ps --json").json["items"][0]["execution_id"]
        assert shell.plaita(f"run --continue {execution} --json").json["status"] == "completed"
        running.send_signal(signal.SIGCONT)
        assert running.wait() == 0


def test_an_import_that_exits_is_an_error_of_the_import(shell: Shell) -> None:
    give(shell)
    shell.write("nodes.py", "raise SystemExit(0)\n")
    refused = shell.plaita("run flow.yaml")
    assert refused.code == 4
    assert "SystemExit" in refused.err


def in_bash(shell: Shell, line: str) -> subprocess.CompletedProcess[str]:
    """What a line says in which ``plaita`` is the command."""
    return subprocess.run(
        ["bash", "-c", "plaita() { " + " ".join(COMMAND) + f' "$@"; }}; {line}'],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=ENOUGH_S,
        check=True,
    )


def test_an_execution_goes_on_when_nobody_reads_what_is_said_about_it(shell: Shell) -> None:
    give(shell)
    done = in_bash(shell, "plaita run flow.yaml 2>&1 >/dev/null | true; plaita ps --json")
    assert '"completed"' in done.stdout, done.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_does_its_work_when_streams_are_closed(shell: Shell, closed: str) -> None:
    give(shell)
    done = in_bash(shell, f"plaita run flow.yaml {closed}; echo $?")
    assert done.stdout.splitlines()[-1] == "0", done.stderr
    [ran] = shell.plaita("ps --json").json["items"]
    assert ran["status"] == "completed"


def test_data_moves_no_cursor(shell: Shell) -> None:
    give(shell, wait=APPROVAL)
    shell.plaita("run flow.yaml --input -", stdin='{"title": "\\u001b[2Jcleared\\n\\u202ereversed"}')
    shown = shell.plaita("inbox").out
    assert r"\x1b[2Jcleared" in shown
    assert r"\u202ereversed" in shown
    assert not {"\x1b", "\u202e"} & set(shown)


def test_a_time_beyond_the_calendar_is_shown_as_its_end(shell: Shell) -> None:
    give(shell, wait="delay, delay_seconds: 9999999999, delay_unit: days")
    waiting = shell.plaita("run flow.yaml --json")
    assert waiting.json["waits"][0]["deadline"] == "9999-12-31T00:00:00.000Z"
    assert shell.plaita("ps").code == 0


def test_a_vote_counts_when_the_nodes_of_the_flow_are_gone(shell: Shell) -> None:
    give(shell, wait=APPROVAL)
    execution = shell.plaita("run flow.yaml --json").json
    (shell.folder / "nodes.py").unlink()
    voted = shell.plaita(f"approve {execution['waits'][0]['task_id']} --by ann")
    assert voted.code == 0
    assert "the task is decided: approved" in voted.err
    assert "accepted, but this process cannot load the flow" in voted.err
    give(shell, wait=APPROVAL)
    assert shell.plaita(f"wait {execution['execution_id']} --json").json["status"] == "completed"


def test_an_event_moves_every_execution_it_wakes(shell: Shell) -> None:
    program = """
from plaita import Flow, Runtime
nodes = [{"id": "s", "type": "start", "next": "w"}, {"id": "w", "type": "event", "event_type": "go", "next": "e"},
         {"id": "e", "type": "end"}]
with Runtime.open() as runtime:
    for _ in range(210):
        runtime.start(Flow(flow_id="many", nodes=nodes)).wait()
"""
    subprocess.run(
        [sys.executable, "-c", program], cwd=shell.folder, env=shell.environment, timeout=ENOUGH_S, check=True
    )
    published = shell.plaita("event publish go --json").json
    assert published["pending"], "one chunk holds them all"
    assert {execution["status"] for execution in published["executions"]} == {"completed"}
    assert len(published["executions"]) == 210


@pytest.mark.parametrize(
    ("value", "shown"), [("true", "--key true"), ('{"a": 1}', """--key '{"a": 1}'"""), ('""', "--key ''")]
)
def test_the_key_of_a_wait_is_said_as_it_must_be_published(shell: Shell, value: str, shown: str) -> None:
    give(shell, wait="event, event_type: go, correlation: $INPUT.k")
    waiting = shell.plaita("run flow.yaml --input -", stdin=f'{{"k": {value}}}')
    assert f"plaita event publish go {shown} --data" in waiting.err


def test_a_correlation_that_is_null_fails_instead_of_taking_any_event(shell: Shell) -> None:
    give(shell, wait="event, event_type: go, correlation: $INPUT.k")
    assert "correlation is null" in shell.plaita("run flow.yaml").err


@pytest.mark.parametrize("execution_id", ["'a\nb'", "' a'", "x" * 201], ids=["a newline", "a blank", "too long"])
def test_an_id_that_cannot_be_said_is_refused(shell: Shell, execution_id: str) -> None:
    give(shell)
    refused = shell.plaita(f"start flow.yaml --id {execution_id} --json")
    assert refused.code == 2
    assert "execution_id" in refused.error["message"]


def test_what_cannot_be_retried_is_said_in_words(shell: Shell) -> None:
    give(shell)
    execution = shell.plaita("run flow.yaml --json").json["execution_id"]
    assert "it is completed; only a failed one can" in shell.plaita(f"retry {execution}").err


def test_a_call_whose_beginning_was_not_seen_has_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    Progress("x")("x", {"event": "node_end", "node": "n", "output": 1})
    assert capsys.readouterr().err == "done   n\n"


LOOKS = {
    "a tab": ("nodes:\n\t- {id: s}\n", "YAML indents with blanks"),
    "a comma": (FLOW.replace("type: rough", "type: rough, text: $F.add(1, 2)"), "stands in quotes"),
}


@pytest.mark.parametrize(("text", "words"), LOOKS.values(), ids=list(LOOKS))
def test_what_yaml_reads_differently_than_it_looks_has_a_hint(shell: Shell, text: str, words: str) -> None:
    give(shell)
    shell.write("flow.yaml", text.replace("WAIT", ASSIGNMENT))
    said = shell.plaita("validate flow.yaml")
    assert words in said.out + said.err


def test_to_continue_takes_no_flow(shell: Shell) -> None:
    give(shell)
    assert "leave FLOW out" in shell.plaita("run flow.yaml --continue x").err


def test_a_directory_that_is_gone_is_said(shell: Shell) -> None:
    line = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["bash", "-c", line, "bash", *COMMAND, "ps"],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
        timeout=ENOUGH_S,
        check=False,
    )
    assert done.returncode == 2
    assert "does not exist any more" in done.stderr


def test_the_history_is_in_the_order_things_happened(shell: Shell) -> None:
    give(shell)
    execution = shell.plaita("run flow.yaml --json").json["execution_id"]
    history = shell.plaita(f"inspect {execution} --history --json").json["history"]
    told = [entry["event"] for entry in history if entry["event"] in ("nodes", "node_end")]
    assert told == ["nodes", "node_end", "nodes"]


class Stopwatch:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.ms = 0.0

    def now_ms(self) -> int:
        return int(self.ms)

    def elapsed_ms(self) -> float:
        return self.ms


def turn_round(progress: Progress, rounds: range) -> None:
    for i in rounds:
        progress("x", {"event": "node", "node": f"l:{i}/n", "type": "assignment"})


def test_rounds_that_come_faster_than_a_person_reads_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Stopwatch()
    progress = Progress("x", clock=clock)
    turn_round(progress, range(100))
    for i in range(50):
        progress("x", {"event": "node", "node": f"n{i}", "type": "assignment"})
    clock.ms += 1000
    turn_round(progress, range(100, 200))
    progress.close()
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if "l:" in line]) == 1 + 20 + 20
    assert len([line for line in said if "  n" in line]) == 50
    assert said[-1] == "… 159 more nodes"


def test_there_are_never_more_than_a_thousand_lines(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Stopwatch()
    progress = Progress("x", clock=clock)
    for i in range(2001):
        clock.ms += 1000
        turn_round(progress, range(i, i + 1))
    progress.close()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1001
    assert said[-1] == "… 1001 more nodes"


def test_validate_goes_on_after_a_file_that_cannot_be_read(shell: Shell) -> None:
    give(shell)
    shell.write("bad.yaml", "nodes: []")
    told = shell.plaita("validate gone.yaml flow.yaml lost.yaml bad.yaml")
    assert told.code == 4
    assert "gone.yaml" in told.err
    assert "lost.yaml" in told.err
    assert "flow.yaml: ok" in told.out
    assert "no_start" in told.out
    assert [i["file"] for i in shell.plaita("validate gone.yaml flow.yaml --json").json["items"]] == ["flow.yaml"]


ANSWER = """
from plaita import Runtime
with Runtime.open() as runtime:
    ACT
"""
ANSWERS = {
    "a vote": (APPROVAL, "assert runtime.inbox()[0].approve(by='ann') == 'approved'"),
    "a rejection": (APPROVAL, "assert runtime.inbox()[0].reject(by='ann') == 'rejected'"),
    "an answer": (APPROVAL, "assert runtime.execution(ID).resume({'approved': True})['waits'] == []"),
    "an event": ("event, event_type: go", "assert runtime.publish_event('go')['woken'] == 1"),
}


@pytest.mark.parametrize(("wait", "act"), ANSWERS.values(), ids=list(ANSWERS))
def test_an_answer_from_python_counts_when_the_nodes_of_the_flow_are_gone(shell: Shell, wait: str, act: str) -> None:
    give(shell, wait=wait)
    execution = shell.plaita("run flow.yaml --json").json["execution_id"]
    (shell.folder / "nodes.py").unlink()
    program = ANSWER.replace("ACT", act.replace("ID", repr(execution)))
    subprocess.run(
        [sys.executable, "-c", program], cwd=shell.folder, env=shell.environment, timeout=ENOUGH_S, check=True
    )
    give(shell, wait=wait)
    assert shell.plaita(f"wait {execution} --json").json["status"] == "completed"


def test_a_failed_execution_is_opened_again_when_the_nodes_of_the_flow_are_gone(shell: Shell) -> None:
    give(shell, "raise ValueError('odd')")
    execution = shell.plaita("run flow.yaml --json").json["execution_id"]
    (shell.folder / "nodes.py").unlink()
    act = f"assert runtime.execution({execution!r}).retry()['status'] not in ('error', 'completed')"
    program = ANSWER.replace("ACT", act)
    subprocess.run(
        [sys.executable, "-c", program], cwd=shell.folder, env=shell.environment, timeout=ENOUGH_S, check=True
    )
    give(shell)
    assert shell.plaita(f"wait {execution} --json").json["status"] == "completed"
