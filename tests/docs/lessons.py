"""Reading and running the blocks of a page: what a reader would type, and what they would see.

- a block with a ``title`` is a file;
- ``sh`` is a list of commands; ``<!-- exits: N -->`` before it is the exit code of the last one, and
  ``<!-- runs until: STATUS -->`` says that the last one is a process that is stopped when the newest execution has that
  status. ``TASK`` and ``ID`` stand for the first open task and the newest execution;
- ``python`` without a title is a program;
- ``text`` is what the block before it prints, stdout and stderr as they come. ``…`` stands for anything within a line,
  a line of it alone for any number of lines.

A block of another kind is refused.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.cli.shell import ROOT, Shell, until

FENCE = re.compile(
    r"(?:<!-- (?P<mark>[a-z ]+): (?P<value>\w+) -->\n)?"
    r"```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?(?P<rest>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
LANGUAGES = ("sh", "python", "text")


class Unknown(Exception):
    """A block that nobody knows how to run."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    language: str
    text: str
    title: str = ""
    mark: str = ""
    value: str = ""

    @property
    def first(self) -> str:
        """Its first line."""
        return self.text.split("\n", 1)[0]


def blocks(page: str) -> list[Block]:
    """The blocks of a page under ``docs``. Raises ``Unknown``."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = []
    for m in FENCE.finditer(text):
        block = Block(page, m["language"], m["text"], m["title"] or "", m["mark"] or "", m["value"] or "")
        known = block.title or block.language in LANGUAGES
        if not known or m["rest"] or block.mark not in ("", "exits", "runs until"):
            raise Unknown(f"{page}: a block that nobody runs: ```{m['language']}{m['rest']} {block.first}")
        found.append(block)
    if len(found) != text.count("\n```") / 2:
        raise Unknown(f"{page}: a block that is not closed, or not at the beginning of a line")
    return found


class Lesson:
    """One page, run block by block in one folder."""

    def __init__(self, reader: Shell) -> None:
        self.reader, self.printed = reader, ""

    def play(self, block: Block) -> None:
        """Run a block; what it prints is kept for the ``text`` behind it."""
        if block.title:
            path = self.reader.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "sh":
            self.printed = self._shell(block)
        elif block.language == "python":
            self.printed = self._run(shlex.join([sys.executable, "-c", block.text]), 0)
        else:
            assert matches(block.text, self.printed), f"{block.page} shows\n{block.text}\nbut it is\n{self.printed}"

    def _shell(self, block: Block) -> str:
        *before, last = block.text.strip().splitlines()
        printed = "".join(self._run(command, 0) for command in before)
        if block.mark == "runs until":
            self._until(last, block.value)
            return printed
        return printed + self._run(last, int(block.value or 0))

    def _run(self, command: str, code: int) -> str:
        done = subprocess.run(
            ["sh", "-c", self._named(command)],
            cwd=self.reader.folder,
            env=self.reader.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    def _until(self, command: str, status: str) -> None:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            cwd=self.reader.folder,
            env=self.reader.environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            until(lambda: self.reader.plaita("ps --json").json["items"][0]["status"] == status)
        finally:
            process.terminate()
        assert process.wait() == 0

    def _named(self, command: str) -> str:
        if re.search(r"\bTASK\b", command):
            command = command.replace("TASK", self.reader.plaita("inbox --json").json["items"][0]["task_id"])
        if re.search(r"\bID\b", command):
            command = command.replace("ID", self.reader.plaita("ps --json").json["items"][0]["execution_id"])
        return command


def matches(shown: str, printed: str) -> bool:
    """Is it what the page shows?"""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"\s*\n"
        for line in shown.rstrip("\n").split("\n")
    ]
    return re.fullmatch("".join(lines), printed.rstrip("\n") + "\n") is not None


def reader_in(folder: Path) -> Shell:
    """Somebody with an empty home and ``plaita`` on the path."""
    bin_ = folder / "bin"
    bin_.mkdir()
    plaita = bin_ / "plaita"
    plaita.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m plaita.cli.main "$@"\n')
    plaita.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    return Shell(home, {"PATH": f"{bin_}:{Shell(folder).environment['PATH']}", "PYTHONUNBUFFERED": "1"})
