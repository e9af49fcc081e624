"""The audit over a snapshot, and what only this store can get wrong: the indexes it writes itself."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

from plaita.backends.audit import audit
from plaita.backends.memory.backend import MemoryRows
from plaita.backends.memory.tables import Tables
from plaita.backends.redis.codec import COUNTED_LENGTH, pairs_of_text, stored_of
from plaita.backends.redis.snapshot import read_tables
from plaita.backends.redis.talk import Talk
from plaita.backends.rows import WaitRow
from plaita.base.json import decode, encode
from plaita.ports.values import STATUSES


async def audit_store(talk: Talk) -> list[str]:
    """Every difference in words; an empty list is the only good answer. Reads the whole store."""
    talk = talk.aside()
    tables = await read_tables(talk)
    now_ms: int = await talk.run("now")
    quotas = pairs_of_text(await talk.foreign("HGETALL", talk.key("tenant_quota")) or ())
    issues = audit(MemoryRows(tables, talk.limits, now_ms), {tenant: _cap(said) for tenant, said in quotas.items()})
    for check in (_of_status, _of_slots, _of_waits, _of_kinds):
        issues += [issue async for issue in check(talk, tables)]
    return issues


def _cap(said: bytes) -> int | None:
    """What the documented table says of a tenant: no positive number is no cap."""
    text = said.strip()
    return int(text) if text.isdigit() and int(text) > 0 else None


async def _of_status(talk: Talk, tables: Tables) -> AsyncIterator[str]:
    for status in STATUSES:
        indexed = {name.decode() for name in await talk.call("ZRANGE", talk.key("by_status", status), 0, -1)}
        stored = {run.run_id for run in tables.runs.values() if run.status == status}
        for run_id in sorted(indexed ^ stored):
            yield f"run {run_id}: the index of {status} runs and the header disagree"


async def _of_slots(talk: Talk, tables: Tables) -> AsyncIterator[str]:
    for tenant in sorted({run.tenant for run in tables.runs.values()}):
        indexed = {name.decode() for name in await talk.call("ZRANGE", talk.key("running", tenant), 0, -1)}
        stored = {run.run_id for run in tables.runs.values() if run.tenant == tenant and run.slot == 1}
        for run_id in sorted(indexed ^ stored):
            yield f"run {run_id}: the index of running runs and the header disagree"


async def _of_waits(talk: Talk, tables: Tables) -> AsyncIterator[str]:
    waits = [
        (run.run_id, wait)
        for rid, run in tables.runs.items()
        for wait in tables.belongings[rid].waits.values()
        if wait.kind == "event"
    ]
    arms = await asyncio.gather(
        *(talk.call("ZSCORE", _place(talk, wait), _member(run_id, wait.wait_id)) for run_id, wait in waits)
    )
    for (run_id, wait), arm in zip(waits, arms, strict=True):
        if (None if arm is None else int(arm)) != (wait.arm if wait.state == "open" else None):
            yield f"run {run_id}: wait {wait.wait_id!r} is {wait.state} and the index of waits disagrees"


async def _of_kinds(talk: Talk, tables: Tables) -> AsyncIterator[str]:
    """What is counted of each kind, against the runs that have it and the children that are promised with it."""
    kinds = await _kinds_of_runs(talk, tables)
    have = Counter([*kinds.values(), *await _promised_kinds(talk)])
    told = pairs_of_text(await talk.call("HGETALL", talk.key("kinds_counted")))
    counted = {name: int(count) for name, count in told.items()}
    stored = {name.decode() for name in await talk.call("HKEYS", talk.key("kinds"))}
    for run_id, name in kinds.items():
        if name not in stored:
            yield f"run {run_id}: what it was started with is gone, kind {name}"
    for name in sorted(counted.keys() | {name for name in have if len(name) == COUNTED_LENGTH}):
        if counted.get(name, 0) != have[name]:
            yield f"kind {name}: {counted.get(name, 0)} are counted, {have[name]} have it"


async def _kinds_of_runs(talk: Talk, tables: Tables) -> dict[str, str]:
    headers = await asyncio.gather(*(talk.call("HGET", talk.key("run", run_id), "h") for run_id in tables.ids))
    found = zip(tables.ids, headers, strict=True)
    return {run_id: stored_of(run_id, header).kind for run_id, header in found if header is not None}


async def _promised_kinds(talk: Talk) -> list[str]:
    """As ``lua/settling.lua`` writes them: the last of what is said of a child."""
    heads = [decode(raw.partition(b"\n")[0]) for raw in await talk.call("LRANGE", talk.key("outbox"), 0, -1)]
    return [head[8] for head in heads if head[0] == "spawn" and len(head) > 8]


def _place(talk: Talk, wait: WaitRow) -> str:
    if wait.key is None:
        return talk.key("waiting", wait.event_type)
    return talk.key("waiting_keyed", wait.event_type, wait.key)


def _member(run_id: str, wait_id: str) -> bytes:
    """As ``lua/match.lua`` writes it: the encoder there escapes slashes."""
    return encode([run_id, wait_id]).replace(b"/", b"\\/")
