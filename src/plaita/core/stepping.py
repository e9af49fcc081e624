"""One execution, one node of the flow at a time: ``debug`` and ``run_distributed``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from plaita.base.clock import SystemClock, new_id
from plaita.base.errors import FlowErrorException, ResumeError, ResumeGuardError
from plaita.base.json import Json, admit
from plaita.core.buses import Bus, ask
from plaita.core.checkpoint import Stored, admitted, context_of, run_of
from plaita.core.drivers import Options, SyncDriver, begin, conditions_of, limit_time
from plaita.core.errors import ResumeType, exception_of
from plaita.core.telling import CallbackTrace
from plaita.engine.effects import Done, Effects, Event, Failed, Given, Wake
from plaita.engine.frames import READY, Frame
from plaita.engine.machine import Run
from plaita.engine.values import copied

if TYPE_CHECKING:
    from plaita.core.flow import Flow

BOUND = "__plaita_subscription_id"
"""A key of an answer that only says which wait it is for."""

StepDict = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """What steps are taken under."""

    options: Options
    told: CallbackTrace
    bus: Bus | None = None


class Steps:
    """A run that is taken on one node at a time."""

    def __init__(self, flow: Flow, stage: Stage, run: Run, stored: Stored | None = None) -> None:
        self.flow, self.stage, self.machine = flow, stage, run
        self.stored: Stored = {} if stored is None else stored

    @classmethod
    def begin(cls, flow: Flow, stage: Stage, value: Json, execution_id: str) -> Steps:
        """A new execution. Raises ``InputError`` when its input is not what the flow declares."""
        return cls(flow, stage, begin(flow.program, admit(value), stage.options, execution_id))

    @classmethod
    def go_on(cls, flow: Flow, stage: Stage, context: Mapping[str, Any]) -> Steps:
        """An execution from its saved context."""
        now_ms = SystemClock().now_ms()
        context = admitted(context)
        conditions = conditions_of(stage.options, str(context.get("$EXECUTION_ID") or ""))
        run, stored = run_of(flow.program, conditions, context, now_ms)
        limit_time(run, stage.options.budget_ms, now_ms)
        return cls(flow, stage, run, stored)

    def walk(self, driver: SyncDriver) -> Iterator[StepDict]:
        """Every step to the end. Raises what the flow raises."""
        while True:
            step = self.step(driver)
            yield step
            if step["is_end"]:
                return

    def step(self, driver: SyncDriver) -> StepDict:
        """One node. A flow whose waits are open is ``is_suspend``."""
        self.machine.steps = 1
        node_id = "" if self.machine.root.pc is None else self.machine.root.pc.id
        return self._taken(driver.drive(self.machine), node_id)

    def resume(self, driver: SyncDriver, kind: ResumeType, data: Json) -> StepDict:
        """Answer the open wait; the step of its node, which is over."""
        frame = waiting_for(self.machine, kind, data)
        subscription = (frame.pending or {}).get("subscription_id")
        self.machine.steps = 0
        node_id = "" if self.machine.root.pc is None else self.machine.root.pc.id
        effects = driver.drive(self.machine, [_answer(frame, kind, data)])
        if self.stage.bus is not None and subscription is not None:
            # The wait is answered whatever becomes of its subscription.
            with contextlib.suppress(Exception):
                ask(self.stage.bus.unregister_subscription(str(subscription)))
        return self._taken(effects, node_id)

    def _taken(self, effects: Effects, node_id: str) -> StepDict:
        match effects.ended:
            case Failed(failure):
                raise exception_of(failure)
            case Done(output):
                end_id = self.machine.root.last_id or node_id
                return self._shape(end_id, output, end=(end_id, output))
        root = self.machine.root
        if root.state == READY:
            last = root.last_id or node_id
            return self._shape(last, root.nodes.get(last))
        self._suspend()
        return self._shape(node_id if root.pc is None else root.pc.id, root.pending, suspended=True)

    def _suspend(self) -> None:
        for frame in list(self.machine.waits.values()):
            if frame.pending is not None and "subscription_id" not in frame.pending:
                self._subscribe(frame)
                self.stage.told.suspended(frame)
        self.stage.told.flow_suspended(self.machine.root)

    def _subscribe(self, frame: Frame) -> None:
        """Let the bus know what the wait is for; the id it gives belongs to the state of the node."""
        pending = frame.pending or {}
        details: dict[str, Any] = {
            "filter_condition": pending.get("event_filter") or None,
            "correlation_id": self.machine.execution_id,
            "flow_id": frame.flow_id,
            "node_id": None if frame.pc is None else frame.pc.id,
        }
        if frame.wait_due is not None:
            details["timeout"] = (frame.wait_due - self.machine.now_ms) / 1000
        bus = self.stage.bus
        try:
            given = (
                new_id() if bus is None else ask(bus.register_subscription(event_type=pending["event_type"], **details))
            )
        except Exception as e:
            text = f"node {details['node_id']!r} cannot wait: the event bus refused its subscription: {e}"
            raise FlowErrorException(message=text, node=details["node_id"]) from e
        frame.pending = {**pending, "subscription_id": given}
        self.machine.touched[frame] = None

    def _shape(
        self, node_id: str, result: Json, *, end: tuple[str, Json] | None = None, suspended: bool = False
    ) -> StepDict:
        cn = self.machine.program.root.nodes[node_id]
        branch = self.machine.root.branch if end is None and not suspended else None
        return {
            "id": node_id,
            "type": cn.type,
            "name": cn.model.name,
            "result": copied(result),
            "branch": branch or "",
            "context": context_of(self.machine, self.stored, end),
            "is_end": end is not None,
            "is_suspend": suspended,
            "execution_id": self.machine.execution_id,
        }


def resume_kind(word: str | ResumeType) -> ResumeType:
    """A documented resume type. Raises ``ResumeError`` for another word."""
    try:
        return ResumeType(word)
    except ValueError:
        known = ", ".join(ResumeType)
        raise ResumeError(message=f"{word!r} is no resume type; there are: {known}", kind="resume_refused") from None


def waiting_for(run: Run, kind: ResumeType, data: Json) -> Frame:
    """The frame whose wait an answer is for. Raises ``ResumeGuardError`` when it is for none."""
    frames = list(run.waits.values())
    if not frames:
        raise refused("nothing is waiting: only continue and retry are possible")
    named = _subscription(data)
    if named is None and kind is ResumeType.CANCEL:
        return frames[0]
    frame = next((f for f in frames if (f.pending or {}).get("subscription_id") == named), None)
    if named is None or frame is None:
        what = "carries no subscription_id" if named is None else f"is for the subscription {named!r}"
        raise refused(f"the answer {what}, which no pending node has")
    expected = (frame.pending or {}).get("event_type")
    given = data.get("event_type", expected) if isinstance(data, dict) else expected
    if given != expected:
        raise refused(f"the answer is an event of type {given!r}, the node waits for {expected!r}")
    return frame


def refused(text: str) -> ResumeGuardError:
    """An answer that is not taken."""
    return ResumeGuardError(message=text, kind="resume_refused")


def _subscription(data: Json) -> Json:
    return (data.get("subscription_id") or data.get(BOUND)) if isinstance(data, dict) else None


def _answer(frame: Frame, kind: ResumeType, data: Json) -> Event:
    wait_id = str(frame.open)
    if kind is ResumeType.EVENT:
        answer = {k: v for k, v in data.items() if k != BOUND} if isinstance(data, dict) else data
        return Wake(wait_id, answer)
    status = "timeout" if kind is ResumeType.TIMEOUT else "cancelled"
    return Given(wait_id, {**(frame.pending or {}), "status": status})
