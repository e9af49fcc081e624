"""A person at a shell: real ``plaita`` processes in a directory of their own."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import warm

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMMAND = (sys.executable, "-m", "plaita.cli.main")
ENOUGH_S = 30


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The error on stderr."""
        return json.loads(self.err)["error"]


@dataclass(frozen=True)
class Shell:
    """Commands run in ``folder`` with an environment that holds nothing of ours but ``variables``."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every command."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(ROOT / "src")} | self.variables

    def plaita(self, line: str, *, stdin: str = "", folder: Path | None = None) -> Answer:
        """Run ``plaita LINE`` to its end."""
        done = warm.run(
            shlex.split(line), cwd=folder or self.folder, env=self.environment, stdin=stdin, timeout=ENOUGH_S
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def begin(self, line: str, **streams: Any) -> subprocess.Popen[str]:
        """Start ``plaita LINE`` and leave it running."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
        return subprocess.Popen(
            [*COMMAND, *shlex.split(line)], cwd=self.folder, env=self.environment, text=True, **pipes
        )

    def write(self, name: str, text: str) -> Path:
        """A file in the folder."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def files(self) -> set[str]:
        """Everything in the folder."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}


def until(holds: Callable[[], bool]) -> None:
    """Wait for a fact outside this process."""
    pause = threading.Event()
    for _ in range(ENOUGH_S * 50):
        if holds():
            return
        pause.wait(0.02)
    raise AssertionError("it does not become true")


def lines_of(path: Path) -> list[str]:
    """The complete lines of a file, none while there is no file."""
    return path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
