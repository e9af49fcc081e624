"""What an installation of the published system leaves on Redis: run by hand with that package, on a server of its own.

python tests/golden/published/record.py unix:///tmp/redis.sock > tests/golden/published/installation.json
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import redis

from plaita.server.execution_lease import RedisExecutionLease
from plaita.server.flow_worker import FlowWorker
from plaita.server.tenant_context import set_current_tenant
from plaita.storage import RedisExecutionStorage
from plaita.storage.redis import RedisFlowStorage


def flow(flow_id: str, version: str, *nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "flow_id": flow_id,
        "version": version,
        "nodes": [{"id": "s", "type": "start", "next": "sum"}, *nodes],
        **more,
    }


def total(following: str) -> dict[str, Any]:
    return {"id": "sum", "type": "assignment", "output": {"total": "$F.add($INPUT.a, $INPUT.b)"}, "next": following}


def end(output: Any) -> dict[str, Any]:
    return {"id": "e", "type": "end", "output": output}


PAID = flow(
    "paid", "1", total("wait"), {"id": "wait", "type": "event", "event_type": "paid", "next": "e"},
    end({"sum": "$NODE.sum.total", "by": "$NODE.wait.event_data.by"}),
)  # fmt: skip
CALM = flow(
    "calm", "2", total("pause"), {"id": "pause", "type": "delay", "delay_seconds": 1, "next": "e"}, end("$NODE.sum")
)
ASKS = flow(
    "asks", "1.10", total("ask"),
    {
        "id": "ask", "type": "approval", "approval_title": "May I?", "approval_content": "?", "approvers": ["ann"],
        "next": "e",
    },
    end("$NODE.ask.status"),
)  # fmt: skip
CALLS = flow(
    "calls", "1", total("call"),
    {"id": "call", "type": "http", "url": "http://127.0.0.1:9/", "requestTimeout": 1, "next": "e"}, end("$NODE.sum"),
)  # fmt: skip


def main() -> None:
    """Play the installation, then write every key of it."""
    logging.disable(logging.CRITICAL)
    client: Any = redis.Redis.from_url(sys.argv[1], decode_responses=True)
    client.flushall()
    set_current_tenant("default")
    executions, flows = RedisExecutionStorage(client=client), RedisFlowStorage(client=client)
    worker = FlowWorker(executions, flows)
    for one in (
        PAID,
        CALM,
        ASKS,
        CALLS,
        {**ASKS, "version": "1.9"},
        {**PAID, "flow_id": "lost"},
        {**PAID, "flow_id": "other"},
    ):
        flows.save_flow(one)
    for name, version, ids in (
        ("paid", "1", ("waits", "waits-too", "held")), ("calm", "2", ("pauses",)), ("asks", "1.10", ("asks",)),
        ("lost", "1", ("lost",)), ("other", "1", ("changed",)),
    ):  # fmt: skip
        for execution_id in ids:
            worker.start_flow(name, {"a": 2, "b": 3}, version, execution_id=execution_id)
    _ended(worker, executions)
    _failed(worker)
    client.delete("plaita:flow:lost:1")
    client.srem("plaita:flow_list", "lost")
    flows.save_flow({**PAID, "flow_id": "other", "desc": "changed"})
    RedisExecutionLease(client).try_acquire("held", "resume:machine-1:0123456789abcdef", 100_000)
    client.set("plaita:execution:broken", '{"execution_id": "broken", "context": [')
    client.zadd("plaita:execution:index", {"broken": 1, "gone": 1})
    set_current_tenant("acme")
    flows = RedisFlowStorage(client=client, namespace="plaita:acme")
    flows.save_flow(PAID)
    worker = FlowWorker(RedisExecutionStorage(client=client, namespace="plaita:acme"), flows)
    worker.start_flow("paid", {"a": 5, "b": 6}, "1", execution_id="acme-waits")
    sys.stdout.write(json.dumps([_key(client, key) for key in sorted(client.keys("*"))], ensure_ascii=False, indent=1))


def _ended(worker: FlowWorker, executions: Any) -> None:
    worker.start_flow("paid", {"a": 1, "b": 1}, "1", execution_id="ended")
    wait = executions.load_execution_state("ended").context["$NODE"]["wait"]
    worker.resume_flow("paid", "ended", "event", {"by": "bob", "subscription_id": wait["subscription_id"]})


def _failed(worker: FlowWorker) -> None:
    for kind in ("start", "continue"):
        try:
            if kind == "start":
                worker.start_flow("calls", {"a": 2, "b": 3}, "1", execution_id="failed")
            else:
                worker.resume_flow("calls", "failed", kind)
        except Exception as e:  # noqa: BLE001 - whatever it says, the row is what counts
            sys.stderr.write(f"{type(e).__name__} {e}\n")


def _key(client: Any, key: str) -> dict[str, Any]:
    kind = client.type(key)
    read = {
        "string": client.get, "set": lambda k: sorted(client.smembers(k)), "hash": client.hgetall,
        "zset": lambda k: client.zrange(k, 0, -1, withscores=True), "list": lambda k: client.lrange(k, 0, -1),
    }  # fmt: skip
    return {"key": key, "type": kind, "value": read[kind](key)}


if __name__ == "__main__":
    main()
