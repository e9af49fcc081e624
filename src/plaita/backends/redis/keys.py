"""Every key of the store, named once. The scripts get the same names as Lua functions made from this table.

``{0}`` stands for the first part of a key; ``{n}`` is the length of the first part, where two parts would otherwise
run into each other. An id may contain colons, so it stands at the end of a key. Keys of the documented layout keep
their names; all others are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha1
from string import ascii_letters, digits
from typing import Final

PREFIX: Final = "plaita"
_PLAIN = frozenset(ascii_letters + digits + ":_-.$/ ")

NAMES: Final[dict[str, str]] = {
    # one run
    "run": "run:{0}",
    "frames": "run.frames:{0}",
    "waits": "run.waits:{0}",
    "consumed": "run.consumed:{0}",
    "log": "run.log:{0}",
    "names": "run.names:{0}",
    "name": "name:{0}",
    "grave": "grave:{0}",
    "kinds": "kinds",
    "kinds_counted": "kinds.counted",
    # one run as the documented layout shows it; {0} is the part of its tenant, with its colon
    "execution": "{0}execution:{1}",
    "execution_index": "{0}execution:index",
    "execution_lease": "{0}execution:lease:{1}",
    "execution_fence": "{0}execution:fence:{1}",
    "execution_fencegen": "{0}execution:fencegen:{1}",
    "execution_cancel": "{0}execution:cancel:{1}",
    "execution_wakeups": "{0}execution:g1wakeups:{1}",
    "execution_failures": "{0}execution:nofail:{1}",
    "execution_retries": "{0}execution:noderetry:{1}",
    "execution_refetches": "{0}execution:noderefetch:{1}",
    "execution_tombstone": "exec_tombstone:{0}",
    # what is due, who holds what, who counts as running
    "due": "queue:{0}:due:{1}",
    "leases": "queue:{0}:leases",
    "priorities": "queue:{0}:priorities",
    "queues": "queues",
    "held": "held",
    "deferred": "deferred",
    "running": "tenant_running:{0}",
    "parked": "parked:{0}:{1}",
    "tenants": "parked",
    "promotions": "promotions",
    "pulse": "pulse",
    "outbox": "outbox",
    "counters": "counters",
    # finding runs
    "kin": "runs:kin",
    "ended": "runs:ended",
    "by_status": "runs:status:{0}",
    "by_flow": "runs:flow:{0}",
    "by_key": "runs:key:{0}",
    "by_tag": "runs:tag:{0}",
    "by_tenant": "runs:tenant:{0}",
    # events
    "event": "evlog:{0}",
    "event_id": "evid:{0}",
    "event_times": "evtimes",
    "typed": "evtype:{0}",
    "keyed": "evkey:{n}:{0}:{1}",
    "waiting": "wtype:{0}",
    "waiting_keyed": "wkey:{n}:{0}:{1}",
    # people, messages, definitions, processes
    "task": "task:{0}",
    "tasks": "tasks",
    "tasks_of": "tasks:of:{0}",
    "inbox": "flow:queue",
    "offered": "flow:queue:offered",
    "dlq": "flow:queue:dlq",
    "tenant_status": "tenant_status",
    "tenant_epoch": "tenant_status:epoch",
    "tenant_quota": "tenant_quota",
    "replayed": "dlq:replay:{0}:{1}",
    "replay_audit": "dlq:replay:audit",
    "closure": "closure:{0}",
    "closures_used": "closures.used",
    "version": "flowversion:{n}:{0}:{1}",
    "versions": "flowversions:{0}",
    "flows": "flows",
    "process": "process:{0}",
    "processes": "processes",
    "registry": "registry:flow_worker:{0}",
    "control": "control:{0}",
    "hints": "hints",
    # who waits for what, in the documented layout
    "subscription": "subscription:data:{0}",
    "subscription_correlation": "subscription:correlation:{0}",
    # definitions in the documented layout; {0} is the part of a tenant, with its colon
    "published_flow": "{0}flow:{1}",
    "published_flows": "{0}flow_list",
    "published_versions": "{0}flow_versions:{1}",
    "shown_latest": "flows.latest",
    # what programs publish and look at, in the documented layout
    "published": "event:events:{0}",
    "published_types": "event:types:{0}",
    "published_channels": "events:{0}",
    "published_cursor": "event_reconcile:cursor",
    "published_turn": "event_reconcile:turn",
    "published_taken": "event_filter:taken:{0}",
    "published_given": "event_filter:given:{n}:{0}:{1}",
}

RESERVED: Final = frozenset(template.partition(":")[0] for template in NAMES.values()) | {
    "execution", "event", "events", "registry", "logs", "control", "subscription", "processed", "schedules", "schedule",
    "delay", "start-dedup", "event_filter", "event_reconcile", "dispatch", "affinity", "dlq",
    "approval", "http_callback", "redis_queue", "kafka_queue", "sse", "nonce",
}  # fmt: skip
"""First parts of keys: a tenant named like one has no keys of its own in the documented layout."""


def is_mirrored(run_id: str, tenant: str) -> bool:
    """Whether the documented layout can spell a run: other names would write over keys that mean something else."""
    return run_id != "index" and tenant not in RESERVED and ":" not in run_id + tenant


def subscription_id(run_id: str, wait_id: str) -> str:
    """The id under which programs of the documented layout know a wait, as ``lua/mirror.lua`` makes it."""
    return str(int(sha1(f"{run_id}|{wait_id}".encode(), usedforsecurity=False).hexdigest()[:13], 16))


def partition(tenant: str) -> str:
    """The part of a documented key that names its tenant; empty for the default one."""
    return "" if tenant == "default" else f"{tenant}:"


def key(name: str, *parts: str | int, prefix: str = PREFIX) -> str:
    """One key: ``key("run", "a") == "plaita:run:a"``."""
    size = len(str(parts[0]).encode()) if parts else 0
    return f"{prefix}:{NAMES[name].format(*parts, n=size)}"


def lua_table(prefix: str = PREFIX, given: Mapping[str, str] | None = None) -> str:
    """The same table for the scripts: a function for each name, for example ``KEY.run(id)``.

    ``given`` are whole keys of names that have no parts.
    """
    whole = given or {}
    lines = [
        f"function KEY.{name}() return {lua_text(whole[name])} end"
        if name in whole
        else _function(name, f"{prefix}:{template}")
        for name, template in NAMES.items()
    ]
    return "\n".join(["local KEY = {}", *lines, ""])


def lua_text(text: str) -> str:
    """A text as a script writes it."""
    quoted = "".join(chr(b) if chr(b) in _PLAIN else f"\\{b:03d}" for b in text.encode())
    return f"'{quoted}'"


def _function(name: str, template: str) -> str:
    parameters = [p for p in ("a", "b") if f"{{{'ab'.index(p)}}}" in template]
    text = template
    for place, expression in (("{0}", "a"), ("{1}", "b"), ("{n}", "#tostring(a)")):
        text = text.replace(place, f"' .. {expression} .. '")
    body = f"'{text}'".removesuffix(" .. ''")
    return f"function KEY.{name}({', '.join(parameters)}) return {body} end"
