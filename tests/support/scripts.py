"""Flows around one script, and the processes that scripts start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from plaita.core.flow import Flow
from plaita.node.registry import NodeRegistry
from tests.support.flows import chain


def script(code: str, **fields: Any) -> dict[str, Any]:
    """A ``code`` node that gets the input of the flow."""
    return {"id": "a", "type": "code", "code": code, "input": "$INPUT", **fields}


def flow_with(code: str, **fields: Any) -> Flow:
    """A flow whose output is what a script gives."""
    return Flow.model_validate(chain(script(code, **fields)), registry=NodeRegistry())


def run_script(code: str, value: Any = None, **fields: Any) -> Any:
    """What a script makes of a value."""
    return flow_with(code, **fields).run(value)


def is_alive(pid: int) -> bool:
    """Does the process run? One that has ended and that nobody has waited for does not."""
    try:
        if not Path("/proc/self").exists():
            os.kill(pid, 0)
            return True
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def pids_in(path: Path, count: int = 1) -> list[int]:
    """The process ids that a script has written, once there are ``count``."""
    text = path.read_text() if path.exists() else ""
    found = [int(line) for line in text[: text.rfind("\n") + 1].split()]
    return found if len(found) >= count else []
