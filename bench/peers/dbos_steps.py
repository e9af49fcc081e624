"""Durable workflows of steps that add one, on SQLite, in one process."""

import logging
import tempfile
import time

from dbos import DBOS
from serving import serve

logging.disable(logging.CRITICAL)
folder = tempfile.mkdtemp()
DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{folder}/bench.sqlite",
        "run_admin_server": False,
        "log_level": "CRITICAL",
    }
)


@DBOS.step()
def add_one(x: int) -> int:
    return x + 1


@DBOS.workflow()
def add(steps: int) -> int:
    x = 0
    for _ in range(steps):
        x = add_one(x)
    return x


def burst(steps: int, count: int, processes: int) -> float:
    """Seconds from the first start until the last of ``count`` workflows has ended."""
    assert processes == 1
    started = time.perf_counter()
    found = [DBOS.start_workflow(add, steps) for _ in range(count)]
    assert all(one.get_result() == steps for one in found)
    return time.perf_counter() - started


if __name__ == "__main__":
    DBOS.launch()
    serve(burst=burst)
