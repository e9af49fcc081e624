"""Props for the contracts: a clock moved by hand, and short ways to bring a run into a state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest

from plaita.base.ids import start_digest
from plaita.ports.backend import Backend
from plaita.ports.runs import Arm, Claim, Keep, Next, SettleAnswer, Settled, Step, Submission
from plaita.ports.values import RunId, WaitId

START_MS = 1_700_000_000_000
RUN = RunId("r")
WAIT = WaitId("w")
INPUT = b'{"x":1}'
DIGEST = start_digest("closure", INPUT)


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def elapsed_ms(self) -> float:
        return float(self._now_ms)

    def advance(self, ms: int) -> None:
        self._now_ms += ms


def start(run_id: str = RUN, *, digest: str = DIGEST, **more: Any) -> Submission:
    """A submission in which only the digest says what would run."""
    return Submission(RunId(run_id), digest, INPUT, "flow", "closure", **more)


def hand(wait_id: str = WAIT) -> Arm:
    return Arm(WaitId(wait_id), "hand", "node", "node")


def listen(wait_id: str = WAIT, *, key: str | None = "k", **more: Any) -> Arm:
    return Arm(WaitId(wait_id), "event", "node", "node", "pay", key, **more)


class Stage:
    """A backend and its clock. Every claim is by a holder of its own, so that each can be released alone."""

    def __init__(self, backend: Backend, clock: HandClock) -> None:
        self.backend, self.clock = backend, clock
        self._holders = 0

    def nonce(self) -> str:
        self._holders += 1
        return f"holder{self._holders}.nonce"

    async def take(self, n: int = 1, **more: Any) -> list[Claim]:
        """Claim under a new nonce."""
        return await self.backend.claim(self.nonce(), n, **more)

    async def hold(self, run_id: str = RUN, **more: Any) -> Claim:
        """Submit a run and claim it."""
        await self.backend.submit(start(run_id, **more))
        [claim] = await self.take(only=RunId(run_id))
        return claim

    def step(self, claim: Claim, following: Next, *, seq: int | None = None, **more: Any) -> Step:
        """The next settle of a fresh claim; its digest covers its content."""
        number = claim.header.seq + 1 if seq is None else seq
        step = Step(claim.header.run_id, claim.token, number, "", more.pop("delta", {}), following, **more)
        return replace(step, digest=blake2b(repr(step).encode(), digest_size=8).hexdigest())

    async def settle(self, claim: Claim, following: Next, **more: Any) -> SettleAnswer:
        return await self.backend.settle(self.step(claim, following, **more))

    async def keep(self, claim: Claim, *arms: Arm, **more: Any) -> Claim:
        """Settle and go on; answers the claim with the next number."""
        answer = await self.settle(claim, Keep(), arms=arms, **more)
        assert isinstance(answer, Settled)
        return replace(claim, header=replace(claim.header, seq=answer.seq), mailbox=answer.mailbox)

    async def pass_time(self, ms: int) -> None:
        """Let time pass while some other process keeps the store's pulse."""
        while ms > 0:
            self.clock.advance(min(ms, 1_000))
            ms -= 1_000
            await self.backend.claim("pulse.nonce", 1, queues=("nobody",))

    async def lease_over(self) -> None:
        await self.pass_time(self.backend.lease_ms)

    async def status(self, run_id: str = RUN) -> str:
        run = await self.backend.run(RunId(run_id))
        return "" if run is None else run.status

    async def waits(self, run_id: str = RUN) -> dict[str, str]:
        return {w.wait_id: w.state for w in await self.backend.waits(RunId(run_id), open_only=False)}

    async def events(self, run_id: str = RUN) -> Sequence[bytes]:
        return [entry.data for entry in await self.backend.history(RunId(run_id))]


class Contract:
    """Base of the contracts: a subclass supplies the fixtures ``backend`` and ``clock``."""

    @pytest.fixture
    def stage(self, backend: Backend, clock: HandClock) -> Stage:
        return Stage(backend, clock)
