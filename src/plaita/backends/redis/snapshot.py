"""The whole store read into tables of this process: what the audit and the simulation look at.

The indexes are taken as they are and not made from the headers, so that looking shows where the two differ. What is
deferred is decided before, as a claim would do it. Reads one key after the other: under load a difference may be one of
time, not of fact.
"""

from __future__ import annotations

import asyncio
from typing import Any

from plaita.backends.memory.tables import Belongings, Tables
from plaita.backends.redis.codec import (
    NO_INPUT,
    Kind,
    Stored,
    entries_of,
    pairs,
    parent_of,
    stored_of,
    task_of,
    wait_of,
)  # fmt: skip
from plaita.backends.redis.frames import read_frames
from plaita.backends.redis.kinds import Kinds
from plaita.backends.redis.talk import Talk
from plaita.backends.rows import EventRow, OutcomeRow, OutRow, Pulse, StartRow
from plaita.base.json import decode
from plaita.ports.runs import Submission
from plaita.ports.values import Mail, RunId, WaitId

SCANNED = 1_000
LOOKED_AT = 100
UNKNOWN = Kind("", "", "", "", ())
"""Stands for a kind that is not there."""
MEMBER_HEAD = 14
"""The number of the run and a bar before its id, in the members of the due index."""


async def read_tables(talk: Talk) -> Tables:
    """Everything that belongs to the protocol."""
    talk, tables = talk.aside(), Tables()
    await _decide_deferred(talk)
    await _read_events(talk, tables)
    ids = await _ids(talk)
    kinds = Kinds(talk)
    await asyncio.gather(*(_read_run(talk, kinds, tables, run_id) for run_id in ids))
    tables.runs = dict(sorted(tables.runs.items()))
    await _read_due(talk, tables)
    await _read_ledger(talk, tables)
    return tables


async def _decide_deferred(talk: Talk) -> None:
    while ids := await talk.call("ZRANGE", talk.key("deferred"), 0, LOOKED_AT - 1):
        await talk.run("look", ids=ids)


async def _ids(talk: Talk) -> set[RunId]:
    """Every run there is a header of, in an index or not."""
    head, found, cursor = talk.key("run", ""), set(), b"0"
    while True:
        cursor, page = await talk.call("SCAN", cursor, "MATCH", f"{head}*", "COUNT", SCANNED)
        found |= {RunId(name.decode().removeprefix(head)) for name in page}
        if cursor == b"0":
            return found


async def _read_run(talk: Talk, kinds: Kinds, tables: Tables, run_id: RunId) -> None:
    record, frames, waits, consumed, log = await asyncio.gather(
        talk.call("HGETALL", talk.key("run", run_id)),
        read_frames(talk, run_id),
        talk.call("HVALS", talk.key("waits", run_id)),
        talk.call("HKEYS", talk.key("consumed", run_id)),
        talk.call("LRANGE", talk.key("log", run_id), 0, -1),
    )
    fields = pairs(record)
    stored = stored_of(run_id, fields["h"])
    row = stored.row
    kind = await kinds.of(stored.kind) or UNKNOWN
    outcome = OutcomeRow(
        fields.get("out"), fields.get("err"), stored.failures, stored.wakeups, stored.lost_worker
    )  # fmt: skip
    found = sorted((*stored.live, *map(wait_of, waits)), key=lambda wait: wait.arm)
    tables.runs[row.rid] = row
    tables.ids[run_id] = row.rid
    if row.nonce is not None:
        tables.held[row.rid] = row.nonce
    tables.belongings[row.rid] = Belongings(
        StartRow(_submission(stored, kind, fields), stored.submitted_ms),
        outcome,
        frames,
        entries_of(log, row.entries - len(log) + 1),
        {wait.wait_id: wait for wait in found},
        {number: _mail(number, kind, wait, event, fields, tables) for number, kind, wait, event in stored.box},
        dict.fromkeys((*stored.consumed, *map(int, consumed))),
    )
    tasks = [wait.task_id for wait in found if wait.task_id is not None]
    hashes = await asyncio.gather(*(talk.call("HGETALL", talk.key("task", task_id)) for task_id in tasks))
    tables.tasks |= {task_id: task_of(task_id, pairs(flat)) for task_id, flat in zip(tasks, hashes, strict=True)}


def _submission(stored: Stored, kind: Kind, fields: dict[str, bytes]) -> Submission:
    row = stored.row
    return Submission(
        row.run_id, stored.digest, fields.get("in", NO_INPUT), kind.flow_id, kind.closure, kind.flow_version,
        kind.entry, row.tenant, stored.business_key, stored.tags, stored.not_before_ms, row.priority, row.queue,
        parent_of(fields.get("p")), kind.imports,
    )  # fmt: skip


def _mail(number: int, kind: Any, wait: str, event: int, fields: dict[str, bytes], tables: Tables) -> Mail:
    data = tables.events[event].data if event else fields[f"m:{number}"]
    return Mail(number, kind, WaitId(wait), data, event)


async def _read_events(talk: Talk, tables: Tables) -> None:
    numbers = sorted(int(raw) for raw in await talk.call("ZRANGE", talk.key("event_times"), 0, -1))
    found = await asyncio.gather(*(talk.call("HGETALL", talk.key("event", number)) for number in numbers))
    for number, flat in zip(numbers, found, strict=True):
        fields = pairs(flat)
        key = fields["key"].decode() if "key" in fields else None
        event_id = fields["id"].decode()
        tables.events[number] = EventRow(
            number, event_id, fields["type"].decode(), key, fields["data"], int(fields["at"]), int(fields["matched"]),
            int(fields["woken"]),
        )  # fmt: skip
        tables.event_ids[event_id] = number


async def _read_due(talk: Talk, tables: Tables) -> None:
    for queue in sorted(name.decode() for name in await talk.call("SMEMBERS", talk.key("queues"))):
        priorities = {0, *map(int, await talk.call("ZRANGE", talk.key("priorities", queue), 0, -1))}
        places = [talk.key("leases", queue), *(talk.key("due", queue, p) for p in sorted(priorities))]
        for place in places:
            page = await talk.call("ZRANGE", place, 0, -1, "WITHSCORES")
            for member, score in zip(page[::2], page[1::2], strict=True):
                tables.due[int(member[: MEMBER_HEAD - 1])] = int(score)


async def _read_ledger(talk: Talk, tables: Tables) -> None:
    for number, raw in enumerate(await talk.call("LRANGE", talk.key("outbox"), 0, -1), 1):
        head, _, data = raw.partition(b"\n")
        tables.outbox[number] = _out(number, decode(head), data)
    for tenant in sorted(name.decode() for name in await talk.call("SMEMBERS", talk.key("tenants"))):
        for kind in (0, 1):
            page = await talk.call("ZRANGE", talk.key("parked", tenant, kind), 0, -1, "WITHSCORES")
            for name, score in zip(page[::2], page[1::2], strict=True):
                tables.quota[tables.ids[RunId(name.decode())]] = (tenant, kind, int(score))
    contact, grace = await talk.call("HMGET", talk.key("pulse"), "contact", "grace")
    tables.pulse["store"] = Pulse(int(contact or 0), int(grace or 0))
    for name, value in pairs(await talk.call("HGETALL", talk.key("counters"))).items():
        tables.counters[name] = int(value)


def _out(number: int, head: list[Any], data: bytes) -> OutRow:
    match head:
        case ["event", event, cursor]:
            return OutRow(number, "event", event=event, cursor=cursor)
        case ["cancel", run_id]:
            return OutRow(number, "cancel", RunId(run_id))
        case ["wake", run_id, incarnation, wait_id]:
            return OutRow(number, "wake", RunId(run_id), incarnation, WaitId(wait_id), data=data)
    _, run_id, incarnation, wait_id, *_ = head
    return OutRow(number, "spawn", RunId(run_id), incarnation, WaitId(wait_id) if wait_id else None)
