"""``InboxStore`` over scripts: a message is read here, and carried out and taken away in one step there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from plaita.backends.redis.codec import facts_bytes
from plaita.backends.redis.desk import RedisDesk, published
from plaita.backends.redis.entries import Entry, entry_of, envelope, foreign_words, quotation, refusal
from plaita.backends.redis.frames import read_frames
from plaita.backends.redis.keys import subscription_id
from plaita.backends.redis.letters import RedisLetters
from plaita.backends.redis.queries import RedisQueries
from plaita.backends.redis.runs import cancelled, reopened, woken
from plaita.backends.redis.talk import Talk
from plaita.backends.verbs.accept import (
    ACTOR,
    NO_CLOSURE,
    checked_message,
    no_flow,
    no_run,
    other_flow,
    submission,
)
from plaita.backends.verbs.match import digest_of
from plaita.backends.verbs.messages import (
    Aimed,
    Announce,
    Answer,
    Binding,
    Elapse,
    GoOn,
    Order,
    Start,
    Stop,
    Wanted,
    bounded,
    read,
)
from plaita.base.clock import new_id
from plaita.core.saved import pending_of
from plaita.core.taking_over import Judged
from plaita.policy.approval import STRANGE, is_strange
from plaita.ports.flows import FlowVersion
from plaita.ports.inbox import (
    Accepted,
    CancelAccepted,
    DeadLettered,
    EventAccepted,
    Offered,
    Outcome,
    Passed,
    Resumed,
    Retried,
    Started,
)  # fmt: skip
from plaita.ports.queries import RunView
from plaita.ports.runs import NoRun
from plaita.ports.values import RunId, WaitId

Known = Mapping[tuple[str, str], FlowVersion | None]
"""Definitions that were looked for, by flow and version."""

Read = tuple[Entry, Wanted | DeadLettered]
"""A message, and what it asks for."""

_EMPTY: dict[str, Any] = dict.fromkeys(
    (
        "tenant", "flow", "expected", "id", "asked", "name", "incarnation", "facts", "input", "digest", "failure",
        "wait", "data", "type", "keyed", "key", "beside", "names_tenant",
    )
)  # fmt: skip


class RedisInbox(RedisLetters, RedisDesk, RedisQueries):
    """Messages of producers."""

    _talk: Talk
    _consumer = ""
    _intake = "new"
    _from: bytes | str = "-"

    @property
    def _envelope(self) -> list[str]:
        return envelope(self._talk.limits.fleet)

    async def offer(self, message_id: str, body: bytes) -> Offered:
        checked_message(message_id, body, self._talk.limits)
        return Offered(duplicate=bool(await self._talk.run("offer", id=message_id, body=body, envelope=self._envelope)))

    async def accept(self, n: int) -> list[Accepted]:
        state, self._intake = self._intake, "known"
        try:
            return await self._accept_some(n, state)
        except BaseException:
            # What was taken and not carried out stays with this consumer: it looks there first.
            self._intake = "again"
            raise

    async def _accept_some(self, n: int, state: str) -> list[Accepted]:
        self._consumer = self._consumer or new_id()
        idle_ms = self._talk.limits.claim_min_idle_ms
        self._from, received = await self._talk.run(
            "receive", consumer=self._consumer, n=n, idle=idle_ms, state=state, **{"from": self._from}
        )
        read_entries = [(entry, read(entry.message)) for entry in map(entry_of, received)]
        ahead = await self._read_ahead(read_entries)
        accepted = []
        for group in independent(read_entries):
            outcomes = await asyncio.gather(*(self._accept(entry, wanted, ahead) for entry, wanted in group))
            answered = zip(group, outcomes, strict=True)
            accepted += [Accepted(entry.message.message_id, outcome) for (entry, _), outcome in answered if outcome]
        return accepted

    async def _read_ahead(self, entries: Sequence[Read]) -> dict[str, dict[str, Any]]:
        """What the starts of a portion are carried out with, by the id of the entry. The script refuses what has
        changed when their turn comes."""
        starts = {entry.id: order for entry, wanted in entries if (order := _start_of(wanted)) is not None}
        versions = dict.fromkeys((order.flow_id, order.version) for order in starts.values())
        known = {version: await self.flow(*version) for version in versions}
        found = await asyncio.gather(*(self._start(order, known) for order in starts.values()))
        return dict(zip(starts, found, strict=True))

    async def backlog(self) -> int:
        count: int = await self._talk.call("XLEN", self._talk.key("inbox"))
        return count

    async def _accept(
        self, entry: Entry, said_by_itself: Wanted | DeadLettered, ahead: dict[str, dict[str, Any]]
    ) -> Outcome | None:
        """Carry a message out; ``None`` when somebody else has, or is to."""
        message, limits = entry.message, self._talk.limits
        wanted = refusal(entry, limits.deliveries_max) or said_by_itself
        foreign = foreign_words(entry, limits)
        members, quoted = quotation(entry, is_sound=not isinstance(wanted, DeadLettered))
        common = {
            "entry": entry.id, "message": message.message_id, "body": message.body, "at": message.at_ms,
            "quotation": members, "quoted": quoted, "dlq_max": limits.dlq_max, "foreign": bool(foreign),
            "unreadable": entry.unreadable(limits.fleet),
        }  # fmt: skip
        while True:
            if isinstance(wanted, DeadLettered):
                said = {**_EMPTY, "kind": wanted.reason, "since": 0, "texts": [wanted.reason, wanted.detail]}
                said["asked"] = _named(said_by_itself)
                order = None
            else:
                order = wanted.order
                asked = ahead.pop(entry.id, None) or await self._order(order)
                said = {**_EMPTY, **asked, "since": wanted.since_ms}
                said["names_tenant"] = wanted.names_tenant
                common["unreadable"] = (*entry.unreadable(limits.fleet), *wanted.unreadable)
            said["texts"] = [*said["texts"], "family_mismatch", foreign]
            word, *found = await self._talk.run("accept", **common, **said, actor=ACTOR)
            if word in (b"gone", b"left"):
                return None
            if word != b"again":
                return _outcome(word, found, order)

    async def _order(self, order: Order) -> dict[str, Any]:
        match order:
            case Announce(event_id, event_type, key, data):
                return {
                    "kind": "event", "id": event_id, "type": event_type, "keyed": key is not None, "key": key,
                    "data": data, "texts": [],
                }  # fmt: skip
            case Start():
                return await self._start(order)
        aim = order.aim
        run, missing = await self.run(aim.run_id), no_run(aim)
        if run is None and (judged := await self.bring(aim.tenant, aim.run_id)) is not None:
            run = await self.run(aim.run_id)
            missing = f"{missing}; its row of the published system stays ({judged.reason}): plaita adopt"
        return {
            "asked": aim.run_id, "tenant": aim.tenant, "flow": aim.flow_id, "expected": run.run_id if run else None,
            "texts": ["no_run", bounded(missing), "conflict", bounded(other_flow(aim)), *_strange(order)],
            **_asked(await self._named_here(order, run)),
        }  # fmt: skip

    async def bring(self, tenant: str, execution_id: str) -> Judged | None:
        """Take over an execution of the published system, or say why not; ``None``: it has no such row."""
        raise NotImplementedError

    async def _named_here(self, order: Aimed, run: RunView | None) -> Aimed:
        """A wait that is called by its subscription; one that was taken over by that which it had."""
        if not isinstance(order, Answer | Elapse) or run is None:
            return order
        asked = order.binding.wait_id
        if "@" in asked:
            return order
        names = [wait.wait_id for wait in await self.waits(run.run_id, open_only=False)]
        if asked in names:
            return order
        frames = await read_frames(self._talk, run.run_id)
        taken_over = {pending.get("subscription_id"): WaitId(name) for name, pending in pending_of(frames).items()}
        known = {subscription_id(run.run_id, name): name for name in names} | taken_over
        return replace(order, binding=replace(order.binding, wait_id=known.get(asked, asked)))

    async def _start(self, order: Start, known: Known | None = None) -> dict[str, Any]:
        run = (await self.run(RunId(order.name)) if order.name else None) or await self.run(order.run_id)
        target = run.run_id if run else order.run_id
        definition = await self._definition(order, run, known or {})
        start = submission(replace(order, run_id=target), definition or (NO_CLOSURE, order.version))
        words = {
            "tenant": bounded(f"execution {target!r} belongs to another tenant"),
            "conflict": bounded(f"execution {target!r} exists with another flow or input"),
            "tombstoned": bounded(f"execution {target!r} existed and was deleted; its id stays taken"),
        }
        return {
            "kind": "start", "id": target, "asked": order.run_id, "name": order.name, "tenant": order.tenant,
            "expected": run.run_id if run else None, "incarnation": new_id(),
            "facts": facts_bytes(start), "input": order.data,
            "beside": order.beside, "digest": start.digest, "failure": no_flow(order) if definition is None else None,
            "texts": [part for pair in words.items() for part in pair],
        }  # fmt: skip

    async def _definition(self, order: Start, run: RunView | None, known: Known) -> tuple[str, str] | None:
        """Closure and version. A run keeps what it began with."""
        if run is not None and run.flow_id == order.flow_id and order.version in ("", run.flow_version):
            return run.closure, run.flow_version
        version = (order.flow_id, order.version)
        found = known[version] if version in known else await self.flow(*version)
        return None if found is None else (found.closure, found.version)


def independent(entries: Sequence[Read]) -> list[list[Read]]:
    """Messages in order, those together whose order among themselves means nothing: starts of different executions."""
    groups: list[list[Read]] = []
    names: set[str] = set()
    for entry, wanted in entries:
        order = _start_of(wanted)
        said = set() if order is None else {order.run_id, order.name} - {""}
        if not (said and names) or said & names:
            groups.append([])
            names = set()
        groups[-1].append((entry, wanted))
        names |= said
    return groups


def _start_of(wanted: Wanted | DeadLettered) -> Start | None:
    return wanted.order if isinstance(wanted, Wanted) and isinstance(wanted.order, Start) else None


def _named(wanted: Wanted | DeadLettered) -> str | None:
    """The run a message is for, as far as it says so."""
    match wanted:
        case Wanted(Start(run_id)):
            return run_id
        case Wanted(Answer(aim) | Elapse(aim) | GoOn(aim) | Stop(aim)):
            return aim.run_id
    return None


def _strange(order: Aimed) -> list[str]:
    """Why the answer is refused if a task asks for it."""
    return ["invalid_payload", STRANGE] if isinstance(order, Answer) and is_strange(order.data) else []


def _asked(order: Aimed) -> dict[str, Any]:
    match order:
        case Answer(_, Binding(wait_id, event_type), data):
            said = {"wait": wait_id, "type": event_type, "data": data, "digest": digest_of(data)}
            return {"kind": "answer", **said}
        case Elapse(_, Binding(wait_id, event_type)):
            return {"kind": "elapse", "wait": wait_id, "type": event_type}
        case GoOn(_, revive):
            return {"kind": "revive" if revive else "go_on"}
        case Stop():
            return {"kind": "stop"}


def _outcome(word: bytes, found: list[Any], order: Order | None) -> Outcome:
    match word, order:
        case b"dead", _:
            return DeadLettered(found[0].decode(), found[1].decode())
        case b"started", _:
            return Started(RunId(found[0].decode()), bool(found[1]))
        case b"event", _:
            return EventAccepted(published(found[0]))
        case b"stopped", Stop(aim) | GoOn(aim):
            return CancelAccepted(cancelled(found[0], aim.run_id))
        case b"resumed", Answer(_, binding) | Elapse(_, binding):
            return Resumed(woken(found[0], binding.wait_id))
        case b"retried", GoOn(aim):
            answer = reopened(found[0], aim.run_id)
            assert not isinstance(answer, NoRun), "the script found it"
            return Retried(answer)
        case b"passed", _:
            why: Any = found[0].decode()
            return Passed(why)
    raise AssertionError(f"the accept script answered {word!r}")
