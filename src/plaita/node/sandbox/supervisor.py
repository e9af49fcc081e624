"""The first process of a script: forks the script's own, watches it, says how it ended, and ends the whole group.

It is the leader of a session and of a process group, and it holds no author's code: whatever a script does to itself,
somebody is left who knows. Its standard input is a socket to the worker; when that one closes, because the worker wants
no result or is dead, everything is killed.

The answer is ``b"%d %d %d\\n"`` (lengths) and three texts: the verdict as JSON, the ends of stdout and of stderr.
"""

from __future__ import annotations

import marshal
import os
import select
import time

from plaita.node.sandbox import script

TYPE_CHECKING = False  # importing typing would take as long as all the rest
if TYPE_CHECKING:
    from typing import Any

PARENT = 0
KILL = 9
TICK_S = 0.1
"""How often a script is looked at that neither writes nor ends; its end is usually seen at once."""
CLOSED_TICK_S = 0.002
"""The same after it has closed the channel of its result: it ends, or it has closed what is not its own."""
CHUNK = 65_536


def main() -> None:
    """Serve one request, then end with everything that the script has started."""
    try:
        request = marshal.loads(_receive_all())  # nosec B302
        _send(PARENT, _serve(request))
    finally:
        os.killpg(0, KILL)


def _receive_all() -> bytes:
    """The request: eight bytes of length, then as many."""
    size = int.from_bytes(_receive(8), "big")
    return _receive(size)


def _receive(size: int) -> bytes:
    parts = []
    while size:
        part = os.read(PARENT, min(size, 1 << 20))
        if not part:
            raise SystemExit("the worker is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _send(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _serve(request: dict[str, Any]) -> bytes:
    pipes = [os.pipe() for _ in range(3)]
    pid = os.fork()
    if pid == 0:
        try:
            for reading, _ in pipes:
                os.close(reading)
            script.begin(request, *(writing for _, writing in pipes))
        finally:
            os._exit(script.NO_RESULT)  # never back into the code of the supervisor
    for reading, writing in pipes:
        os.close(writing)
        os.set_blocking(reading, False)
    watch = _Watch(pid, request, [reading for reading, _ in pipes])
    verdict = watch.verdict().encode()
    return b"%d %d %d\n" % (len(verdict), len(watch.out), len(watch.err)) + verdict + watch.out + watch.err


class _Watch:
    """Reads what the script writes until it ends or a limit ends it."""

    def __init__(self, pid: int, request: dict[str, Any], pipes: list[int]) -> None:
        self._pid, self._nonce = pid, request["nonce"]
        self._result_max, self._output_max = request["result_max"], request["output_max"]
        self._ends = time.monotonic() + request["seconds"]
        self._result, self._out, self._err = pipes
        self._open = set(pipes)
        self._written = bytearray()
        self.out = self.err = b""

    def verdict(self) -> str:
        """How it ended, as JSON text."""
        while True:
            status = self._look()
            if status is not None:
                while self._read(select.select(self._open, [], [], 0)[0]):
                    pass
                return self._judge(status)
            if len(self._written) > self._result_max:
                return '{"limit": "size"}'
            if time.monotonic() >= self._ends:
                return '{"limit": "time"}'

    def _look(self) -> int | None:
        """Wait for a moment; the exit status when the process has ended."""
        tick = TICK_S if self._result in self._open else CLOSED_TICK_S
        left = max(0.0, min(tick, self._ends - time.monotonic()))
        ready = select.select([PARENT, *self._open], [], [], left)[0]
        if PARENT in ready:
            os.killpg(0, KILL)
        self._read(ready)
        pid, status = os.waitpid(self._pid, os.WNOHANG)
        return status if pid else None

    def _read(self, ready: list[int]) -> bool:
        """Take what is there; is there more to come?"""
        for fd in ready:
            part = os.read(fd, CHUNK)
            if not part:
                self._open.discard(fd)
            elif fd == self._result:
                self._written += part
            elif fd == self._out:
                self.out = (self.out + part)[-self._output_max :]
            else:
                self.err = (self.err + part)[-self._output_max :]
        return bool(ready) and len(self._written) <= self._result_max

    def _judge(self, status: int) -> str:
        """The answer of a process that has ended: exactly one frame under the secret of this request, or it failed."""
        head = len(self._nonce) + script.LENGTH_DIGITS
        sound = self._written.startswith(self._nonce) and len(self._written) >= head
        if sound and status == 0 and int(self._written[len(self._nonce) : head], 16) == len(self._written) - head:
            return self._written[head:].decode()
        if self._written:
            return '{"limit": "channel"}'
        return f'{{"exit": {os.waitstatus_to_exitcode(status)}}}'
