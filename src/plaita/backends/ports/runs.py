"""``RunStore`` over a gate."""

from __future__ import annotations

from collections.abc import Sequence

from plaita.backends.gate import Gate
from plaita.backends.rows import Rows
from plaita.backends.verbs import claim as claiming
from plaita.backends.verbs.adopt import adopt
from plaita.backends.verbs.cancel import cancel
from plaita.backends.verbs.delete import delete, prune
from plaita.backends.verbs.outbox import pump
from plaita.backends.verbs.reopen import reopen
from plaita.backends.verbs.settle import settle
from plaita.backends.verbs.submit import submit
from plaita.backends.verbs.wake import wake
from plaita.ports.runs import (
    Adopted,
    Adoption,
    AlreadyTerminal,
    Cancelled,
    CancelRequested,
    Claim,
    Deleted,
    Lost,
    NoRun,
    NotRetryable,
    NotTerminal,
    Renewed,
    Reopened,
    SettleAnswer,
    Step,
    Submission,
    SubmitConflict,
    Submitted,
    Tombstoned,
    WakeAnswer,
)  # fmt: skip
from plaita.ports.values import RunId, Token, WaitId

PRUNE_CHUNK = 200


class GatedRuns:
    """The verbs that move a run."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    @property
    def lease_ms(self) -> int:
        return self._gate.limits.lease.lease_ms

    async def submit(self, start: Submission, document: bytes | None = None) -> Submitted | SubmitConflict | Tombstoned:
        return await self._gate.write(lambda rows: submit(rows, start, self._gate.durability(), document=document))

    async def adopt(self, start: Submission, state: Adoption) -> Adopted | SubmitConflict | Tombstoned:
        return await self._gate.write(lambda rows: adopt(rows, start, state, self._gate.durability()))

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
        wish = claiming.Wish(nonce, n, queues, lacks, only, alone)
        if self._gate.read(lambda rows: claiming.is_idle(rows, wish)):
            return []
        return await self._gate.write(lambda rows: claiming.claim(rows, wish))

    async def frames(self, run_id: RunId) -> dict[str, bytes]:
        def question(rows: Rows) -> dict[str, bytes]:
            run = rows.runs.load(run_id)
            return {} if run is None else rows.record.frames(run)

        return self._gate.read(question)

    async def reload(self, run_id: RunId, token: Token) -> Claim | Lost:
        return self._gate.read(lambda rows: claiming.reload(rows, run_id, token))

    async def settle(self, step: Step) -> SettleAnswer:
        return await self._gate.write(lambda rows: settle(rows, step))

    async def renew(self, leases: Sequence[tuple[RunId, Token]]) -> list[Renewed | Lost]:
        return await self._gate.write(lambda rows: claiming.renew(rows, leases))

    async def release(self, holder: str) -> int:
        return await self._gate.write(lambda rows: claiming.release(rows, holder))

    async def wake(self, run_id: RunId, wait_id: WaitId, data: bytes, actor: str = "") -> WakeAnswer:
        return await self._gate.write(lambda rows: wake(rows, run_id, wait_id, data, actor))

    async def cancel(self, run_id: RunId, actor: str = "") -> Cancelled | CancelRequested | AlreadyTerminal | NoRun:
        return await self._gate.write(lambda rows: cancel(rows, run_id, actor))

    async def delete(self, run_id: RunId) -> Deleted | NotTerminal | NoRun:
        return await self._gate.write(lambda rows: delete(rows, run_id))

    async def reopen(self, run_id: RunId) -> Reopened | NotRetryable | NoRun:
        return await self._gate.write(lambda rows: reopen(rows, run_id))

    async def prune(self, older_than_ms: int) -> int:
        pruned, more = 0, True
        while more:
            portion = await self._gate.write(lambda rows: prune(rows, older_than_ms, PRUNE_CHUNK))
            pruned, more = pruned + portion.runs, portion.more
        return pruned

    async def carry_on(self, entries: int = 1) -> int:
        """Carry the outbox on without claiming; answers how many entries were touched. Every claim does it too."""
        return await self._gate.write(lambda rows: pump(rows, entries))
