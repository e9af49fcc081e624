"""The published worker: a process on Redis, starts sent to its stream, rows read until they have ended."""

import json
import logging
import os
import subprocess
import sys
import time
import uuid

import redis
from plaita.tenant_context import set_current_tenant
from serving import serve

from plaita.server.task_queue import enqueue_task
from plaita.storage.redis import RedisFlowStorage

logging.disable(logging.CRITICAL)
URL = os.environ["BENCH_REDIS"]
STREAM = "plaita:flow:queue"
client = redis.Redis.from_url(URL, decode_responses=True)
set_current_tenant("default", source="explicit")


def burst(steps: int, count: int, processes: int, flow: dict) -> float:
    """Seconds from the first start until the last of ``count`` executions has ended."""
    client.flushall()
    RedisFlowStorage(client=client).save_flow(flow)
    command = [sys.executable, "-m", "plaita.server.flow_worker", "--redis-url", URL, "--concurrency", "8"]
    environment = {**os.environ, "PLAITA_LOG_LEVEL": "CRITICAL"}
    workers = [
        subprocess.Popen(
            [*command, "--consumer-name", f"w{i}"],
            env={**environment, "PLAITA_INSTANCE_ID": f"w{i}"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for i in range(processes)
    ]
    try:
        ended(start(flow, 5 * processes), workers)
        started = time.perf_counter()
        ended(start(flow, count), workers)
        return time.perf_counter() - started
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(60)


def start(flow: dict, count: int) -> list:
    ids = [uuid.uuid4().hex for _ in range(count)]
    for id in ids:
        task = {"type": "start", "flow_id": flow["flow_id"], "params": {"x": 0}, "execution_id": id}
        enqueue_task(client, STREAM, task)
    return ids


def ended(ids: list, workers: list) -> None:
    left = list(ids)
    while left:
        rows = client.mget([f"plaita:execution:{id}" for id in left])
        words = [json.loads(row)["status"] if row else "" for row in rows]
        assert "error" not in words
        assert not [worker for worker in workers if worker.poll() is not None], "a worker ended by itself"
        left = [id for id, word in zip(left, words, strict=True) if word != "completed"]
        time.sleep(0.02 if len(left) < 20 else 0.2)


if __name__ == "__main__":
    serve(burst=burst)
