"""A command in a warm process does what a command does that was started cold."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from tests.cli.shell import COMMAND, ENOUGH_S, EXAMPLES, Answer, Shell
from tests.support import warm

NODE = """
import os, sys
from plaita import Node
class Look(Node):
    node_type = "look"
    def execute(self, execution):
        names = sorted(name for name in os.environ if name != "LC_CTYPE")
        streams = [[s.encoding, s.errors, s.isatty()] for s in (sys.stdin, sys.stdout, sys.stderr)]
        SEEN
"""
AROUND = "return [os.getcwd(), names, sys.argv, sys.path, streams, len(os.listdir('/proc/self/fd'))]"
ITSELF = "return [os.getpid(), os.getppid(), len(sys.modules), os.environ.setdefault('LEFT', str(os.getpid()))]"
ENDLESS = "open('begun', 'w').close(); __import__('time').sleep(60)"
FLOW = """
flow_id: look
metadata: {imports: [nodes.py]}
nodes:
  - {id: s, type: start, next: n}
  - {id: n, type: look, next: e}
  - {id: e, type: end, output: $NODE.n}
"""
LINES = {
    "no argument": ("", "", 0),
    "no such command": ("nonsense", "", 2),
    "no store": ("ps --json", "", 5),
    "what a node sees": ("run flow.yaml --once", "", 0),
    "an error with its trace": ("run gone.yaml --debug", "", 4),
    "input": (f"run {EXAMPLES / 'expense.yaml'} --once --input -", '{"employee": "dora", "amount": 4}', 0),
    "input that is not read": ("validate flow.yaml", "x" * 1_000_000, 0),
}


ON_A_STORE = (
    "cancel gone", "resume gone --data {}", "delete gone", "retry gone", "flows --json", "flow gone", "dlq ls --json",
    "dlq show 1-0", "build flow.yaml", "adopt",
)  # fmt: skip
"""Commands that no page of the documentation starts, or only with much beside it."""


def cold(shell: Shell, line: str, stdin: str) -> Answer:
    done = subprocess.run(
        [*COMMAND, *shlex.split(line)],
        cwd=shell.folder,
        env=shell.environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=ENOUGH_S,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def give(shell: Shell, seen: str) -> None:
    shell.write("nodes.py", NODE.replace("SEEN", seen))
    shell.write("flow.yaml", FLOW)


@pytest.mark.parametrize(("line", "stdin", "code"), LINES.values(), ids=list(LINES))
def test_a_command_answers_the_same_warm_and_cold(shell: Shell, line: str, stdin: str, code: int) -> None:
    give(shell, AROUND)
    answer = shell.plaita(line, stdin=stdin)
    assert answer == cold(shell, line, stdin)
    assert answer.code == code, answer.err


@pytest.mark.parametrize("line", ON_A_STORE)
def test_a_command_answers_the_same_warm_and_cold_on_a_store(shell: Shell, line: str) -> None:
    give(shell, AROUND)
    assert shell.plaita("run flow.yaml").code == 0
    answer = shell.plaita(line)
    assert answer == cold(shell, line, "")
    assert "unexpected" not in answer.err


def test_a_command_is_a_process_of_its_own_and_leaves_nothing_to_the_next(shell: Shell) -> None:
    give(shell, ITSELF)
    first, second = (shell.plaita("run flow.yaml --once").json for _ in range(2))
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert first[2] == second[2]
    assert [first[3], second[3]] == [str(first[0]), str(second[0])]


def test_a_command_that_does_not_end_is_killed(shell: Shell) -> None:
    give(shell, ENDLESS)
    with pytest.raises(subprocess.TimeoutExpired):
        warm.run(["run", "flow.yaml", "--once"], cwd=shell.folder, env=shell.environment, timeout=3)
    assert (shell.folder / "begun").exists()
