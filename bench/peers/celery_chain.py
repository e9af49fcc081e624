"""Chains of tasks that add one, acknowledged late, results in Redis."""

import subprocess
import sys
import time
from pathlib import Path

from celery import chain
from celery_app import add_one
from serving import serve


def burst(steps: int, count: int, processes: int) -> float:
    """Seconds from the first start until the last of ``count`` chains has ended."""
    pool = ["-P", "solo"] if processes == 1 else ["-P", "prefork", "-c", str(processes)]
    command = [sys.executable, "-m", "celery", "-A", "celery_app", "worker", "-l", "CRITICAL", *pool]
    worker = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        add_one.delay(1).get(timeout=60)
        started = time.perf_counter()
        found = [chain(add_one.s(0), *(add_one.s() for _ in range(steps - 1)))() for _ in range(count)]
        assert all(result.get(timeout=300) == steps for result in found)
        return time.perf_counter() - started
    finally:
        worker.terminate()
        worker.wait(30)


if __name__ == "__main__":
    serve(burst=burst)
