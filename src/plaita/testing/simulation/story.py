"""From a seed to a verdict: a stormy time, a fair one, and the last answers."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from plaita.backends.limits import Limits
from plaita.base.clock import seeded
from plaita.base.json import encode
from plaita.policy.lease import LeasePlan
from plaita.ports.values import TERMINAL
from plaita.testing.simulation.auditor import Outcome
from plaita.testing.simulation.faults import MILD, ROUGH, Delivery
from plaita.testing.simulation.flows import Planned, plan_runs
from plaita.testing.simulation.process import SimProcess
from plaita.testing.simulation.producers import Producers, answer_of
from plaita.testing.simulation.random_flows import Dice, weigh
from plaita.testing.simulation.world import Kind, Setting, World

STORM_MS = 45_000
FAIR_MS = 1_800_000
"""Fair time in which everything must come to rest: longer than retries and timeouts inside each other add up to."""
SOON_MS = 60_000
ANSWERS_MAX = 1_000
APART_MS = 25_000
"""Between two troubles of the whole store, so that each finds holders that have renewed."""
_TIMES = re.compile(r"\d{13}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a world showed. ``report`` is the trace with the violations at its end."""

    seed: int
    backend: Kind
    violations: tuple[str, ...]
    counts: Counter[str]
    digest: str
    report: str


def play(
    seed: int, backend: Kind = "memory", folder: Path | None = None, *, trace: bool = False, url: str = ""
) -> Verdict:
    """Run the world of a seed; on Redis at that ``url``. ``trace``: report what happened even if nothing was wrong."""
    dice = Dice(weigh(seed, "plan"))
    planned = plan_runs(dice, 4 + dice.below(4))
    setting = Setting(seed, backend, 2 + dice.below(2), dice.pick((MILD, ROUGH, ROUGH)), limits_of(dice), url=url)
    with seeded(seed):
        world = World(setting, planned, folder)
        try:
            Story(world, planned).tell()
        except Exception as e:  # noqa: BLE001 - whatever a verb or a worker raises is the verdict of this world
            world.violated(f"raised {''.join(traceback.format_exception(e)[-3:])}")
        finally:
            world.close()
    report = world.record.text() if trace or world.record.violations else ""
    return Verdict(seed, backend, tuple(world.record.violations), world.coverage.counts, world.record.digest, report)


def limits_of(dice: Dice) -> Limits:
    """Small numbers, so that every bound is met."""
    return Limits(
        lease=LeasePlan(10_000, 3_300, 4_000), cap=dice.pick((None, 1, 2, 3)), chunk=dice.pick((1, 2, 200)),
        outbox_per_claim=dice.pick((1, 16)), start_every=dice.pick((0, 3)), tombstone_ms=8_000, message_age_ms=60_000,
        wakeups_max=2, failures_max=4,
    )  # fmt: skip


def undisturbed(seed: int, planned: list[Planned]) -> dict[str, Outcome]:
    """How runs end when nothing goes wrong, by id."""
    if not planned:
        return {}
    world = World(Setting(seed, workers=1, quiet=True), planned)
    try:
        Story(world, planned).rest()
        found = world.auditor
        found.look_at_all()
        return {run_id: outcome for (run_id, _), outcome in found.outcomes.items()}
    finally:
        world.close()


class Story:
    """What happens in a world, in order."""

    def __init__(self, world: World, planned: list[Planned]) -> None:
        self.world, self.planned = world, planned
        self.producers = Producers(world, planned)
        self._trouble_over = 0.0
        self._storm = True

    def tell(self) -> None:
        """The whole of it."""
        world = self.world
        self._publish_all()
        for _ in range(world.setting.workers):
            world.start_process()
        world.on_claim = self.producers.interfere
        self._produce()
        self._weather()
        world.run_until(STORM_MS)
        self._storm = world.faults.active = False
        self._start_missing()
        self._settle("after the storm")
        self._answer_all()
        self._compare()

    def rest(self) -> None:
        """Only the answers, in a world without faults."""
        self._publish_all()
        self.world.start_process()
        self.producers.start_all()
        self.world.auditor.look_at_all()
        self._settle("in peace")
        self._answer_all()

    def _publish_all(self) -> None:
        for planned in self.planned:
            start = planned.submission
            self.world.ask("put_closure", planned.closure, planned.document)
            self.world.ask("publish_flow", start.flow_id, "1", planned.closure)

    def _start_missing(self) -> None:
        runs = self.world.auditor.picture.runs
        for planned in self.planned:
            if planned.run_id not in runs:
                self.world.execute("submit", planned.submission)

    def _produce(self) -> None:
        if not self._storm:
            return
        if self.world.now < STORM_MS - 5_000:
            self.producers.act()
        self.world.at(50 + self.world.dice.below(900), self._produce)

    # What befalls processes and the store.

    def _weather(self) -> None:
        if not self._storm:
            return
        world, rates = self.world, self.world.faults.rates
        happens = world.faults.happens
        if world.processes:
            busy = [p for p in world.processes if p.attempts]
            process = world.dice.pick(busy if busy and world.dice.chance(80) else world.processes)
            if happens(rates.killed):
                self._kill(process)
            elif happens(rates.drained):
                world.coverage.saw("process drained")
                world.trace(process.name, "is told to stop", "")
                process.drain()
            elif happens(rates.paused):
                self._pause(process, asleep=False)
            elif happens(rates.busy):
                self._keep_busy(process)
            elif happens(rates.slept):
                self._pause(process, asleep=True)
        if world.now > self._trouble_over and happens(rates.outage):
            self._outage()
        if world.now > self._trouble_over and happens(rates.stepped):
            self._step_clock()
        world.at(1_000, self._weather)

    def _pause(self, process: SimProcess, *, asleep: bool) -> None:
        ms = self.world.dice.pick((3_000, 12_000, 16_000, 25_000))
        if asleep:
            self.world.coverage.saw("machine slept")
        elif ms > self.world.limits.lease.lease_ms:
            self.world.coverage.saw("process paused past its lease")
        self.world.trace(process.name, "stands still", f"{ms} ms")
        if asleep or self.world.dice.chance(50):
            process.pause(ms, asleep=asleep)
            return

        def strike(fate: Delivery) -> Delivery:
            # Between a settle and its answer: what the answer allows begins when the lease is over.
            self.world.at(fate.back_ms / 2, lambda: process.pause(ms, asleep=False))
            return fate

        process.at_settle = strike

    def _kill(self, process: SimProcess) -> None:
        world = self.world
        world.coverage.saw("process killed")
        if world.dice.chance(50):
            world.kill(process)
            return

        def strike(fate: Delivery) -> Delivery:
            # The settle is on its way, and arrives when somebody else may have the run.
            world.at(0, lambda: world.kill(process, seen=True))
            return Delivery(world.dice.pick((2, 800, 1_500, 2_500, 5_000)), fate.back_ms, answered=False)

        process.at_settle = strike

    def _keep_busy(self, process: SimProcess) -> None:
        ms = self.world.dice.pick((3_000, 15_000))
        if process.renews_beside:
            self.world.coverage.saw("loop busy past its lease, renewed beside", ms > self.world.limits.lease.lease_ms)
        self.world.trace(process.name, "is busy", f"{ms} ms")
        process.keep_busy(ms)

    def _outage(self) -> None:
        ms = self.world.dice.pick((1_000, 3_000, 6_000, 12_000, 20_000))
        self.world.coverage.saw("outage")
        self.world.trace("store", "cannot be reached", f"{ms} ms")
        self.world.outage_until = self.world.now + ms
        self._trouble_over = self.world.now + ms + APART_MS

    def _step_clock(self) -> None:
        ms = self.world.dice.pick((-20_000, -5_000, 2_000, 8_000, 30_000))
        self.world.coverage.saw("store clock stepped forward" if ms > 0 else "store clock stepped back")
        self.world.trace("store", "clock steps", f"{ms} ms")
        self.world.clock.stepped_ms += ms
        self.world.strange_until = self.world.now + 2 * self.world.limits.lease.lease_ms
        self._trouble_over = self.world.now + APART_MS

    # How it ends.

    def _settle(self, when: str) -> None:
        """Everything comes to rest, or L1 is broken."""
        world = self.world
        ends = world.now + FAIR_MS
        while not world.record.violations:
            world.run_until(world.now + 500)
            if world.quiet:
                world.auditor.look_at_all()
            restless = self._restless()
            if not restless:
                return
            if world.now > ends:
                world.violated(f"L1 {when}: {'; '.join(restless)}")

    def _restless(self) -> list[str]:
        picture, soon = self.world.auditor.picture, self.world.clock.now_ms() + SOON_MS
        found = [f"outbox {picture.outbox}"] if picture.outbox else []
        found += [f"inbox {picture.messages}"] if picture.messages else []
        for run_id, run in picture.runs.items():
            row = run.row
            if row.status in TERMINAL or row.blocked:
                continue
            if row.status != "suspended" or row.unread or row.parked or (row.due is not None and row.due <= soon):
                found.append(f"{run_id} is {row.status}, due {row.due}, held {row.nonce is not None}")
        return found

    def _answer_all(self) -> None:
        """Every open wait is answered, until nobody waits."""
        world = self.world
        for _ in range(ANSWERS_MAX):
            runs = world.auditor.picture.runs
            waiting = [(r, w) for r, run in runs.items() for w in run.waits.values() if w.state == "open"]
            waiting = [(r, w) for r, w in waiting if world.answerable(r, w)]
            if not waiting or world.record.violations:
                break
            for run_id, wait in waiting:
                world.execute("wake", run_id, wait.wait_id, encode(answer_of(world.seed, run_id, wait)))
            self._settle("after the last answers")
        live = [r for r, run in world.auditor.picture.runs.items() if run.row.status not in TERMINAL]
        live = [r for r in live if not world.auditor.picture.runs[r].row.blocked]
        if live and not world.record.violations:
            world.violated(f"L1 everything is answered and {live} have not ended")

    def _compare(self) -> None:
        """Runs that nobody disturbed on purpose end as they would have in peace."""
        world, first = self.world, {}
        for life, outcome in world.auditor.outcomes.items():
            if world.planned(life[0]).calm and "." not in life[0] and not world.auditor.disturbed(life):
                first[life[0]] = outcome
        expected = undisturbed(world.seed, [p for p in self.planned if p.run_id in first])
        for run_id, outcome in first.items():
            world.coverage.saw("outcome compared")
            if _text(outcome) != _text(expected[run_id]):
                world.violated(f"output of {run_id}: {_text(outcome)}, in peace {_text(expected[run_id])}")


def _text(outcome: Outcome) -> str:
    return _TIMES.sub("T", repr((outcome.status, outcome.output, outcome.error)))
