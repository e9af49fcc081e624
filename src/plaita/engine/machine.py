"""The machine: a run moves through a program one burst at a time and says what it needs.

``advance`` takes a batch of events and the time; it never raises for what a flow does. A driver commits the delta of
an advance before it performs the calls of that advance; a run whose commit was refused is thrown away and restored.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from plaita.base.json import Json
from plaita.base.limits import FUEL
from plaita.engine import failing
from plaita.engine.detaching import detached_root
from plaita.engine.effects import (
    Call,
    Cancel,
    Closed,
    Done,
    Effects,
    Elapsed,
    Event,
    Given,
    Offer,
    Raised,
    Returned,
    Wake,
)
from plaita.engine.failure import CANCEL_CODE, Failure, WaitRefused
from plaita.engine.frames import BACKOFF, EMPTY, HOSTING, READY, WAITING, Frame
from plaita.engine.program import CNode, Graph, Program
from plaita.engine.tracing import Trace
from plaita.engine.types import conform
from plaita.policy.retry import ATTEMPTS_MAX


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a run is started or restored under.

    ``env`` is read at evaluation. ``durable``: waits are possible. ``redrive``: an error that would end the run puts
    its node into backoff first (policy decides). ``active_ms_max``: budget of a flow without a timeout of its own.
    ``attempts_max``: attempts of a node in all before a re-driven error ends the run.
    ``entry``: the graph of a detached branch; the run's input is then the document of ``plaita.engine.detaching``.
    """

    execution_id: str
    env: Mapping[str, str] = field(default_factory=dict)
    timezone: str | None = None
    durable: bool = True
    redrive: bool = False
    active_ms_max: int = 1_800_000
    attempts_max: int = ATTEMPTS_MAX
    fuel: int = FUEL
    trace: Trace | None = None
    entry: str = ""


class Run:
    """One execution in memory, owned by one caller. Implements ``Facts`` of the expression language.

    ``steps`` is how many more nodes the flow itself may enter before it pauses, ``None`` for no limit.
    """

    __slots__ = (
        "active_ms", "base_ms", "calls", "conditions", "cont", "deadline_ms", "dels", "dice", "effects", "env",
        "execution_id", "frames", "fuel", "now_ms", "program", "ready", "redrives", "root", "started", "steps", "ticks",
        "timers", "timezone", "touched", "waits",
    )  # fmt: skip

    def __init__(self, program: Program, conditions: Conditions) -> None:
        self.program, self.conditions = program, conditions
        self.execution_id, self.env, self.timezone = conditions.execution_id, conditions.env, conditions.timezone
        self.now_ms, self.dice = 0, 0.5
        self.base_ms, self.active_ms = 0, 0.0
        self.deadline_ms: int | None = None
        self.started = False
        self.redrives = 0
        self.fuel = conditions.fuel
        self.steps: int | None = None
        self.root: Frame
        self.frames: dict[Frame, None] = {}
        self.cont: Frame | None = None
        self.ready: deque[Frame] = deque()
        self.calls: dict[str, Frame] = {}
        self.waits: dict[str, Frame] = {}
        self.timers: list[tuple[int, str, int, Frame]] = []
        self.ticks = 0
        self.dels: dict[str, None] = {}
        self.touched: dict[Frame, None] = {}
        self.effects = Effects()

    def exposed(self, graph: Graph) -> Mapping[str, str]:
        """The environment a graph may see."""
        if not graph.env_names:
            return EMPTY
        return {name: self.env[name] for name in graph.env_names if name in self.env}

    def arm(self, frame: Frame, at_ms: int) -> None:
        """Look at a frame again at that time; entries that no longer agree with the frame are skipped.

        At one time hosts come before their kids and siblings in the order of their addresses, after a restore too.
        """
        self.ticks += 1
        heapq.heappush(self.timers, (at_ms, frame.addr, self.ticks, frame))

    def open_frame(self, host: Frame, cn: CNode, graph: Graph, key: int | str | None, base: str) -> Frame:
        """A kid of ``host``, which hosts from now on. The caller gives it its input and its turn."""
        kid = Frame(self, graph, host, host, base)
        kid.hnode, kid.key = cn, key
        host.kids["" if key is None else key] = kid
        host.state, host.pc = HOSTING, cn
        self.frames[kid] = None
        self.touched[kid] = self.touched[host] = None
        return kid

    def erase(self, frame: Frame) -> None:
        """The frame's stored keys go with the next delta."""
        if frame.keys or frame.mark:
            address = frame.addr
            for key in frame.keys:
                self.dels[key] = None
            frame.keys.clear()
            for node_id in islice(frame.nodes, frame.mark):
                self.dels[f"n{address}|{node_id}"] = None
            frame.mark = 0

    def finish(self, output: Json) -> None:
        """The flow reached its end."""
        self.effects.ended = Done(output)
        failing.close(self, self.root)

    def pause(self, frame: Frame, cn: CNode) -> None:
        """Fuel is out: the frame goes on at ``cn`` with the next advance, before anything else."""
        frame.pc, frame.state = cn, READY
        self.ready.appendleft(frame)
        self.effects.more = True


def start(
    program: Program, conditions: Conditions, value: Json, *, now_ms: int, base_ms: int | None = None, dice: float = 0.5
) -> Run:
    """A new run with its input, not yet advanced. ``base_ms``: when its time began (submit or not-before).

    Raises ``InputError`` when the input violates the flow's input type.
    """
    run = Run(program, conditions)
    run.now_ms, run.dice = now_ms, dice
    if program.root.input_type is not None and not conditions.entry:
        value = conform(program.root.input_type, value, "$")
    frame = root_frame(run, value)
    run.base_ms = now_ms if base_ms is None else base_ms
    if frame.graph.timeout is not None:
        run.deadline_ms = run.base_ms + frame.graph.timeout
    run.ready.append(frame)
    run.touched[frame] = None
    return run


def root_frame(run: Run, value: Json) -> Frame:
    """The frame of the flow itself, or of the branch that the run was detached from."""
    entry = run.conditions.entry
    if entry:
        frame = detached_root(run, entry, value)
    else:
        graph = run.program.root
        frame = Frame(run, graph, None, None, "")
        frame.begin(value)
        frame.globals = {**graph.globals, "flow_id": graph.flow_id, "run_token": run.execution_id}
    run.root = frame
    run.frames[frame] = None
    return frame


def advance(run: Run, events: Sequence[Event], *, now_ms: int, dice: float = 0.5) -> Effects:
    """Take events in order, then due timers, then run forward until everything waits, ends, or fuel is out."""
    if run.deadline_ms is None and run.started and (run.ready or run.calls):
        run.active_ms += max(0, now_ms - run.now_ms)
    if not run.started:
        run.started = True
        if run.conditions.trace is not None:
            run.conditions.trace("begin", run.root, None, run.root.input)
    run.now_ms = max(now_ms, run.now_ms)
    run.dice = dice
    run.fuel = run.conditions.fuel
    run.effects = effects = Effects()
    for event in _in_order(run, events):
        _take(run, event)
        if effects.ended is not None:
            return effects
    if not _over_budget(run):
        _fire(run)
        _forward(run)
    return effects


def _in_order(run: Run, events: Sequence[Event]) -> Sequence[Event]:
    """Of several failures that arrive together the first in declaration order is taken first."""
    if len(events) < 2:
        return events
    failed = [e for e in events if isinstance(e, Raised) and e.id in run.calls]
    if len(failed) < 2:
        return events
    order = iter(sorted(failed, key=lambda e: run.calls[e.id].position))
    return [next(order) if isinstance(e, Raised) and e.id in run.calls else e for e in events]


def next_due(run: Run) -> int | None:
    """When the run must be advanced without an event, ms since 1970."""
    while run.timers and not failing.is_due(run.timers[0][3], run.timers[0][0]):
        heapq.heappop(run.timers)
    times = [run.timers[0][0]] if run.timers else []
    if run.deadline_ms is not None:
        times.append(run.deadline_ms)
    elif run.calls:
        times.append(int(run.now_ms + run.conditions.active_ms_max - run.active_ms) + 1)
    return min(times, default=None)


def open_calls(run: Run) -> list[Call]:
    """Every call that is under way, for example after a restore."""
    return [failing.call_of(frame) for frame in run.calls.values()]


def _over_budget(run: Run) -> bool:
    if run.deadline_ms is not None:
        over, what = run.now_ms >= run.deadline_ms, f"the flow's timeout of {run.root.graph.timeout} ms"
    else:
        over, what = run.active_ms > run.conditions.active_ms_max, f"{run.conditions.active_ms_max} ms of active time"
    if over:
        failure = Failure("timeout", -1, f"the execution exceeded {what}", "flow_error", final=True)
        failing.end(run, failure)
    return over


def _take(run: Run, event: Event) -> None:
    match event:
        case Returned(call_id, value, state):
            frame = run.calls.pop(call_id, None)
            if frame is not None and frame.pc is not None:
                if state:
                    frame.extra = {**(frame.extra or {}), **state}
                _returned(run, frame, frame.pc, value)
        case Raised(call_id, failure):
            frame = run.calls.pop(call_id, None)
            if frame is not None and frame.pc is not None:
                failing.fail(run, frame, failure.at(frame.pc.id))
        case Wake() | Elapsed() | Offer() | Given():
            frame = run.waits.get(event.id)
            if frame is not None:
                _told(run, frame, event)
        case Cancel():
            failing.end(run, Failure("cancelled", CANCEL_CODE, "the execution was cancelled", "flow_error", final=True))


def _told(run: Run, frame: Frame, event: Wake | Elapsed | Offer | Given) -> None:
    """A wait hears from outside."""
    match event:
        case Wake(wait_id, data):
            _resolve(run, frame, Closed(wait_id, "read"), data)
        case Elapsed():
            run.touched[frame] = None
            failing.wait_over(run, frame)
        case Offer(wait_id, number, data) if _accepts(frame, data):
            _resolve(run, frame, Closed(wait_id, "event", number), data)
        case Given(wait_id, value):
            _resolve(run, frame, Closed(wait_id, "read"), value, "given")


def _returned(run: Run, frame: Frame, cn: CNode, value: Json) -> None:
    run.touched[frame] = None
    target = failing.branch_target(frame, cn, value) if cn.branching else None
    if isinstance(target, Failure):
        failing.fail(run, frame, target)
    else:
        failing.go_to(run, frame, cn, value, target)


def _accepts(frame: Frame, data: Json) -> bool:
    waiting = None if frame.pc is None else frame.pc.waiting
    return waiting is not None and waiting.matches(frame.pending or {}, data)


def _resolve(run: Run, frame: Frame, closed: Closed, data: Json, kind: failing.AnswerKind = "event") -> None:
    """Close a wait with an answer."""
    pending = frame.pending or {}
    run.effects.closed.append(closed)
    del run.waits[closed.id]
    run.touched[frame] = None
    frame.open = frame.pending = None
    failing.answer(run, frame, kind, pending, data)


def _fire(run: Run) -> None:
    while run.timers and run.timers[0][0] <= run.now_ms and run.effects.ended is None:
        at_ms, _, _, frame = heapq.heappop(run.timers)
        if not failing.is_due(frame, at_ms):
            continue
        run.effects.fired = True
        run.touched[frame] = None
        if frame.state == BACKOFF and frame.retry_at == at_ms:
            failing.again(run, frame)
        elif frame.limit == at_ms:
            failing.outlived(run, frame)
        elif frame.state == WAITING and frame.wait_due == at_ms:
            failing.wait_over(run, frame)
        else:
            failing.time_out(run, frame)


def _forward(run: Run) -> None:
    effects = run.effects
    while effects.ended is None and not effects.more:
        frame = run.cont
        if frame is None:
            if not run.ready:
                return
            frame = run.ready.popleft()
            if frame.state not in (READY, HOSTING):
                continue
        run.cont = None
        if frame.state == READY:
            _burst(run, frame)
        if run.cont is None and effects.ended is None and not effects.more:
            run.cont = _pump(run, frame)


def _burst(run: Run, frame: Frame) -> None:
    """Run a frame until it stops. An exception leaves ``pc`` at the node that raised it."""
    trace = run.conditions.trace
    run.touched[frame] = None
    pc = frame.pc
    try:
        if trace is None and run.steps is None:
            while pc is not None:
                pc = pc.step(frame)
        while pc is not None:
            if run.steps is not None and frame is run.root:
                # What has no model is the error of the node before it.
                if run.steps == 0 and pc.model is not None:
                    run.pause(frame, pc)
                    return
                run.steps = max(0, run.steps - 1)
            if trace is not None:
                trace("start", frame, pc, None)
            at = pc
            pc = pc.step(frame)
            # A node that ends its flow tells so itself: the frame may be at its next round by now.
            if trace is not None and pc is not None and frame.last is at:
                trace("end", frame, at, frame.nodes.get(at.id))
    except WaitRefused as e:
        failing.refuse_wait(run, frame, e.node_id)
    except Exception as e:  # noqa: BLE001 - a step is closures over user data: what it raises is the node's failure
        frame.pc = pc
        failing.fail(run, frame, failing.to_failure(e, pc))


def _pump(run: Run, frame: Frame) -> Frame | None:
    """Ask every host upwards for one more kid: concurrent hosts open kids one by one, as room and fuel allow."""
    host: Frame | None = frame
    while host is not None:
        if host.state == HOSTING and host.pc is not None and host.pc.host is not None:
            kid = host.pc.host.pump(host)
            if kid is not None:
                return kid
            if run.effects.more or run.effects.ended is not None:
                return None
        host = host.host
    return None
