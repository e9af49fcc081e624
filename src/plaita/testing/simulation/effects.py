"""The outside: what calls did to the world, and whether they were allowed to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from plaita.backends.rows import Rows, RunRow
from plaita.base.json import Json, encode
from plaita.core.calls import NodeExecution
from plaita.core.errors import FlowResultError
from plaita.engine.machine import open_calls
from plaita.ports.values import TERMINAL, RunId
from plaita.server.worker.attempt import Attempt
from plaita.testing.simulation.machines import restored
from plaita.testing.simulation.random_flows import weigh

if TYPE_CHECKING:
    from plaita.testing.simulation.process import SimProcess
    from plaita.testing.simulation.world import World


@dataclass(frozen=True, slots=True)
class Logical:
    """One call of one visit of a node, whatever key it carries."""

    run_id: str
    incarnation: str
    call: str


class EffectLog:
    """Every begun effect of a world, checked when it begins."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._keys: dict[str, Logical] = {}
        self._calls: dict[Logical, tuple[str, bytes]] = {}
        self._begun: dict[tuple[Logical, int], int] = {}

    def begins(self, process: SimProcess, execution: NodeExecution, given: Json) -> int:
        """A call begins here and now; answers how often this attempt of it began before."""
        world, call = self._world, execution._call
        attempt = process.attempt_performing(execution)
        if attempt is None:
            world.violated(f"R11 a call is performed that no attempt has begun: {call.id} on {process.name}")
            return 0
        logical = Logical(execution.execution_id, attempt.header.incarnation, call.key)
        where = f"{logical.run_id} {call.id}!{call.attempt} on {process.name}"
        world.trace(process.name, "begins", f"{logical.run_id} {call.id}!{call.attempt}")
        self._check_key(logical, execution.idempotency_key, encode(given), where)
        mark = (logical.run_id, logical.incarnation, attempt.token.nonce, str(attempt.token.generation), call.id)
        if (*mark, str(call.attempt)) in process.begun:
            world.violated(f"R11 one holder began a call twice: {where}")
        process.begun.add((*mark, str(call.attempt)))
        times = self._begun.get((logical, call.attempt), 0)
        self._begun[logical, call.attempt] = times + 1
        if times:
            world.coverage.saw("effect repeated")
        if call.attempt > 1:
            world.coverage.saw("effect retried")
        world.look(lambda rows: self._check_stored(rows, process, execution, where))
        return times

    def _check_key(self, logical: Logical, key: str, request: bytes, where: str) -> None:
        known = self._keys.setdefault(key, logical)
        if known != logical:
            self._world.violated(f"I19 two calls have the key {key}: {known}, {logical}")
        first = self._calls.setdefault(logical, (key, request))
        if first[0] != key:
            self._world.violated(f"I19 one call has two keys: {first[0]}, {key}")
        if first[1] != request and not self._world.auditor.was_reopened(logical.run_id, logical.incarnation):
            self._world.violated(f"I19 one key, two requests: {first[1]!r}, {request!r}: {where}")

    def _check_stored(self, rows: Rows, process: SimProcess, execution: NodeExecution, where: str) -> None:
        world, call = self._world, execution._call
        run = rows.runs.load(RunId(execution.execution_id))
        attempt = process.attempt_performing(execution)
        if attempt is None:
            return
        if run is None or run.status in TERMINAL or not run.held_under(attempt.token):
            # Between the look at the lease and the first byte a process may stand still for long.
            if execution not in process.caught and not world.clock_is_strange:
                state = "is gone" if run is None else f"is {run.status}, held by {run.nonce}"
                world.violated(f"I1 a call began without a claim: {where}; the run {state}")
            return
        self._check_lease(process, attempt, run, where)
        machine = restored(world.planned(run.run_id), rows, run)
        if not any(c.id == call.id and c.attempt == call.attempt for c in open_calls(machine)):
            world.violated(f"I18 a call began that the store does not have open: {where}")

    def _check_lease(self, process: SimProcess, attempt: Attempt, run: RunRow, where: str) -> None:
        """A lease as its holder counts it is over before the store's is."""
        world, left_here = self._world, attempt.lease.until - process.clock.elapsed_ms()
        left_there = (run.due or 0) - world.clock.now_ms()
        if not world.clock_is_strange and left_here > left_there + 1:
            world.violated(f"I1 the holder counts {left_here:.0f} ms of lease, the store {left_there}: {where}")


class ProcessOutside:
    """The outside as one process reaches it. Fates follow from the call, never from when or where it is made."""

    def __init__(self, world: World, process: SimProcess) -> None:
        self._world, self._process = world, process

    async def perform(self, execution: NodeExecution, given: Json) -> Json:
        before = self._begin(execution, given)
        weight = self._weight(execution, "time")
        if execution.node_id.startswith("kill") and before < self._weight(execution, "kills") % 8:
            self._kill()
            await asyncio.Event().wait()
        seconds = (weight % 300) / 1000
        if weight % 7 == 0:
            seconds = 1 + weight % 4
        if execution.node_id.startswith("slow") or weight % 23 == 0:
            seconds = 8 + weight % 6
        await asyncio.sleep(seconds)
        return self._outcome(execution)

    def perform_at_once(self, execution: NodeExecution, given: Json) -> Json:
        self._begin(execution, given)
        if self._process.alive:
            self._world.coverage.saw("thread job")
        return self._outcome(execution)

    def _begin(self, execution: NodeExecution, given: Json) -> int:
        if not self._process.alive:
            return 0
        return self._world.effects.begins(self._process, execution, given)

    def _kill(self) -> None:
        if self._process.alive:
            self._world.coverage.saw("node killed its process")
            self._world.kill(self._process)

    def _weight(self, execution: NodeExecution, what: str) -> int:
        call = execution._call
        return weigh(self._world.seed, execution.execution_id.partition(".")[0], call.key, call.attempt, what)

    def _outcome(self, execution: NodeExecution) -> Json:
        calm = self._world.planned(execution.execution_id).calm
        fate = self._weight(execution, "fate") % 100
        if execution.node_id == "fail" and execution.attempt < 3:
            fate = 0
        if fate < 12 and not (calm and execution.attempt > 2):
            raise ConnectionError("broken pipe")
        if fate < 15 and not calm:
            raise ValueError("permanent")
        if fate < 17 and not calm:
            raise FlowResultError("BUSINESS", "said no")
        if fate % 5 == 0:
            execution.set_state("seen", execution.node_id)
        return [execution.node_id, fate]
