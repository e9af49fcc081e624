"""Drives the model, the memory, the SQLite and the Redis store with the same steps; compares answers and contents."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import redis

from plaita.backends.limits import Limits
from plaita.backends.memory import MemoryBackend
from plaita.backends.memory.backend import MemoryRows
from plaita.backends.redis import RedisBackend
from plaita.backends.redis.snapshot import read_tables
from plaita.backends.rows import Rows, RunRow, WaitRow
from plaita.backends.sqlite import SqliteBackend
from plaita.backends.verbs.match import digest_of
from plaita.base.ids import start_digest
from plaita.base.json import encode
from plaita.policy.lease import LeasePlan
from plaita.ports import runs as ports
from plaita.ports.events import Published
from plaita.ports.inbox import CancelAccepted, DeadLettered, Outcome, Resumed, Started
from plaita.ports.values import By, RunId, Token, WaitId
from plaita.testing.conformance import HandClock
from tests.sim.protocol import model as m

TICK_MS = 1_000
LOOKS_AT_REDIS = 6
"""It is looked at after each so many steps."""
START_MS = 1_000_000_000_000
LONG_AGO = "2000-01-01T00:00:00"
Backend = MemoryBackend | SqliteBackend | RedisBackend
Picture = dict[str, Any]
DEAD = {"unknown_kind": "unknown_type"}
"""The model's words for the reason of a dead letter, where they differ."""
T = TypeVar("T")


@dataclass(frozen=True)
class Claimed:
    """One claim in several spellings: the model's token, and one token for each store."""

    run_id: str
    model: Any
    stores: tuple[Token, ...]


@dataclass(frozen=True)
class Move:
    """A settle as the walk draws it. ``arms`` are model waits; a child's flow is always ``E``."""

    claim: Claimed
    seq: int
    closes: tuple[Any, ...]
    arms: tuple[tuple[Any, Any], ...]
    ack: int
    next: tuple[Any, ...]
    progress: bool

    @property
    def spawned(self) -> tuple[Any, ...]:
        return tuple((wid, "E") for wid, wait in self.arms if wait.kind == "child")


def spell(wid: tuple[int, int]) -> WaitId:
    return WaitId(f"{wid[0]}.{wid[1]}")


def answer_bytes(data: str) -> bytes:
    return f'"{data}"'.encode()


class Lockstep:
    """The stores side by side. ``redis_url``: a server whose contents may go, ``None`` leaves Redis out.

    ``tombstones`` off: a deleted id may be used again at once."""

    def __init__(
        self, folder: Path, *, cap: int | None, grace: int, tombstones: bool, redis_url: str | None = None
    ) -> None:
        m.BUG.clear()
        m.C.lease, m.C.renew, m.C.gap, m.C.grace, m.C.tries, m.C.lost, m.C.cap = 2, 1, 1, grace, 2, 4, cap
        self.model: Any = m.Store()
        self.clock = HandClock(START_MS)
        self.tombstones = tombstones
        limits = Limits(
            lease=LeasePlan(2 * TICK_MS, TICK_MS, grace * TICK_MS),
            tries_max=2, lost_max=4, cap=cap, chunk=1, chunk_deferred=1, outbox_per_claim=0, start_every=0,
            tombstone_ms=10**12 if tombstones else 0, failures_max=10**6, wakeups_max=10**6,
        )  # fmt: skip
        self.loop = asyncio.new_event_loop()
        self.stores: tuple[Backend, ...] = (
            MemoryBackend(self.clock, limits=limits),
            SqliteBackend(folder / "lockstep.db", self.clock, limits=limits, synchronous="NORMAL"),
        )
        if redis_url is not None:
            with redis.Redis.from_url(redis_url) as client:
                client.flushall()
            self.stores += (RedisBackend(redis_url, self.clock, limits=limits),)
        self.tokens: list[Claimed] = []
        self.nonces = self.messages = self.compared = 0
        self.each(lambda s, _: s.publish_flow("E", "1", "E"))
        self.each(lambda s, _: s.publish_flow("H", "1", "H"))
        self.claim("nobody", fresh=True)

    def close(self) -> None:
        for store in self.stores:
            self.loop.run_until_complete(store.close())
        self.loop.close()

    def each(self, verb: Callable[[Backend, int], Coroutine[Any, Any, T]]) -> list[T]:
        return [self.loop.run_until_complete(verb(store, i)) for i, store in enumerate(self.stores)]

    # The verbs. Each compares the three answers in a common spelling.
    def submit(self, run_id: str, flow: str) -> None:
        self.model, answer = m.submit(self.model, run_id, flow)
        start = submission(run_id, flow)
        for got in self.each(lambda s, _: s.submit(start)):
            spelled = {
                ports.SubmitConflict: ("Conflict",),
                ports.Tombstoned: ("Tombstoned",),
                ports.Submitted: ("Submitted", getattr(got, "deduplicated", None)),
            }[type(got)]
            assert spelled == answer

    def claim(self, run_id: str, *, fresh: bool) -> None:
        self.nonces += fresh
        nonce = (self.nonces, 0)
        self.model, answer = m.claim(self.model, nonce, run_id)
        text = f"h{self.nonces}.n"
        got = self.each(lambda s, _: s.claim(text, 1, queues=(run_id,)))
        if answer[0] == "Nothing":
            assert all(not claims for claims in got), got
            return
        _, taken, token, seq, _, _, _, box, cancel = answer
        for claims in got:
            claim = claims[0]
            assert (claim.header.run_id, claim.header.seq, claim.cancel) == (taken, seq, cancel)
            assert claim.token.generation == token[1]
            assert [mail.number for mail in claim.mailbox] == [entry[0] for entry in box]
        known = Claimed(taken, token, tuple(claims[0].token for claims in got))
        if known not in self.tokens:
            self.tokens.append(known)

    def settle(self, move: Move) -> None:
        q = m.Settle(
            move.claim.run_id, move.claim.model, move.seq, closes=move.closes, arms=move.arms, spawns=move.spawned,
            ack=move.ack, next=move.next, progress=move.progress,
        )  # fmt: skip
        inc = getattr(m.get(self.model, move.claim.run_id), "inc", 0)
        self.model, answer = m.settle(self.model, q)
        step = self._step(move, repr(q.digest), inc)
        for got in self.each(lambda s, i: s.settle(step(move.claim.stores[i]))):
            assert settle_words(got) == model_settle_words(answer), (got, answer)

    def _step(self, move: Move, digest: str, inc: int) -> Callable[[Token], ports.Step]:
        kind, *rest = move.next
        match kind:
            case "keep":
                following: ports.Next = ports.Keep()
            case "park":
                following = ports.Park(None if rest[0] is None else self.clock.now_ms() + rest[0] * TICK_MS)
            case "end":
                following = ports.End(rest[0])
            case _:
                following = ports.HandBack()
        closes = tuple(ports.Closing(spell(w), why, want if why == "event" else 0) for w, why, want in move.closes)
        arms = tuple(
            ports.Arm(spell(w), wait.kind, "n", "n", wait.etype, wait.key, wait.expr, wait.reuse)
            for w, wait in move.arms
        )
        run_id = move.claim.run_id
        spawns = tuple(
            ports.Spawn(submission(m.child_id(run_id, inc, w), flow), spell(w)) for w, flow in move.spawned
        )  # fmt: skip
        return lambda token: ports.Step(
            RunId(run_id), token, move.seq, digest, {}, following, closes, arms, spawns, move.ack, move.progress
        )

    def renew(self, claim: Claimed) -> None:
        self.model, answer = m.renew(self.model, claim.run_id, claim.model)
        for [got] in self.each(lambda s, i: s.renew([(RunId(claim.run_id), claim.stores[i])])):
            if isinstance(got, ports.Lost):
                assert answer == ("Lost",)
            else:
                assert (got.cancel, [x.number for x in got.mailbox]) == (answer[1], [e[0] for e in answer[2]])

    def wake(self, run_id: str, wid: tuple[int, int], data: str) -> None:
        self.model, answer = m.wake(self.model, run_id, wid, data)
        for got in self.each(lambda s, _: s.wake(RunId(run_id), spell(wid), answer_bytes(data))):
            assert type(got).__name__ == answer[0], (got, answer)
            if isinstance(got, ports.AlreadyResolved):
                assert by_words(got.by) == model_by_words(answer[1])

    def publish(self, event_id: str) -> None:
        self.model, answer = m.publish(self.model, event_id, "pay", "k")
        for got in self.each(lambda s, _: s.publish(event_id, "pay", "k", b"{}")):
            assert isinstance(got, Published)
            assert got.number == answer[1]

    def message(self, kind: str, run_id: str, arg: Any, *, old: bool) -> None:
        """A producer's message: ``arg`` is the flow of a start, the wait of a resume or of a timeout."""
        self.messages += 1
        name = f"m{self.messages}"
        self.model, answer = m.accept(self.model._replace(inbox=((name, kind, run_id, arg, old),)))
        body = {"type": kind, "execution_id": run_id, "queue": run_id, "timestamp": LONG_AGO if old else None}
        if kind == "start":
            body["flow_id"] = arg
        elif kind in ("resume", "timeout"):
            body |= {"type": "resume", "wait_id": spell(arg), "data": "msg"}
            body |= {"resume_type": kind} if kind == "timeout" else {}
        self.each(lambda s, _: s.offer(name, encode(body)))
        for [accepted] in self.each(lambda s, _: s.accept(1)):
            assert outcome_words(accepted.outcome) == model_outcome_words(answer), (accepted, answer)
        wanted = [(number, DEAD.get(reason, reason)) for number, reason in self.model.dead]
        for letters, _ in self.each(lambda s, _: s.dead_letters(limit=10_000)):
            assert [(letter.message.message_id, letter.reason) for letter in letters] == wanted

    def nudge(self, kind: str, run_id: str) -> None:
        """A message to go on, for a run that is there: only a retry of one that failed does something."""
        run = m.get(self.model, run_id)
        assert run is not None
        if kind == "retry" and run.status == "error":
            self.model, _ = m.reopen(self.model, run_id)
        self.messages += 1
        name, body = f"m{self.messages}", {"type": "resume", "resume_type": kind, "execution_id": run_id}
        self.each(lambda s, _: s.offer(name, encode(body)))
        answers = {repr(accepted.outcome) for [accepted] in self.each(lambda s, _: s.accept(1))}
        assert len(answers) == 1, answers

    def cancel(self, run_id: str) -> None:
        known = m.get(self.model, run_id) is not None
        self.model, answer = m.cancel(self.model, run_id)
        for got in self.each(lambda s, _: s.cancel(RunId(run_id))):
            assert type(got).__name__ == (answer[0] if known else "NoRun")

    def delete(self, run_id: str) -> None:
        self.model, answer = m.delete(self.model, run_id)
        if not self.tombstones:
            self.model = self.model._replace(tombs=frozenset())
        for got in self.each(lambda s, _: s.delete(RunId(run_id))):
            assert type(got).__name__ == answer[0]

    def reopen(self, run_id: str) -> None:
        self.model, answer = m.reopen(self.model, run_id)
        for got in self.each(lambda s, _: s.reopen(RunId(run_id))):
            assert type(got).__name__ == answer[0]

    def release(self, claim: Claimed) -> None:
        self.model, _ = m.release(self.model, claim.model[0])
        self.each(lambda s, i: s.release(claim.stores[i].nonce.rpartition(".")[0]))

    def pump(self) -> None:
        if self.model.out:
            self.model = m.pump(self.model)
        self.each(lambda s, _: s.carry_on(1))

    def tick(self) -> None:
        self.model = m.tick_store(self.model)
        self.clock.advance(TICK_MS)

    def compare(self) -> None:
        """The stores hold what the model holds, and the auditor finds nothing. Redis is looked at now and then."""
        wanted = self._model_picture()
        self.compared += 1
        for store in self.stores:
            if isinstance(store, RedisBackend) and self.compared % LOOKS_AT_REDIS:
                continue
            found = difference(self._look(store, self._picture), wanted)
            assert not found, found
            assert self.loop.run_until_complete(store.audit()) == []

    def _look(self, store: Backend, question: Callable[[Rows], Picture]) -> Picture:
        if isinstance(store, RedisBackend):
            tables = self.loop.run_until_complete(read_tables(store._talk))
            return question(MemoryRows(tables, store._talk.limits, self.clock.now_ms()))
        return store._gate.read(question)

    def _model_picture(self) -> Picture:
        s = self.model
        return {
            "runs": {run_id: self._model_run(run) for run_id, run in s.runs},
            "queue": [run_id for _, run_id in s.queue],
            "sequence": s.evseq,
            "grace": s.grace,
            "outbox": [entry[0] for entry in s.out],
        }

    def _model_run(self, r: Any) -> Picture:
        return {
            "status": r.status, "held": r.token is not None, "generation": r.gen, "seq": r.seq, "due": r.due,
            "tries": r.tries, "lost": r.lost, "slot": r.slot, "cancel": r.cancel, "boxn": r.boxn, "born": r.born,
            "mailbox": [(n, {"cand": "candidate"}.get(kind, kind), spell(wid)) for n, kind, wid, _ in r.box],
            "waits": {
                spell(wid): (w.state, w.arm, w.low, w.cand, w.by and model_by_words(w.by)) for wid, w in r.waits
            },
        }  # fmt: skip

    def _picture(self, rows: Rows) -> Picture:
        runs = [rows.runs.load(RunId(run_id)) for run_id, _ in self.model.runs]
        return {
            "runs": {run.run_id: self._run(rows, run) for run in runs if run is not None},
            "queue": [rows.runs.at(rid).run_id for _, rid in rows.ledger.parked()],
            "sequence": rows.events.current(),
            "grace": max(0, -(-(rows.ledger.pulse().grace_until_ms - rows.now) // TICK_MS)),
            "outbox": [entry.kind for entry in rows.ledger.entries()],
        }

    def _run(self, rows: Rows, run: RunRow) -> Picture:
        return {
            "status": run.status, "held": run.nonce is not None, "generation": run.generation, "seq": run.seq,
            "due": None if run.due is None else max(0, run.due - rows.now) // TICK_MS,
            "tries": run.tries, "lost": run.lost, "slot": bool(run.slot), "cancel": bool(run.cancel),
            "boxn": run.boxn, "born": run.born,
            "mailbox": [(mail.number, mail.kind, mail.wait_id) for mail in rows.waits.mailbox(run)],
            "waits": {wait_id: wait_words(wait) for wait_id, wait in rows.waits.of(run).items()},
        }  # fmt: skip


def difference(held: Picture, wanted: Picture) -> Picture:
    """What a store holds and what it should, where they differ."""
    runs = set(held["runs"]) | set(wanted["runs"])
    parts = {run_id: (held["runs"].get(run_id), wanted["runs"].get(run_id)) for run_id in runs}
    parts |= {name: (held[name], wanted[name]) for name in wanted if name != "runs"}
    return {name: both for name, both in parts.items() if both[0] != both[1]}


def submission(run_id: str, flow: str) -> ports.Submission:
    return ports.Submission(RunId(run_id), start_digest(flow, b"{}"), b"{}", flow, flow, queue=run_id)


def outcome_words(outcome: Outcome) -> tuple[Any, ...]:
    match outcome:
        case Started(_, deduplicated):
            return "Submitted", deduplicated
        case Resumed(ports.AlreadyResolved(by)):
            return "AlreadyResolved", by_words(by)
        case Resumed(answer) | CancelAccepted(answer):
            return (type(answer).__name__,)
        case DeadLettered(reason):
            return "Dead", reason
    return (type(outcome).__name__,)


def model_outcome_words(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    match answer:
        case ("Conflict" | "Tombstoned" as word,):
            return "Dead", word.lower()
        case ("Dead", reason):
            return "Dead", DEAD.get(reason, reason)
        case ("AlreadyResolved", by):
            return "AlreadyResolved", model_by_words(by)
    return answer if answer[0] == "Submitted" else (answer[0],)


def wait_words(wait: WaitRow) -> tuple[Any, ...]:
    return wait.state, wait.arm, wait.low, wait.cand, wait.by and by_words(wait.by)


def by_words(by: By) -> tuple[Any, ...]:
    if by.kind == "event":
        return ("event", by.event)
    return ("hand", by.digest) if by.kind == "hand" else (by.kind,)


def model_by_words(by: Any) -> tuple[Any, ...]:
    if isinstance(by, tuple):
        return {"ev": ("event", by[1]), "msg": ("hand", digest_of(answer_bytes("msg")))}.get(by[0], ("child",))
    return (by,) if by in ("timeout", "cut", "cancel") else ("hand", digest_of(answer_bytes(by)))


def settle_words(got: ports.SettleAnswer) -> tuple[Any, ...]:
    match got:
        case ports.Settled(seq, held, cancel, mailbox, _):
            return "Settled", seq, held, cancel, [x.number for x in mailbox]
        case ports.Dup(seq, held, cancel, mailbox, _):
            return "Dup", seq, held, cancel, [x.number for x in mailbox]
        case ports.Stale(token, seq):
            return "Stale", token and token.generation, seq
        case ports.WaitConflict(wait_id):
            return "Conflict", wait_id
        case ports.Mismatch():
            return ("Mismatch",)


def model_settle_words(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    match answer:
        case ("Settled" | "Dup" as word, seq, held, cancel, box):
            return word, seq, held, cancel, [e[0] for e in box]
        case ("Stale", token, seq):
            return "Stale", token and token[1], seq
        case ("Conflict", wid):
            return "Conflict", spell(wid)
    return answer
