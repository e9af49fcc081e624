"""Pipelines of tasks that add one, results in Redis."""

import subprocess
import sys
import time
from pathlib import Path

from huey_app import add_one, app
from serving import serve


def burst(steps: int, count: int, processes: int) -> float:
    """Seconds from the first start until the last of ``count`` pipelines has ended."""
    kind = ["-w", str(processes), "-k", "thread" if processes == 1 else "process"]
    command = [sys.executable, "-m", "huey.bin.huey_consumer", "huey_app.app", "-d", "0.01", "-m", "0.1", *kind]
    worker = subprocess.Popen(command, cwd=Path(__file__).parent, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        last(start(1))(blocking=True, timeout=60)
        started = time.perf_counter()
        found = [start(steps) for _ in range(count)]
        assert all(last(one)(blocking=True, timeout=300, backoff=1.0, max_delay=0.005) == steps for one in found)
        return time.perf_counter() - started
    finally:
        worker.terminate()
        worker.wait(30)


def start(steps: int):
    task = add_one.s(0)
    for _ in range(steps - 1):
        task = task.then(add_one)
    return app.enqueue(task)


def last(result):
    """The result of the last task; a pipeline answers with a group."""
    return result._results[-1] if hasattr(result, "_results") else result


if __name__ == "__main__":
    serve(burst=burst)
