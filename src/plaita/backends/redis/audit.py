"""The audit over a snapshot, and what only this store can get wrong: the indexes it writes itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from plaita.backends.audit import audit
from plaita.backends.memory.backend import MemoryRows
from plaita.backends.memory.tables import Tables
from plaita.backends.redis.codec import pairs_of_text
from plaita.backends.redis.snapshot import read_tables
from plaita.backends.redis.talk import Talk
from plaita.backends.rows import WaitRow
from plaita.base.json import encode
from plaita.ports.values import STATUSES


async def audit_store(talk: Talk) -> list[str]:
    """Every difference in words; an empty list is the only good answer. Reads the whole store."""
    talk = talk.aside()
    tables = await read_tables(talk)
    now_ms: int = await talk.run("now")
    quotas = pairs_of_text(await talk.foreign("HGETALL", talk.key("tenant_quota")) or ())
    issues = audit(MemoryRows(tables, talk.limits, now_ms), {tenant: _cap(said) for tenant, said in quotas.items()})
    for check in (_of_status, _of_slots, _of_waits):
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


def _place(talk: Talk, wait: WaitRow) -> str:
    if wait.key is None:
        return talk.key("waiting", wait.event_type)
    return talk.key("waiting_keyed", wait.event_type, wait.key)


def _member(run_id: str, wait_id: str) -> bytes:
    """As ``lua/match.lua`` writes it: the encoder there escapes slashes."""
    return encode([run_id, wait_id]).replace(b"/", b"\\/")
