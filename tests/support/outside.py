"""Nodes whose effect is a line in a file outside the store: ``<monotonic ns> <pid> <idempotency key>``, fsynced."""

from __future__ import annotations

import ctypes
import os
import signal
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


class Grip(Append):
    """Lets no other thread of its process run for that long, as a long call into a library may."""

    node_type: ClassVar[str] = "grip"

    def execute(self, execution: Any) -> str:
        ctypes.PyDLL(None).usleep(int(self.seconds * 1_000_000))
        self.seconds = 0.0
        return super().execute(execution)


class Deaf(Append):
    """Says that it has begun, then hears nothing for that long."""

    node_type: ClassVar[str] = "deaf_for_long"

    def execute(self, execution: Any) -> str:
        seconds, self.seconds = self.seconds, 0.0
        key = super().execute(execution)
        time.sleep(seconds)
        return key


class Crash(Node):
    """Ends the process that runs it, as a fault in a native library would."""

    node_type: ClassVar[str] = "crash"

    def execute(self, execution: Any) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)
