"""Nodes whose effect is a line in a file outside the store: ``<monotonic ns> <pid> <idempotency key>``, fsynced."""

from __future__ import annotations

import os
import time
from typing import Any, ClassVar

from plaita import Node


class Append(Node):
    """Appends its line; ``seconds`` keeps it busy before that."""

    node_type: ClassVar[str] = "append"
    path: str
    seconds: float = 0.0

    def execute(self, execution: Any) -> str:
        if self.seconds:
            execution.cancel_event.wait(self.seconds)
        line = f"{time.monotonic_ns()} {os.getpid()} {execution.idempotency_key}\n"
        file = os.open(str(execution.evaluate(self.path)), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line.encode())
            os.fsync(file)
        finally:
            os.close(file)
        return str(execution.idempotency_key)
