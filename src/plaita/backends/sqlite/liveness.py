"""Proof of life by file locks: one byte of ``<store>.lock`` a process, held until the process is gone.

POSIX locks belong to the process: they end with it however it ends, are not inherited by a fork, and are all dropped
when the process closes *any* descriptor of the file. So the file is opened once per process and never closed.
"""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

from plaita.base.errors import Unavailable

_guard = threading.Lock()
_files: dict[tuple[int, str], LockFile] = {}


def lock_file(store: Path) -> LockFile:
    """The lock file of a store in this process, opened on first use."""
    path = str(store.resolve()) + ".lock"
    key = (os.getpid(), path)
    with _guard:
        if key not in _files:
            _files[key] = LockFile(path)
        return _files[key]


class LockFile:
    """The bytes this process holds. A process can always lock its own bytes again, so it must remember them."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as e:
            raise Unavailable(f"the lock file {path} cannot be opened ({e})", "make its directory writable") from e
        self._mine: set[int] = set()
        self._inspected: set[int] = set()
        self._lock = threading.Lock()

    def hold(self, byte: int) -> None:
        """Announce a process of ours."""
        with self._lock:
            if not self._try(byte):
                raise Unavailable(f"byte {byte} of {self._path} is locked by another process", "try again")
            self._mine.add(byte)

    def take_dead(self, byte: int) -> bool:
        """Whether the process behind the byte is dead; then the byte is ours until ``let_go``."""
        with self._lock:
            if byte in self._mine:
                return False
            if byte not in self._inspected and not self._try(byte):
                return False
            self._inspected.add(byte)
            return True

    def let_go(self, byte: int) -> None:
        """Give a byte back, held or taken."""
        with self._lock:
            self._mine.discard(byte)
            self._inspected.discard(byte)
            fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, byte)

    def _try(self, byte: int) -> bool:
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError:
            return False
        return True
