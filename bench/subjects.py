"""Subjects side by side: ours, the published package in its own environment, and floors in this process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.environments import interpreter

HERE = Path(__file__).parent
PEER_VERSION = "0.63"


class Subject:
    """One process that answers requests."""

    def __init__(self, name: str, python: str) -> None:
        self.name = name
        command = [python, str(HERE / "subject.py"), name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and read its answer."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the subject has no pipes")
        print(json.dumps(request), file=stdin, flush=True)
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


def ours() -> Subject:
    """This project."""
    return Subject("ours", sys.executable)


def published() -> Subject:
    """The published package."""
    return Subject("published", peer_python())


def peer_python() -> str:
    """The interpreter of the published package; see ``interpreter``."""
    return interpreter("published", f"plaita[server]=={PEER_VERSION}")
