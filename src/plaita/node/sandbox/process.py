"""The worker's side of a script: starts its supervisor, hands over the request, reads the answer, kills and reaps."""

from __future__ import annotations

import asyncio
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final
from weakref import WeakValueDictionary

from plaita.base.clock import SystemClock, new_id
from plaita.base.json import Json
from plaita.node.sandbox.verdict import Verdict, lost, read_verdict
from plaita.settings import SandboxSettings
from plaita.settings.current import inherited

HERE: Final = str(Path(__file__).parent)
VARIABLES: Final = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING")
"""What a script sees of the worker's environment."""
LAUNCH: Final = """\
import sys
for name in ("plaita", "plaita.node", "plaita.node.sandbox"):
    module = type(sys)(name)
    module.__path__ = [sys.argv[1]]
    sys.modules[name] = module
from plaita.node.sandbox.supervisor import main
main()
"""
"""The child's modules are imported under their names, but nothing else of the package is: it would take far longer."""
RESULT_BYTES_MAX: Final = 32_000_000
OUTPUT_BYTES_MAX: Final = 8_000
"""How much of the end of stdout and stderr is kept."""
GRACE_S: Final = 5.0
"""How much longer than its script a supervisor may take."""
POLL_S: Final = 0.05
_CHUNK: Final = 262_144


@dataclass(frozen=True, slots=True)
class Request:
    """A script and its input. ``restricted_path`` is where RestrictedPython is installed."""

    code: str
    value: Json
    backend: str = "subprocess"
    extra_modules: frozenset[str] = frozenset()
    restricted_path: str = ""

    def encoded(self, limits: SandboxSettings) -> bytes:
        """As the supervisor reads it: eight bytes of length, then a marshalled dictionary."""
        cpus = os.cpu_count() or 1
        body = marshal.dumps(
            {
                "nonce": new_id().encode(),
                "code": self.code,
                "input": self.value,
                "backend": self.backend,
                "extra_modules": self.extra_modules,
                "restricted_path": self.restricted_path,
                "seconds": limits.timeout_seconds,
                "cpu_seconds": int(limits.timeout_seconds * cpus) + 2,
                "memory_bytes": limits.memory_mb * 1024 * 1024 or None,
                "result_max": RESULT_BYTES_MAX,
                "output_max": OUTPUT_BYTES_MAX,
            }
        )
        return len(body).to_bytes(8, "big") + body


async def perform(request: Request, limits: SandboxSettings) -> Verdict:
    """Run a script; how it ended. When the awaiting task is cancelled its processes are gone before that is seen."""
    loop = asyncio.get_running_loop()
    async with _places(loop, limits.scripts):
        with _Started() as started:
            try:
                async with asyncio.timeout(limits.timeout_seconds + GRACE_S):
                    with suppress(ConnectionError):
                        await loop.sock_sendall(started.socket, request.encoded(limits))
                    while part := await _received(loop, started.socket):
                        started.take(part)
            except TimeoutError:
                return lost("does not answer")
            return started.verdict()


async def _received(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> bytes:
    try:
        return await loop.sock_recv(connection, _CHUNK)
    except ConnectionError:
        return b""


def perform_now(request: Request, limits: SandboxSettings, cancelled: Callable[[], bool]) -> Verdict | None:
    """The same without an event loop; ``None`` once ``cancelled`` says so."""
    clock = SystemClock()
    ends = clock.elapsed_ms() + (limits.timeout_seconds + GRACE_S) * 1000
    left = memoryview(request.encoded(limits))
    with _Started() as started:
        started.socket.settimeout(POLL_S)
        while not cancelled():
            if clock.elapsed_ms() > ends:
                return lost("does not answer")
            try:
                if left:
                    left = left[started.socket.send(left) :]
                elif part := started.socket.recv(_CHUNK):
                    started.take(part)
                else:
                    return started.verdict()
            except TimeoutError:
                continue
            except ConnectionError:
                return started.verdict()
    return None


_waiting_rooms: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakValueDictionary()
"""A room is gone with the last script in it, for it knows its loop and would keep it."""


def _places(loop: asyncio.AbstractEventLoop, count: int) -> asyncio.Semaphore:
    """The scripts of one loop; a process that drives executions has one."""
    room = _waiting_rooms.get(loop)
    if room is None:
        room = _waiting_rooms[loop] = asyncio.Semaphore(count)
    return room


class _Started:
    """A supervisor and the socket to it. Leaving the context kills its whole group, whatever became of it."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair()
        self._answer = bytearray()
        command = [sys.executable, "-I", "-S", "-X", "utf8", "-c", LAUNCH, HERE]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=inherited(VARIABLES),
                start_new_session=True,
            )
        except BaseException:
            self.socket.close()
            raise
        finally:
            theirs.close()
        self.socket.setblocking(False)

    def __enter__(self) -> _Started:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self.socket.close()
        # A killed process is gone within microseconds, and here nobody can cut the cleaning up.
        self._process.wait()

    def take(self, part: bytes) -> None:
        """Keep a part of the answer."""
        self._answer += part

    def verdict(self) -> Verdict:
        """What the supervisor said; ``lost`` when it was killed before it could."""
        head, _, rest = bytes(self._answer).partition(b"\n")
        sizes = [int(size) for size in head.split()]
        if len(sizes) != 3 or sum(sizes) != len(rest):
            return lost("was killed")
        body, out = sizes[0], sizes[0] + sizes[1]
        return read_verdict(rest[:body], _text(rest[body:out]), _text(rest[out:]))


def _text(data: bytes) -> str:
    return data.decode(errors="replace").strip()
