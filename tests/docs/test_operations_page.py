"""The runbook: its commands work, and the metrics and checks it names exist."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plaita.telemetry import EVENTS
from plaita.telemetry.gauges import GAUGES
from tests.cli.shell import ROOT, Shell, until
from tests.docs.test_readme import Block, blocks, reader, runs
from tests.servers import free_port

__all__ = ["reader"]

pytestmark = pytest.mark.timeout(90)

PAGE = "docs/guide/operations.md"
FIRST = 9464


@contextmanager
def operated(shell: Shell, command: str) -> Iterator[None]:
    """A worker that runs while other commands do, and then drains."""
    process = subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=shell.folder, env=shell.environment, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: len(shell.plaita("workers --json").json["items"]) == 2)
        yield
    finally:
        process.terminate()
        assert process.wait() == 0


def play(shell: Shell, block: Block) -> None:
    match block.kind:
        case "run":
            for command in block.commands:
                runs(shell, command)
        case "story":
            newest = shell.plaita("ps --json").json["items"][0]["execution_id"]
            for command in block.commands:
                runs(shell, command.replace("ID", newest))
        case "operated":
            port = free_port(2)
            worker, *rest = [command.replace(str(FIRST), str(port)) for command in block.commands]
            with operated(shell, worker):
                for command in rest:
                    runs(shell, command.replace(str(FIRST + 1), str(port + 1)))
        case _:
            raise AssertionError(f"a shell block without a marker: {block.text}")


def test_the_commands_of_the_page_work_from_the_first_to_the_last(reader: Shell) -> None:
    assert reader.plaita("run examples/agent_loop.yaml -i goal=tidy").code == 3
    found = [block for block in blocks(PAGE) if block.language == "sh"]
    assert [block.kind for block in found] == ["operated", "run", "run", "run", "story"]
    for block in found:
        play(reader, block)


def names_in(pattern: str) -> set[str]:
    return set(re.findall(pattern, (ROOT / PAGE).read_text(encoding="utf-8")))


def test_every_metric_it_names_exists() -> None:
    counted = {e.metric for e in EVENTS.values() if e.metric}
    shown = {m.name if m.kind == "histogram" else f"{m.name}_total" for m in counted} | GAUGES.keys()
    assert names_in(r"`(plaita_\w+)`") <= shown


def test_every_check_of_doctor_is_explained() -> None:
    sources = "".join(
        (ROOT / "src" / "plaita" / path).read_text(encoding="utf-8")
        for path in ("runtime/checking.py", "backends/redis/examining.py", "backends/sqlite/examining.py")
    )
    checks = set(re.findall(r"Finding\(\s*\"([\w ]+)\"", sources))
    section = (ROOT / PAGE).read_text(encoding="utf-8").partition("## What doctor says")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([\w ]+)`", row)} == checks
