"""Both packages, each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.subjects import peer_python


class Player:
    """A process that answers messages with a package."""

    def __init__(self, python: str, script: Path) -> None:
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def play(self, **message: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(message), file=self._process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def both(script: str) -> Iterator[tuple[Player, Player]]:
    """A script of this folder run by ours and by the published package."""
    try:
        theirs = peer_python()
    except (OSError, subprocess.SubprocessError) as e:
        pytest.skip(f"the environment of the published package cannot be built here: {e}")
    path = Path(__file__).parent / script
    found = Player(sys.executable, path), Player(theirs, path)
    try:
        yield found
    finally:
        for player in found:
            player.close()
