"""A task that adds one, for workers of Celery."""

import os

from celery import Celery

URL = os.environ["BENCH_REDIS"]
app = Celery("bench", broker=URL, backend=URL)
app.conf.update(
    worker_prefetch_multiplier=16,
    task_acks_late=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 3600},
)


@app.task
def add_one(x: int) -> int:
    return x + 1
