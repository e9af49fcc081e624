"""Import time against pydantic's own, and the memory of an idle worker."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.servers import redis_server

ROUNDS = 9
BASE = "import pydantic\nclass A(pydantic.BaseModel):\n    x: int"
"""What every program that uses pydantic pays: most of it is imported with the first model."""


def _import_ms(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1000 * (time.perf_counter() - started)


def _idle_worker_mb(store: str) -> float:
    environ = {**os.environ, "PLAITA_STORE": store, "PLAITA_LOG_LEVEL": "ERROR"}
    process = subprocess.Popen([sys.executable, "-m", "plaita.cli.main", "worker"], env=environ)
    try:
        time.sleep(3)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    finally:
        process.terminate()
        process.wait()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def run() -> list[str]:
    """The lines of the report."""
    found: dict[str, list[float]] = {"pass": [], BASE: [], "from plaita import Flow": []}
    for _ in range(ROUNDS):
        for code, values in found.items():
            values.append(_import_ms(code))
    ms = {code: statistics.median(values) for code, values in found.items()}
    bare = ms["pass"]
    pydantic, flow = ms[BASE] - bare, ms["from plaita import Flow"] - bare
    lines = ["start-up (median of 9, interpreter subtracted)"]
    lines.append(f"  pydantic with one model {pydantic:.0f} ms, Flow {flow:.0f} ms: pydantic {flow - pydantic:+.0f} ms")
    with tempfile.TemporaryDirectory() as folder, redis_server() as url:
        embedded, fleet = _idle_worker_mb(f"sqlite:///{folder}/idle.db"), _idle_worker_mb(url)
    lines.append(f"  idle worker: {embedded:.0f} MB on SQLite, {fleet:.0f} MB on Redis")
    return lines
