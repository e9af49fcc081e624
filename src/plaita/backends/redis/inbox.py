"""``InboxStore`` over scripts: a message is read here, and carried out and taken away in one step there."""

from __future__ import annotations

import asyncio
from typing import Any

from plaita.backends.redis.codec import facts_bytes, pairs
from plaita.backends.redis.desk import RedisDesk, published
from plaita.backends.redis.entries import Entry, entry_of, quotation, refusal
from plaita.backends.redis.queries import RedisQueries
from plaita.backends.redis.runs import cancelled, woken
from plaita.backends.redis.talk import Talk
from plaita.backends.verbs.accept import ACTOR, NO_CLOSURE, checked_message, no_flow, unknown_flow
from plaita.backends.verbs.match import digest_of
from plaita.backends.verbs.messages import Announce, Answer, Order, Start, Stop, bounded, read
from plaita.base.clock import new_id
from plaita.base.ids import start_digest
from plaita.ports.inbox import (
    Accepted,
    CancelAccepted,
    DeadLetter,
    DeadLettered,
    EventAccepted,
    Message,
    Offered,
    Outcome,
    Resumed,
    Started,
)  # fmt: skip
from plaita.ports.queries import RunView
from plaita.ports.runs import Submission
from plaita.ports.values import RunId, WaitId

_EMPTY: dict[str, Any] = dict.fromkeys(
    (
        "tenant", "expected", "id", "asked", "name", "incarnation", "facts", "input", "digest", "failure", "wait",
        "data", "type", "keyed", "key",
    )
)  # fmt: skip


class RedisInbox(RedisDesk, RedisQueries):
    """Messages of producers."""

    _talk: Talk
    _consumer = ""
    _intake = "new"

    async def offer(self, message_id: str, body: bytes) -> Offered:
        checked_message(message_id, body, self._talk.limits)
        return Offered(duplicate=bool(await self._talk.run("offer", id=message_id, body=body)))

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
        received = await self._talk.run("receive", consumer=self._consumer, n=n, idle=idle_ms, state=state)
        accepted = []
        for entry in map(entry_of, received):
            outcome = await self._accept(entry)
            if outcome is not None:
                accepted.append(Accepted(entry.message.message_id, outcome))
        return accepted

    async def dead_letters(self, *, limit: int = 100, cursor: str = "") -> tuple[list[DeadLetter], str]:
        page = await self._talk.call(
            "ZRANGEBYSCORE", self._talk.key("dead"), f"({int(cursor or 0)}", "+inf", "WITHSCORES", "LIMIT", 0, limit + 1
        )
        following = page[2 * limit - 1].decode() if len(page) > 2 * limit else ""
        ids = [name.decode() for name in page[: 2 * limit : 2]]
        found = await asyncio.gather(
            *(self._talk.call("HGETALL", self._talk.key("dead_letter", message_id)) for message_id in ids)
        )
        letters = zip(ids, (pairs(flat) for flat in found), strict=True)
        return [_letter(message_id, fields) for message_id, fields in letters if fields], following

    async def backlog(self) -> int:
        count: int = await self._talk.call("XLEN", self._talk.key("inbox"))
        return count

    async def _accept(self, entry: Entry) -> Outcome | None:
        """Carry a message out; ``None`` when somebody else has."""
        message, limits = entry.message, self._talk.limits
        wanted = refusal(entry, limits.tries_max) or read(message)
        members, quoted = quotation(entry, is_sound=not isinstance(wanted, DeadLettered))
        common = {
            "entry": entry.id, "message": message.message_id, "body": message.body, "at": message.at_ms,
            "quotation": members, "quoted": quoted, "dlq_max": limits.dlq_max,
        }  # fmt: skip
        while True:
            if isinstance(wanted, DeadLettered):
                said = {**_EMPTY, "kind": wanted.reason, "since": 0, "texts": [wanted.reason, wanted.detail]}
                order = None
            else:
                order = wanted.order
                said = {**_EMPTY, **await self._order(order), "since": wanted.since_ms}
            word, *found = await self._talk.run("accept", **common, **said, actor=ACTOR)
            if word == b"gone":
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
        run = await self.run(order.run_id)
        missing = f"there is no execution {order.run_id!r} of tenant {order.tenant!r}"
        said = {
            "asked": order.run_id, "tenant": order.tenant, "expected": run.run_id if run else None,
            "texts": ["no_run", bounded(missing)],
        }  # fmt: skip
        match order:
            case Answer(_, _, wait_id, data):
                return {**said, "kind": "answer", "wait": wait_id, "data": data, "digest": digest_of(data)}
            case Stop():
                return {**said, "kind": "stop"}

    async def _start(self, order: Start) -> dict[str, Any]:
        run = (await self.run(RunId(order.name)) if order.name else None) or await self.run(order.run_id)
        target = run.run_id if run else order.run_id
        definition = await self._definition(order, run)
        closure, version = definition or (NO_CLOSURE, order.version)
        start = Submission(
            target, start_digest(closure, order.data), order.data, order.flow_id, closure, version,
            tenant=order.tenant, queue=order.queue,
        )  # fmt: skip
        words = {
            "tenant": bounded(f"execution {target!r} belongs to another tenant"),
            "conflict": bounded(f"execution {target!r} exists with another flow or input"),
            "tombstoned": bounded(f"execution {target!r} existed and was deleted; its id stays taken"),
            "unknown_flow": bounded(unknown_flow(order)),
        }
        return {
            "kind": "start", "id": target, "asked": order.run_id, "name": order.name, "tenant": order.tenant,
            "expected": run.run_id if run else None, "incarnation": new_id(),
            "facts": None if definition is None and run is not None else facts_bytes(start), "input": order.data,
            "digest": start.digest, "failure": no_flow(order) if definition is None else None,
            "texts": [part for pair in words.items() for part in pair],
        }  # fmt: skip

    async def _definition(self, order: Start, run: RunView | None) -> tuple[str, str] | None:
        """Closure and version. A run keeps what it began with."""
        if run is not None and run.flow_id == order.flow_id and order.version in ("", run.flow_version):
            return run.closure, run.flow_version
        found = await self.flow(order.flow_id, order.version)
        return None if found is None else (found.closure, found.version)


def _outcome(word: bytes, found: list[Any], order: Order | None) -> Outcome:
    match word, order:
        case b"dead", _:
            return DeadLettered(found[0].decode(), found[1].decode())
        case b"started", _:
            return Started(RunId(found[0].decode()), bool(found[1]))
        case b"event", _:
            return EventAccepted(published(found[0]))
        case b"stopped", Stop(run_id):
            return CancelAccepted(cancelled(found[0], run_id))
        case b"resumed", Answer(_, _, wait_id, _):
            return Resumed(woken(found[0], WaitId(wait_id)))
    raise AssertionError(f"the accept script answered {word!r}")


def _letter(message_id: str, fields: dict[str, bytes]) -> DeadLetter:
    message = Message(message_id, fields["body"], int(fields["at"]))
    reason: Any = fields["reason"].decode()
    return DeadLetter(message, reason, fields["detail"].decode(), int(fields["died"]))
