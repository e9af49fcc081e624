"""``python -m plaita.server.flow_worker``: a worker under its documented name, and the workers inside programs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from plaita.base.moved import from_homes

if TYPE_CHECKING:
    from plaita.core.fingerprint import (
        FLOW_HASH_ALGO,
        canonical_flow_definition_json,
        classify_flow_hash_change,
        compute_flow_definition_hash,
    )
    from plaita.server.documented.errors import (
        ExecutionIdConflictError,
        FlowHashMismatchError,
        NodeFailureTerminalizedError,
        ResumeProtocolError,
    )
    from plaita.server.documented.flow_worker import FlowWorker
    from plaita.server.documented.redis_flow_worker import RedisFlowWorker
    from plaita.server.task_queue import DEFAULT_CONSUMER_GROUP

__all__ = [
    "DEFAULT_CONSUMER_GROUP", "FLOW_HASH_ALGO", "ExecutionIdConflictError", "FlowHashMismatchError", "FlowWorker",
    "NodeFailureTerminalizedError", "RedisFlowWorker", "ResumeProtocolError", "canonical_flow_definition_json",
    "classify_flow_hash_change", "compute_flow_definition_hash", "main",
]  # fmt: skip


def main() -> None:
    """Run the program with the arguments of this process."""
    # By name: the command line is a layer above, and this module imports nothing from there.
    sys.exit(import_module("plaita.cli.programs").flow_worker())


_HOMES = {
    "plaita.core.fingerprint": (
        "FLOW_HASH_ALGO", "canonical_flow_definition_json", "classify_flow_hash_change", "compute_flow_definition_hash",
    ),
    "plaita.server.documented.errors": (
        "ExecutionIdConflictError", "FlowHashMismatchError", "NodeFailureTerminalizedError", "ResumeProtocolError",
    ),
    "plaita.server.documented.flow_worker": ("FlowWorker",),
    "plaita.server.documented.redis_flow_worker": ("RedisFlowWorker",),
    "plaita.server.task_queue": ("DEFAULT_CONSUMER_GROUP",),
}  # fmt: skip
__getattr__: Any = from_homes("plaita.server.flow_worker", _HOMES)

if __name__ == "__main__":
    main()
