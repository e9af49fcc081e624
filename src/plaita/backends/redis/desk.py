"""``EventStore``, ``TaskStore`` and ``FlowStore`` over scripts."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import suppress
from dataclasses import replace

from plaita.backends.redis.codec import EVERYBODY, pairs, task_of
from plaita.backends.redis.published import LATEST, PublishedLayout
from plaita.backends.redis.talk import Talk
from plaita.backends.task_codec import vote_bytes
from plaita.backends.verbs.match import digest_of
from plaita.base.errors import FlowLoadError, InputError
from plaita.base.json import Json, decode
from plaita.core.closure import definition_of
from plaita.core.taking_over import definition_of_row
from plaita.ports.events import Published
from plaita.ports.flows import FlowVersion
from plaita.ports.tasks import (
    AlreadyDecided,
    AlreadyVoted,
    Changed,
    DecideAnswer,
    Decided,
    Decision,
    NotACandidate,
    NoTask,
    Recorded,
    Task,
)  # fmt: skip


class RedisDesk:
    """Events, people and definitions."""

    _talk: Talk
    _brought: set[str]
    """Flows that are just being taken from the published system."""

    async def publish(self, event_id: str, event_type: str, key: str | None, data: bytes) -> Published:
        reply = await self._talk.run(
            "publish", id=event_id, type=event_type, keyed=key is not None, key=key, data=data
        )  # fmt: skip
        return published(reply)

    async def task(self, task_id: str) -> Task | None:
        fields = pairs(await self._talk.call("HGETALL", self._talk.key("task", task_id)))
        return task_of(task_id, fields) if fields else None

    async def inbox(self, *, actor: str = "", limit: int = 100, cursor: str = "") -> tuple[list[Task], str]:
        places = [self._talk.key("tasks")]
        if actor:
            places = [self._talk.key("tasks_of", name) for name in (actor, EVERYBODY)]
        above = f"({int(cursor or 0)}"
        pages = await asyncio.gather(
            *(
                self._talk.call("ZRANGEBYSCORE", place, above, "+inf", "WITHSCORES", "LIMIT", 0, limit + 1)
                for place in places
            )
        )
        found = sorted({(int(page[i + 1]), page[i].decode()) for page in pages for i in range(0, len(page), 2)})
        following = str(found[limit - 1][0]) if len(found) > limit else ""
        tasks = await asyncio.gather(*(self.task(task_id) for _, task_id in found[:limit]))
        return [task for task in tasks if task is not None], following

    async def decide(self, task_id: str, version: int, decision: Decision) -> DecideAnswer:
        actor, wakes = decision.vote.actor, decision.outcome is not None and decision.answer is not None
        answer = decision.answer if wakes else None
        word, *found = await self._talk.run(
            "decide", task=task_id, version=version, actor=actor, vote=vote_bytes(decision.vote),
            answer=answer, digest=digest_of(answer or b""),
        )  # fmt: skip
        match word:
            case b"recorded":
                return Recorded(decision.missing)
            case b"no_task":
                return NoTask(task_id)
            case b"already_decided":
                return AlreadyDecided(found[0].decode())
            case b"already_voted":
                return AlreadyVoted(actor)
            case b"changed":
                return Changed(found[0])
            case b"not_a_candidate":
                task = await self.task(task_id)
                return NotACandidate(actor, task.spec.approvers if task else tuple(decode(found[0])))
        assert decision.outcome is not None, "only an outcome decides a task"
        return Decided(decision.outcome)

    async def put_closure(self, closure: str, document: bytes) -> None:
        await self._talk.run("put_closure", closure=closure, document=document)

    async def closure(self, closure: str) -> bytes | None:
        found: bytes | None = await self._talk.call("GET", self._talk.key("closure", closure))
        return found

    async def publish_flow(self, flow_id: str, version: str, closure: str) -> FlowVersion:
        document = await self.closure(closure)
        definition = None if document is None else definition_of(document)
        return await self._publish(FlowVersion(flow_id, version, closure, 0), definition)

    async def _publish(self, flow: FlowVersion, definition: Json) -> FlowVersion:
        """``definition``: what is shown in the documented layout; ``None`` for what is there already."""
        now_ms: int = await self._talk.run(
            "publish_flow",
            flow=flow.flow_id,
            version=flow.version,
            closure=flow.closure,
            definition=None if definition is None else json.dumps(definition, ensure_ascii=False),
            unnamed=not (definition or {}).get("version"),
        )
        return replace(flow, published_ms=now_ms)

    async def flow(self, flow_id: str, version: str = "") -> FlowVersion | None:
        """One version, or the latest. One that only the published system has becomes one of ours."""
        if version == LATEST and await self._shows_latest(flow_id):
            version = ""
        found = await self._own_flow(flow_id, version)
        if found is None and await self._bring_flow(flow_id, version):
            found = await self._own_flow(flow_id, version)
        return found

    async def _own_flow(self, flow_id: str, version: str) -> FlowVersion | None:
        if not version:
            latest = await self._talk.call("ZRANGE", self._talk.key("versions", flow_id), -1, -1)
            if not latest:
                return None
            version = latest[0].decode()
        raw = await self._talk.call("GET", self._talk.key("version", flow_id, version))
        return None if raw is None else FlowVersion(flow_id, version, *decode(raw))

    async def _shows_latest(self, flow_id: str) -> bool:
        """Whether what is ``latest`` in the documented layout was published here, and by nobody else since."""
        shown = await self._talk.call("HGET", self._talk.key("shown_latest"), flow_id)
        text = shown and await self._talk.call("GET", self._talk.key("published_flow", "", f"{flow_id}:{LATEST}"))
        return bool(text) and hashlib.sha1(text, usedforsecurity=False).hexdigest() == shown.decode()

    async def _bring_flow(self, flow_id: str, version: str) -> bool:
        """Publish here what is published there, the latest last; what cannot be loaded is left out. Was there any?"""
        published = PublishedLayout(self._talk)
        if flow_id in self._brought:
            # It refers to itself.
            return False
        there = await published.flow_versions("default", flow_id)
        if LATEST in there and await self._shows_latest(flow_id):
            there.remove(LATEST)
        if not there or version not in ("", *there):
            return False
        self._brought.add(flow_id)
        try:
            for name in there:
                with suppress(FlowLoadError, InputError):
                    if await self._own_flow(flow_id, name) is None:
                        brought = await definition_of_row(self, published, "default", flow_id, name)
                        if brought is not None:
                            await self.put_closure(brought.found.closure, brought.document)
                            await self._publish(brought.found, None)
        finally:
            self._brought.discard(flow_id)
        return True

    async def versions(self, flow_id: str) -> list[FlowVersion]:
        names = await self._talk.call("ZREVRANGE", self._talk.key("versions", flow_id), 0, -1)
        found = await asyncio.gather(*(self._own_flow(flow_id, name.decode()) for name in names))
        return [version for version in found if version is not None]

    async def flows(self) -> list[FlowVersion]:
        for name in await PublishedLayout(self._talk).flow_names("default"):
            await self.flow(name)
        names = await self._talk.call("ZRANGE", self._talk.key("flows"), 0, -1)
        found = await asyncio.gather(*(self.flow(name.decode()) for name in names))
        return [version for version in found if version is not None]


def published(reply: list[object]) -> Published:
    """The answer of ``lua/publishing.lua``."""
    event_id, number, matched, woken, pending, duplicate = reply
    assert isinstance(event_id, bytes)
    assert isinstance(number, int)
    assert isinstance(matched, int)
    assert isinstance(woken, int)
    return Published(event_id.decode(), number, matched, woken, bool(pending), duplicate=bool(duplicate))
