"""Real worker processes on one SQLite file, and the outside file their effects go to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plaita.runtime import Runtime
from tests.support import warm

HERE = Path(__file__).parent
NODES = str(HERE / "outside.py")
PATIENCE_S = 15.0


@dataclass(frozen=True)
class Line:
    """One effect."""

    at_ns: int
    pid: int
    key: str


@dataclass
class Fleet:
    """Workers that share ``folder/store.db``."""

    folder: Path
    options: tuple[str, ...] = ()
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'store.db'}"

    @property
    def environ(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PLAITA_")}
        own = {"PLAITA_STORE": self.store, "PLAITA_IMPORTS": NODES, "PLAITA_LOG_LEVEL": "WARNING"}
        return {**kept, **own, **self.variables}

    def start_worker(self, **streams: Any) -> int:
        command = [sys.executable, "-m", "plaita.cli.main", "worker", *self.options]
        process = subprocess.Popen(command, env=self.environ, stdout=subprocess.DEVNULL, **streams)
        self.processes[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> int:
        """Kill -9; the monotonic time of it."""
        at = time.monotonic_ns()
        self.processes[pid].send_signal(signal.SIGKILL)
        self.processes.pop(pid).wait()
        return at

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait(PATIENCE_S)
        self.processes.clear()

    def runtime(self) -> Runtime:
        return Runtime.open(self.store)


def lines_of(path: Path) -> list[Line]:
    """Whole lines so far."""
    if not path.exists():
        return []
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1].splitlines()
    return [Line(int(at), int(pid), key) for at, pid, key in (line.split(" ", 2) for line in whole)]


def wait_until(check: Any, what: str, patience_s: float = PATIENCE_S) -> Any:
    """Poll until the check gives something truthy."""
    ends = time.monotonic() + patience_s
    while time.monotonic() < ends:
        found = check()
        if found:
            return found
        time.sleep(0.001)
    raise AssertionError(f"not within {patience_s} s: {what}")


def chain_of(count: int, path: Path, prefix: str = "n") -> dict[str, Any]:
    """start -> count effects -> end."""
    nodes: list[dict[str, Any]] = [{"type": "start", "id": "s", "next": f"{prefix}1"}]
    for i in range(1, count + 1):
        following = f"{prefix}{i + 1}" if i < count else "e"
        nodes.append({"type": "append", "id": f"{prefix}{i}", "path": str(path), "next": following})
    nodes.append({"type": "end", "id": "e", "output": f"$NODE.{prefix}{count}"})
    return {"nodes": nodes}


def branches_of(names: str, count: int, path: Path) -> dict[str, Any]:
    """Parallel branches of ``count`` effects each."""
    branches = [{"name": name, "flow": chain_of(count, path, name)} for name in names]
    nodes = [
        {"type": "start", "id": "s", "next": "p"},
        {"type": "parallel", "id": "p", "branches": branches, "next": "e"},
        {"type": "end", "id": "e", "output": "$NODE.p"},
    ]
    return {"flow_id": "effects", "nodes": nodes}


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(fleet: Fleet, *args: str) -> Answer:
    """Run ``plaita`` as a user would, in the fleet's folder."""
    done = warm.run([*args], cwd=fleet.folder, env=fleet.environ, timeout=PATIENCE_S * 2)
    return Answer(done.returncode, done.stdout, done.stderr)
