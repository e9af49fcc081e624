"""The record of a worker in the documented registry, in its documented fields."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from plaita.backends.limits import Limits
from plaita.backends.redis.keys import PREFIX
from plaita.ports.processes import Process, State

SERVICE_TYPE: Final = "flow_worker"
CONTRACT: Final = 2
"""The version of the queue contract that the record names."""


def record(process: Process, store: str, limits: Limits) -> bytes:
    """JSON bytes. Times are ISO 8601 without a zone, in the time of this machine, as readers of the record expect.

    ``store`` is the name of the store, without a password.
    """
    facts, place, streams = process.facts, urlsplit(store), limits.streams.keys(PREFIX)
    ids = _ids(limits)
    metadata: dict[str, Any] = {
        **ids,
        "queue_name": streams["inbox"],
        "queues": list(process.queues),
        "queue_contract_version": CONTRACT,
        "consumer_group": limits.streams.group,
        "dlq_key": streams["dlq"],
        "config_effective_at": _utc(process.started_ms),
        "tenant_status_epoch": ids["deployment_epoch"],
        "max_deliveries": facts.setup.get("attempts_max"),
        "lease_ttl_seconds": limits.lease.lease_ms / 1000,
        "task_max_age_seconds": limits.message_age_ms // 1000,
        "dlq_max_len": limits.dlq_max,
        "redis_url": store,
        "redis_host": place.hostname,
        "redis_port": place.port if place.scheme in ("redis", "rediss") else None,
        "redis_db": int(database) if (database := place.path.rpartition("/")[2]).isdecimal() else None,
        "version": facts.version,
        "holder": process.holder,
        "pid": process.pid,
        "worker_capacity": json.dumps({**_capacity(process), **ids}),
    }
    service = {
        "instance_id": facts.instance,
        "service_type": SERVICE_TYPE,
        "host": facts.host,
        "status": facts.state,
        "start_time": _local(process.started_ms),
        "metadata": metadata,
        "active_tasks": facts.active,
        "last_heartbeat": _local(facts.beat_ms),
    }
    return json.dumps(service).encode()


def in_state(process: Process, state: State) -> Process:
    """The same process in another state."""
    return replace(process, facts=replace(process.facts, state=state))


def _ids(limits: Limits) -> dict[str, Any]:
    """What programs that share a stream compare."""
    fleet = limits.fleet
    return {
        "config_family": fleet.family or None,
        "config_generation": fleet.generation or None,
        "budget_generation": fleet.budget or None,
        "deployment_epoch": fleet.epoch or "legacy",
    }


def _capacity(process: Process) -> dict[str, Any]:
    facts = process.facts
    return {
        "schema_version": 1,
        "free_disk_gib": shutil.disk_usage(".").free / 2**30,
        "min_free_disk_gib": 0.0,
        "disk_blocked": False,
        "active_tasks": facts.active,
        "concurrency": facts.concurrency,
        "sampled_at": _utc(facts.beat_ms),
    }


def _local(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000).isoformat()  # noqa: DTZ006


def _utc(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat()
