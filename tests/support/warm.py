"""``plaita`` commands as processes that have imported the package already.

A process that has imported what commands import forks for each command. The command has a process id, folder,
environment and streams of its own, runs the module as ``python -m plaita.cli.main`` does, and ends with the code of it.
It does not show how an interpreter starts and is taken apart: the pages of the documentation start their commands cold.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

MODULE = "plaita.cli.main"
OWN = ("HOME", "PATH", "PWD")
"""Variables that nothing reads while it is imported. With the same others a command may come from the same process."""
LENGTH = struct.Struct("!i")
_started: dict[frozenset[tuple[str, str]], Warm] = {}
_starting = threading.Lock()


def run(
    arguments: list[str], *, cwd: Path, env: Mapping[str, str], stdin: str = "", timeout: float
) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` of the command, its output captured. Raises ``TimeoutExpired``, the command killed."""
    known = frozenset((k, v) for k, v in env.items() if k not in OWN and not k.startswith(("PLAITA_", "PYTEST_")))
    with _starting:
        if known not in _started:
            _started[known] = Warm(dict(known) | {k: env[k] for k in OWN if k in env})
    return _started[known].run(arguments, cwd, dict(env), stdin, timeout)


class Warm:
    """The process that forks, and the way to it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm")
        path = f"{self._folder.name}/s"
        # It ends when its stdin does, however this process ends.
        self._process = subprocess.Popen(
            [sys.executable, __file__, path], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/"
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), "it does not start"
        self._path = path
        atexit.register(self._stop)

    def run(
        self, arguments: list[str], cwd: Path, env: dict[str, str], stdin: str, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        pipes = [os.pipe() for _ in range(3)]
        theirs, ours = _ends(pipes)
        with socket.socket(socket.AF_UNIX) as way:
            way.connect(self._path)
            message = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": env}).encode()
            socket.send_fds(way, [LENGTH.pack(len(message))], theirs)
            way.sendall(message)
            for fd in theirs:
                os.close(fd)
            [pid] = LENGTH.unpack(_exactly(way, LENGTH.size))
            killed = threading.Event()

            def kill() -> None:
                killed.set()
                os.kill(pid, signal.SIGKILL)

            late = threading.Timer(timeout, kill)
            late.start()
            said = _talk(ours, stdin)
            [code] = LENGTH.unpack(_exactly(way, LENGTH.size))
            late.cancel()
            if killed.is_set():
                raise subprocess.TimeoutExpired(arguments, timeout, *said)
        return subprocess.CompletedProcess(arguments, code, *said)

    def _stop(self) -> None:
        self._process.communicate()
        self._folder.cleanup()


def _ends(pipes: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Of stdin, stdout and stderr: the ends of the command and those of this process."""
    (stdin, put), (out, stdout), (err, stderr) = pipes
    return [stdin, stdout, stderr], [put, out, err]


def _talk(ends: list[int], stdin: str) -> tuple[str, str]:
    """Write what goes in, and read what comes out to the end of both."""
    said: list[str] = ["", ""]

    def put() -> None:
        try:
            with os.fdopen(ends[0], "w", encoding="utf-8") as stream:
                stream.write(stdin)
        except BrokenPipeError:
            pass  # It ended without reading it.

    def take(index: int) -> None:
        with os.fdopen(ends[1 + index], encoding="utf-8") as stream:
            said[index] = stream.read()

    aside = [threading.Thread(target=put), threading.Thread(target=take, args=(1,))]
    for thread in aside:
        thread.start()
    take(0)
    for thread in aside:
        thread.join()
    return said[0], said[1]


def _exactly(way: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        part = way.recv(size - len(found))
        if not part:
            raise EOFError("the process that forks has gone")
        found += part
    return found


# The process that forks.


def _preload() -> None:
    """Import what the commands import. The module itself is run, and has to be new."""
    import plaita.cli

    for module in pkgutil.iter_modules(plaita.cli.__path__, "plaita.cli."):
        if module.name != MODULE:
            importlib.import_module(module.name)
    for name in (
        "plaita.app",
        "plaita.cli.desk",
        "typer.rich_utils",
        "plaita.backends.redis",
        "plaita.backends.sqlite",
    ):
        importlib.import_module(name)


def _serve(path: str) -> dict[str, Any]:
    """Fork for every command; returns in the process of a command, with what it is to do."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            ready, _, _ = select.select([listening.fileno(), 0], [], [])
            if 0 in ready:
                sys.exit()
            way, _ = listening.accept()
            if os.fork() == 0:
                break
            way.close()
            _bury()
    return _beside(way)


def _bury() -> None:
    """Forget those that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _beside(way: socket.socket) -> dict[str, Any]:
    """Fork once more, tell what became of that process, and be gone; returns in that process."""
    head, streams, _, _ = socket.recv_fds(way, LENGTH.size, 3)
    [size] = LENGTH.unpack(head)
    job: dict[str, Any] = json.loads(_exactly(way, size))
    pid = os.fork()
    if pid == 0:
        way.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        return job
    for number, stream in enumerate(streams):
        os.close(stream)
        os.close(number)
    way.sendall(LENGTH.pack(pid))
    way.sendall(LENGTH.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    os._exit(0)


def main() -> None:
    """Serve at the path that is given; in the process of a command, run it."""
    _preload()
    gc.collect()
    gc.freeze()
    job = _serve(sys.argv[1])
    os.chdir(job["cwd"])
    os.environ.clear()
    os.environ.update(job["env"])
    sys.path[0] = job["cwd"]
    sys.argv = ["", *job["arguments"]]
    try:
        runpy.run_module(MODULE, run_name="__main__", alter_sys=True)
    except SystemExit as e:
        if isinstance(e.code, int):
            _leave(e.code)
        raise


def _leave(code: int) -> None:
    """What an interpreter does at its end, but for taking itself apart: the pages are those of the process before."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread():
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
