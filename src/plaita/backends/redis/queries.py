"""``QueryStore`` over plain reads."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from plaita.backends.ports.queries import wait_view
from plaita.backends.redis.audit import audit_store
from plaita.backends.redis.codec import NO_INPUT, Kind, Stored, entries_of, parent_of, stored_of, wait_of
from plaita.backends.redis.counting import counts
from plaita.backends.redis.kinds import Kinds
from plaita.backends.redis.talk import Talk
from plaita.backends.rows import RunFilter
from plaita.ports.queries import Counts, Entry, RunView, WaitView
from plaita.ports.values import STATUSES, RunId

_RECORD = ("h", "out", "err", "p")


@dataclass(frozen=True, slots=True)
class Record:
    """A run as it is looked at."""

    stored: Stored
    kind: Kind
    output: bytes | None
    error: bytes | None
    parent: bytes | None


class RedisQueries:
    """What operators look at."""

    _talk: Talk
    _kinds: Kinds

    async def run(self, run_id: RunId) -> RunView | None:
        found = await self._record(run_id)
        if found is None:
            other = await self._talk.call("GET", self._talk.key("name", run_id))
            return None if other is None else await self.run(RunId(other.decode()))
        return view(found)

    async def tombstone(self, run_id: RunId) -> bytes | None:
        """What the documented tombstone of a deleted run says, JSON bytes."""
        found: bytes | None = await self._talk.call("GET", self._talk.key("execution_tombstone", run_id))
        return found

    async def input(self, run_id: RunId) -> bytes | None:
        found, header = await self._talk.call("HMGET", self._talk.key("run", run_id), "in", "h")
        return NO_INPUT if found is None and header is not None else found

    async def runs(
        self, *, status: str = "", flow_id: str = "", business_key: str = "", tag: str = "", tenant: str = "",
        limit: int = 100, cursor: str = "", oldest_first: bool = False,
    ) -> tuple[list[RunView], str]:  # fmt: skip
        wanted = RunFilter(status, flow_id, business_key, tag, tenant)
        indexes = indexes_of(wanted)
        index = await self._smallest(indexes) if indexes else ""
        found: list[tuple[int, RunView]] = []
        beyond, size = cursor, limit + 1
        while len(found) <= limit:
            page = await self._page(index, beyond, size, oldest_first=oldest_first)
            for record in await asyncio.gather(*(self._record(run_id) for run_id, _ in page)):
                if record is not None and fits(record, wanted):
                    found.append((record.stored.row.rid, view(record)))
            if len(page) < size:
                break
            beyond = str(page[-1][1])
        following = str(found[limit - 1][0]) if len(found) > limit else ""
        return [run for _, run in found[:limit]], following

    async def _page(self, index: str, beyond: str, size: int, *, oldest_first: bool) -> list[tuple[RunId, int]]:
        """Runs of an index with their numbers, from one number on; of all runs without one."""
        if not index:
            page = await self._talk.run("listed", beyond=beyond, n=size, oldest_first=oldest_first, statuses=STATUSES)
            return _numbered(page)
        if oldest_first:
            bounds = ("ZRANGEBYSCORE", index, f"({beyond}" if beyond else "-inf", "+inf")
        else:
            bounds = ("ZREVRANGEBYSCORE", index, f"({beyond}" if beyond else "+inf", "-inf")
        return _numbered(await self._talk.call(*bounds, "WITHSCORES", "LIMIT", 0, size))

    async def waits(self, run_id: RunId, *, open_only: bool = True) -> list[WaitView]:
        header, beside = await self._decided(
            run_id, ("HGET", self._talk.key("run", run_id), "h"), ("HVALS", self._talk.key("waits", run_id))
        )
        within = [] if header is None else stored_of(run_id, header).live
        # One that is closed between the two reads is in both: the second is right.
        found = {wait.wait_id: wait for wait in (*within, *map(wait_of, beside))}
        waits = sorted(found.values(), key=lambda wait: wait.arm)
        return [wait_view(w) for w in waits if not open_only or w.state == "open"]

    async def history(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> list[Entry]:
        first, *lines = await self._talk.run("history", id=run_id, after=after, limit=limit)
        return entries_of(lines, first)

    async def counts(self) -> Counts:
        return await counts(self._talk)

    async def now_ms(self) -> int:
        now_ms: int = await self._talk.run("now")
        return now_ms

    async def audit(self) -> list[str]:
        return await audit_store(self._talk)

    async def _record(self, run_id: RunId) -> Record | None:
        [found] = await self._decided(run_id, ("HMGET", self._talk.key("run", run_id), *_RECORD))
        header, output, error, parent = found
        if header is None:
            return None
        stored = stored_of(run_id, header)
        kind = await self._kinds.of(stored.kind)
        return None if kind is None else Record(stored, kind, output, error, parent)

    async def _decided(self, run_id: RunId, *commands: tuple[str, ...]) -> list[Any]:
        """What these commands say of a run once everything that was deferred of it is decided."""
        deferred, *answers = await asyncio.gather(
            self._talk.call("ZSCORE", self._talk.key("deferred"), run_id), *(self._talk.call(*c) for c in commands)
        )
        if deferred is None:
            return answers
        await self._talk.run("look", ids=[run_id])
        return await asyncio.gather(*(self._talk.call(*command) for command in commands))

    async def _smallest(self, indexes: Sequence[tuple[str, ...]]) -> str:
        """The index with the fewest runs: the others are checked on what it finds."""
        places = [self._talk.key(*index) for index in indexes]
        if len(places) == 1:
            return places[0]
        sizes = await asyncio.gather(*(self._talk.call("ZCARD", place) for place in places))
        return min(zip(sizes, places, strict=True))[1]


def indexes_of(wanted: RunFilter) -> list[tuple[str, ...]]:
    """The indexes that hold every run the filter matches; none when it asks for nothing that has one."""
    found = [
        ("by_status", wanted.status), ("by_flow", wanted.flow_id), ("by_key", wanted.business_key),
        ("by_tag", wanted.tag), ("by_tenant", "" if wanted.tenant == "default" else wanted.tenant),
    ]  # fmt: skip
    return [index for index in found if index[1]]


def _numbered(page: Sequence[bytes]) -> list[tuple[RunId, int]]:
    return [(RunId(page[i].decode()), int(page[i + 1])) for i in range(0, len(page), 2)]


def fits(record: Record, wanted: RunFilter) -> bool:
    """Whether a run is what the filter asks for."""
    stored, row = record.stored, record.stored.row
    return (
        wanted.status in ("", row.status)
        and wanted.tenant in ("", row.tenant)
        and wanted.flow_id in ("", record.kind.flow_id)
        and wanted.business_key in ("", stored.business_key)
        and (not wanted.tag or wanted.tag in stored.tags)
    )


def view(record: Record) -> RunView:
    """A run as people see it."""
    stored, run, kind = record.stored, record.stored.row, record.kind
    told = parent_of(record.parent)
    return RunView(
        run.run_id, run.incarnation, kind.flow_id, kind.flow_version, kind.closure, run.status, run.queue, run.tenant,
        stored.business_key, stored.tags, run.priority, kind.imports, stored.submitted_ms, run.ended,
        stored.not_before_ms, run.due, run.retry, run.blocked_reason, record.output, record.error, run.token, run.seq,
        run.tries, run.lost, bool(run.cancel), bool(run.slot), told.run_id if told else None,
    )  # fmt: skip
