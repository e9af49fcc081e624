"""``RunStore`` over scripts: each method is one script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plaita.backends.limits import SPARED_MS
from plaita.backends.redis.codec import (
    adoption_args,
    by_of,
    claim_of,
    mails_of,
    parent_bytes,
    start_args,
    step_args,
)  # fmt: skip
from plaita.backends.redis.frames import read_frames
from plaita.backends.redis.sweeping import sweep
from plaita.backends.redis.talk import Talk
from plaita.backends.verbs.match import digest_of
from plaita.base.json import decode
from plaita.ports.runs import (
    Adopted,
    Adoption,
    AlreadyResolved,
    AlreadyTerminal,
    Cancelled,
    CancelRequested,
    Claim,
    Deleted,
    Dup,
    Lost,
    Mismatch,
    NoRun,
    NoSuchWait,
    NotRetryable,
    NotTerminal,
    Renewed,
    Reopened,
    SettleAnswer,
    Settled,
    Stale,
    Step,
    Submission,
    SubmitConflict,
    Submitted,
    Tombstoned,
    WaitConflict,
    WakeAnswer,
    Woken,
)  # fmt: skip
from plaita.ports.values import RunId, Token, WaitId

PRUNE_CHUNK = 50
"""Runs that one function removes: some 6 ms of the server."""


class RedisRuns:
    """The verbs that move a run."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    @property
    def lease_ms(self) -> int:
        return self._talk.limits.lease.lease_ms

    async def submit(self, start: Submission, document: bytes | None = None) -> Submitted | SubmitConflict | Tombstoned:
        closure = None if document is None else start.closure
        values = {**start_args(start), "parent": parent_bytes(start.parent), "closure": closure}
        (word, *found), durability = await self._talk.run_durably("submit", **values)
        # Most definitions are there: a document, which may be long, is sent when it is missing.
        while word == b"undefined":
            await self._talk.run("put_closure", closure=closure, document=document)
            (word, *found), durability = await self._talk.run_durably("submit", **values)
        if word == b"submitted":
            run_id, incarnation, there = found
            return Submitted(RunId(run_id.decode()), incarnation.decode(), bool(there), durability)
        return _refused_start(word, start.run_id)

    async def adopt(self, start: Submission, state: Adoption) -> Adopted | SubmitConflict | Tombstoned:
        word, *found = await self._talk.run("adopt", **start_args(start), **adoption_args(state))
        if word == b"adopted":
            return Adopted(RunId(found[0].decode()), found[1].decode())
        return _refused_start(word, start.run_id)

    async def claim(
        self,
        nonce: str,
        n: int,
        *,
        queues: Sequence[str] = ("default",),
        lacks: frozenset[str] = frozenset(),
        only: RunId | None = None,
        alone: bool = True,
    ) -> list[Claim]:
        reply = await self._talk.run(
            "claim", nonce=nonce, n=n, only=only, alone=alone, queues=queues, lacks=sorted(lacks)
        )
        return [claim_of(one, self.lease_ms) for one in reply]

    async def frames(self, run_id: RunId) -> dict[str, bytes]:
        return await read_frames(self._talk, run_id)

    async def reload(self, run_id: RunId, token: Token) -> Claim | Lost:
        reply = await self._talk.run("reload", id=run_id, **_token(token))
        return claim_of(reply, self.lease_ms) if reply else Lost()

    async def settle(self, step: Step) -> SettleAnswer:
        return _settled(await self._talk.run("settle", **step_args(step)))

    async def renew(self, leases: Sequence[tuple[RunId, Token]]) -> list[Renewed | Lost]:
        flat = [v for run_id, t in leases for v in (run_id, t.nonce, t.generation, t.incarnation)]
        answers: list[Renewed | Lost] = []
        for one in await self._talk.run("renew", leases=flat):
            lost = len(one) < 2
            answers.append(Lost(*one) if lost else Renewed(bool(one[2]), mails_of(one[4]), one[3], self.lease_ms))
        return answers

    async def release(self, holder: str) -> int:
        count: int = await self._talk.run("release", holder=holder)
        return count

    async def wake(self, run_id: RunId, wait_id: WaitId, data: bytes, actor: str = "") -> WakeAnswer:
        reply = await self._talk.run("wake", id=run_id, wait=wait_id, data=data, digest=digest_of(data), actor=actor)
        return woken(reply, wait_id)

    async def cancel(self, run_id: RunId, actor: str = "") -> Cancelled | CancelRequested | AlreadyTerminal | NoRun:
        return cancelled(await self._talk.run("cancel", id=run_id, actor=actor), run_id)

    async def delete(self, run_id: RunId) -> Deleted | NotTerminal | NoRun:
        word, *found = await self._talk.run("delete", id=run_id)
        if word == b"not_terminal":
            return NotTerminal(found[0].decode())
        return NoRun(run_id) if word == b"no_run" else Deleted(run_id)

    async def reopen(self, run_id: RunId) -> Reopened | NotRetryable | NoRun:
        return reopened(await self._talk.run("reopen", id=run_id), run_id)

    async def prune(self, older_than_ms: int) -> int:
        pruned = 0
        while True:
            portion: int = await self._talk.run("prune", older=older_than_ms, n=PRUNE_CHUNK)
            pruned += portion
            if portion < PRUNE_CHUNK:
                break
        await sweep(self._talk, older_than_ms - SPARED_MS)
        return pruned

    async def carry_on(self, entries: int = 1) -> int:
        """Carry the outbox on without claiming; answers how many entries were touched. Every claim does it too."""
        count: int = await self._talk.run("carry_on", entries=entries)
        return count


def woken(reply: Sequence[Any], wait_id: WaitId) -> WakeAnswer:
    """The answer of ``lua/answering.lua``."""
    word = reply[0]
    if word == b"woken":
        return Woken(RunId(reply[1].decode()))
    if word == b"no_such_wait":
        return NoSuchWait(wait_id)
    by = by_of(decode(reply[1]))
    assert by is not None, "an answered wait says by what"
    return AlreadyResolved(by)


def reopened(reply: Sequence[Any], run_id: RunId) -> Reopened | NotRetryable | NoRun:
    """The answer of ``lua/reopening.lua``."""
    word = reply[0]
    if word == b"not_retryable":
        return NotRetryable(reply[1].decode())
    return NoRun(run_id) if word == b"no_run" else Reopened(run_id)


def cancelled(
    reply: Sequence[Any], run_id: RunId
) -> Cancelled | CancelRequested | AlreadyTerminal | NoRun:  # fmt: skip
    """The answer of ``lua/cancelling.lua``."""
    word = reply[0]
    if word == b"already_terminal":
        return AlreadyTerminal(reply[1].decode())
    if word == b"no_run":
        return NoRun(run_id)
    return Cancelled() if word == b"cancelled" else CancelRequested()


def _refused_start(word: bytes, run_id: RunId) -> SubmitConflict | Tombstoned:
    return SubmitConflict(run_id) if word == b"conflict" else Tombstoned(run_id)


def _settled(reply: Sequence[Any]) -> SettleAnswer:
    word, *found = reply
    match word:
        case b"settled" | b"dup":
            seq, held, cancel, now_ms, mails = found[0]
            kind = Settled if word == b"settled" else Dup
            return kind(seq, bool(held), bool(cancel), mails_of(mails), now_ms)
        case b"stale":
            token = Token(found[1].decode(), found[2], found[3].decode()) if len(found) > 1 else None
            return Stale(token, found[0])
        case b"mismatch":
            return Mismatch(found[0])
    return WaitConflict(WaitId(found[0].decode()))


def _token(token: Token) -> dict[str, Any]:
    return {"nonce": token.nonce, "generation": token.generation, "incarnation": token.incarnation}
