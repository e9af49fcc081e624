"""Every command a reader is shown works: pages are read, and their shell blocks are run.

A shell block stands below ``<!-- commands: KIND -->``.

``setup``: the installation is replaced by the package under test, the last command ends at a wait. ``story``: commands
with TASK, the id of the first open task. ``run``: commands as they are. ``worker``: the last one runs until it is told
to stop. ``beside``: the first one is a server that runs while the others do. ``fleet``: a Redis server, the variable
that names it, and a worker. ``checks``: targets of the Makefile, which must exist.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cli.shell import EXAMPLES, ROOT, Shell, lines_of, until
from tests.servers import free_port, redis_at

pytestmark = pytest.mark.timeout(90)

PAGES = ("README.md", "examples/README.md", "docs/guide/index.md")
FLEET = "docs/guide/fleet.md"
FENCE = re.compile(r"(?:<!-- commands: (?P<kind>\w+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)```", re.DOTALL)
LANGUAGES = {"sh", "text", "yaml", "python", "mermaid"}
INSTALLS = ("python3 -m venv .venv", ". .venv/bin/activate", "pip install -q .")


@dataclass(frozen=True)
class Block:
    """A fenced block; ``kind`` is what its marker says."""

    page: str
    language: str
    kind: str
    text: str

    @property
    def commands(self) -> list[str]:
        return self.text.splitlines()


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(page, m["language"], m["kind"] or "", m["text"]) for m in FENCE.finditer(text)]


@pytest.fixture
def reader(tmp_path: Path) -> Shell:
    """Somebody with a copy of the examples, an empty home, and ``plaita`` on the path."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    plaita = bin_ / "plaita"
    plaita.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m plaita.cli.main "$@"\n')
    plaita.chmod(0o755)
    return Shell(tmp_path, {"PATH": f"{bin_}:{Shell(tmp_path).environment['PATH']}"})


def runs(reader: Shell, command: str, code: int = 0) -> str:
    done = subprocess.run(
        ["sh", "-c", command], cwd=reader.folder, env=reader.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout + done.stderr


def perform(reader: Shell, block: Block) -> None:
    match block.kind:
        case "setup":
            *installs, last = block.text.strip().split(" && ")
            assert tuple(installs) == INSTALLS
            assert "approve" in runs(reader, last, code=3)
        case "story":
            for command in block.commands:
                task = task_of(reader) if "TASK" in command else ""
                runs(reader, command.replace("TASK", task))
        case "run":
            for command in block.commands:
                runs(reader, command)
        case "worker":
            *before, worker = block.commands
            for command in before:
                runs(reader, command)
            work_until_all_is_done(reader, worker)
        case "beside":
            server, *rest = block.commands
            port = str(free_port())
            with beside(reader, server.replace("8010", port)):
                for command in rest:
                    runs(reader, command.replace("8010", port))
        case "checks":
            check_targets(block)
        case "fleet":
            with fleet(reader, block) as there:
                until(lambda: "1 process drives executions" in runs(there, "plaita doctor"))
        case _:
            raise AssertionError(f"{block.page}: a shell block without a marker: {block.text}")


@contextmanager
def fleet(reader: Shell, block: Block) -> Iterator[Shell]:
    """A server on a free port, and a worker that finds it by the exported URL; a shell with that variable."""
    server, export, worker = block.commands
    port, url = str(free_port()), export.removeprefix("export PLAITA_STORE=")
    shown = re.search(r"--port (\d+)", server)
    assert shown is not None and f":{shown[1]}/" in url
    with_store = replace(reader, variables={**reader.variables, "PLAITA_STORE": url.replace(shown[1], port)})
    with redis_at(*shlex.split(server.replace(shown[1], port))[1:]):
        process = subprocess.Popen(
            ["sh", "-c", f"exec {worker}"], cwd=reader.folder, env=with_store.environment, stderr=subprocess.DEVNULL
        )
        try:
            yield with_store
        finally:
            process.terminate()
            assert process.wait() == 0


@contextmanager
def beside(reader: Shell, command: str) -> Iterator[None]:
    """A server that runs while the other commands do; it says on stdout when it is there."""
    process = subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=reader.folder, env=reader.environment, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None and process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def task_of(reader: Shell) -> str:
    return str(reader.plaita("inbox --json").json["items"][0]["task_id"])


def work_until_all_is_done(reader: Shell, command: str) -> None:
    process = subprocess.Popen(
        ["sh", "-c", f"exec {command}"], cwd=reader.folder, env=reader.environment, stderr=subprocess.DEVNULL
    )
    try:
        until(lambda: {e["status"] for e in reader.plaita("ps --json").json["items"]} == {"completed"})
    finally:
        process.terminate()
    assert process.wait() == 0


def check_targets(block: Block) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in block.commands:
        make, *targets = command.split()
        assert make == "make"
        for target in targets:
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_work_from_the_first_to_the_last(reader: Shell, page: str) -> None:
    found = [block for block in blocks(page) if block.language == "sh"]
    assert found
    if not any(block.kind == "setup" for block in found):
        runs(reader, "plaita --version")
    for block in found:
        perform(reader, block)


def test_a_fleet_begins_with_the_lines_of_its_guide_and_runs_what_is_started(reader: Shell) -> None:
    first, *rest = [block for block in blocks(FLEET) if block.language == "sh"]
    assert first.kind == "fleet"
    with fleet(reader, first) as there:
        for block in rest:
            perform(there, block)
        until(lambda: [e["status"] for e in there.plaita("ps --json").json["items"]] == ["suspended"])


@pytest.mark.parametrize("page", [*PAGES, FLEET])
def test_a_page_has_no_block_that_nobody_checks(page: str) -> None:
    for block in blocks(page):
        assert block.language in LANGUAGES, block.text
        assert (block.language == "sh") == bool(block.kind), block.text
    commands = [line for block in blocks(page) if block.language != "sh" for line in block.commands]
    assert not [line for line in commands if line.startswith(("$ ", "make ", "pip "))]


def test_the_readme_begins_with_two_commands_and_the_second_checks_everything() -> None:
    first, second, *_ = [block for block in blocks("README.md") if block.language == "sh"]
    assert (first.kind, second.kind) == ("setup", "checks")
    assert (len(first.commands), second.commands) == (1, ["make setup check test"])


def test_the_flow_in_the_readme_is_the_flow_in_the_examples() -> None:
    example = (EXAMPLES / "expense.yaml").read_text(encoding="utf-8")
    shown = [block.text for block in blocks("README.md") if block.language == "yaml"]
    assert shown
    for text in shown:
        assert text in example


def test_the_python_in_the_readme_runs(reader: Shell) -> None:
    [block] = [block for block in blocks("README.md") if block.language == "python"]
    printed = runs(reader, shlex.join([sys.executable, "-c", block.text]))
    assert "'result': 'approved'" in printed
    assert len(lines_of(reader.folder / "outbox.jsonl")) == 1


def test_a_block_without_a_marker_is_refused(reader: Shell) -> None:
    [block, *_] = blocks("README.md")
    with pytest.raises(AssertionError, match="without a marker"):
        perform(reader, replace(block, kind=""))
