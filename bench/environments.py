"""Environments of peers: each system in an environment of its own, never a dependency of this project."""

from __future__ import annotations

import fcntl
import subprocess
import venv
from pathlib import Path

PEERS = Path(__file__).parent / "peers"


def interpreter(name: str, *packages: str) -> str:
    """The interpreter of ``bench/peers/.NAME``, into which ``packages`` are installed from the index at the first use,
    and anew when they are others.

    Raises ``OSError`` or ``SubprocessError`` when it cannot be built. Two processes may ask at once.
    """
    home = PEERS / f".{name}"
    python, ready, wanted = home / "bin" / "python", home / ".ready", " ".join(packages)
    with (PEERS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists() or ready.read_text(encoding="utf-8") != wanted:
            venv.create(home, with_pip=True)
            install = [str(python), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(install, check=True, capture_output=True, timeout=600)
            ready.write_text(wanted, encoding="utf-8")
    return str(python)
