"""What a person sees on a terminal of some width: names that are copied are in one piece, and nothing is cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios

import pytest

from plaita.base.moment import iso
from plaita.cli.screen import kept_whole
from plaita.cli.wording import Wording
from tests.cli.shell import EXAMPLES, Shell, until

pytestmark = pytest.mark.timeout(60)

WIDTHS = {"ID": 20, "FLOW": 30, "TIME": 16}
ASKS = """
flow_id: orders_of_the_northern_shops
nodes:
  - {id: begin, type: start, next: ask_the_people_of_the_shop}
  - {id: ask_the_people_of_the_shop, type: approval, approval_title: open, approvers: [ann], next: end}
  - {id: end, type: end}
"""
HELD = r"w-{} .* running +default +0/100 +\d+s +\d+s ago"


def seen(shell: Shell, line: str, columns: int) -> str:
    """What ``plaita LINE`` shows on a terminal so wide, without colours."""
    terminal, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    process = shell.begin(line, stdout=inner, stderr=subprocess.DEVNULL)
    os.close(inner)
    said = b""
    try:
        while part := os.read(terminal, 65_536):
            said += part
    except OSError:
        pass  # Linux tells of the other end being closed by an error.
    os.close(terminal)
    process.wait()
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_list_of_executions_shows_each_id_in_one_line(shell: Shell, columns: int) -> None:
    shell.plaita(f"run {EXAMPLES / 'expense.yaml'} -i employee=dora -i amount=480")
    shell.write("flow.yaml", ASKS)
    assert shell.plaita("run flow.yaml").code == 3
    shown = seen(shell, "ps", columns)
    ids = [one["execution_id"] for one in shell.plaita("ps --json").json["items"]]
    assert [line.split()[0] for line in shown.splitlines() if line.split()[0] in ids] == ids
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize("columns", [80, 120])
def test_a_list_of_workers_shows_each_in_one_line_with_the_age_of_what_was_heard(shell: Shell, columns: int) -> None:
    shell.write("flow.yaml", "flow_id: f\nnodes:\n  - {id: s, type: start, next: e}\n  - {id: e, type: end}\n")
    assert shell.plaita("run flow.yaml").code == 0
    named, log = Shell(shell.folder, {"PLAITA_INSTANCE_ID": "w"}), shell.folder / "log"
    with log.open("w", encoding="utf-8") as told:
        worker = named.begin("worker --processes 2", stdout=subprocess.DEVNULL, stderr=told)
    until(lambda: worker.poll() is not None or len(shell.plaita("workers").out.splitlines()) == 2)
    assert worker.poll() is None, log.read_text(encoding="utf-8")
    shown = seen(shell, "workers", columns)
    worker.send_signal(signal.SIGTERM)
    worker.wait()
    assert all(re.search(HELD.format(number), shown) for number in (0, 1)), shown
    assert max(map(len, shown.splitlines())) <= columns


@pytest.mark.parametrize("columns", [60, 80, 100, 110, 120])
def test_help_cuts_no_name_of_an_option(shell: Shell, columns: int) -> None:
    shown = seen(shell, "worker --help", columns)
    assert "…" not in shown
    assert all(
        name in shown for name in ("--lease-ttl-seconds", "--queues", "--enable-registry", "redis://HOST:PORT/DB")
    )


@pytest.mark.parametrize("columns", [80, 120])
def test_a_list_of_commands_tells_of_each_what_it_does_and_cuts_nothing(shell: Shell, columns: int) -> None:
    words = re.sub(r"[\s│]+", " ", seen(shell, "--help", columns))
    assert "..." not in words.replace("[ARGS]...", "") and "…" not in words
    assert "validate Report everything that is wrong with flow files: line, place, remedy." in words


@pytest.mark.parametrize(
    ("room", "kept"),
    [(200, {"ID", "TIME"}), (48, {"ID", "TIME"}), (47, set())],
    ids=["wide", "just enough", "too narrow for words beside them"],
)
def test_columns_give_way_as_long_as_something_can_be_read_in_them(room: int, kept: set[str]) -> None:
    assert kept_whole(WIDTHS, ("FLOW",), room) == kept


def test_a_table_in_which_no_column_gives_way_is_folded_only_when_it_does_not_fit() -> None:
    assert (kept_whole(WIDTHS, (), 70), kept_whole(WIDTHS, (), 69)) == (frozenset(WIDTHS), frozenset())


@pytest.mark.parametrize(
    ("at_s", "said"),
    [(61, "    plaita wait nap-1  # stays until then; a worker goes on by itself"), (59, "    plaita wait nap-1")],
    ids=["ahead", "over"],
)
def test_the_command_that_ends_a_delay_says_whether_it_can_now(at_s: int, said: str) -> None:
    delay = {"kind": "delay", "node": "d", "since": "1970-01-01T00:00:00Z", "deadline": f"{iso(at_s * 1000)}"}
    shape = {"execution_id": "nap-1", "flow_id": "nap", "status": "suspended", "waits": [delay]}
    assert Wording(None, 60_000).execution(shape, {})[-1] == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0, "0s"), (-5, "0s"), (59_999, "59s"), (3_599_999, "59m"), (86_399_999, "23h"), (172_800_000, "2d")],
)
def test_an_age_is_one_number_and_one_letter(ms: int, said: str) -> None:
    assert Wording(None, 200_000_000).age(f"{iso(200_000_000 - ms)}") == said
