"""``FlowExecution``: the documented way of running a flow in this process, whole or node by node."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from plaita.base.duration import parse_duration_ms
from plaita.base.errors import FlowExecutionException, PlaitaError
from plaita.base.json import Json, admit
from plaita.core.buses import Bus, default_bus
from plaita.core.callback import BaseCallbackManager, CallbackManager, FlowCallback, LoggerCallback
from plaita.core.context import ExecutionContext, refuse_renaming
from plaita.core.drivers import AsyncDriver, Options, SyncDriver, begin, outcome
from plaita.core.errors import ResumeType
from plaita.core.flow import Flow, merge_input
from plaita.core.stepping import Stage, StepDict, Steps, refused, resume_kind
from plaita.core.telling import CallbackTrace
from plaita.engine.machine import Run

if TYPE_CHECKING:
    from plaita.node.registry import NodeRegistry


class ExecutionMode(StrEnum):
    """How a flow is run: to its end, as a generator of steps, or one step a call."""

    NORMAL = "normal"
    GENERATOR = "generator"
    DISTRIBUTED = "distributed"


class FlowExecution:
    """One execution at a time of any flow, in this process; nothing is stored.

    ``callback_handlers`` are told of what happens (``verbose`` logs it), ``event_bus`` of waits in distributed mode,
    ``registry`` finds the types of nodes that are still documents. An instance may be used again after a run ended;
    its ``context`` is that of the last run.
    """

    express_prefix = "$"

    def __init__(
        self,
        parent: FlowExecution | None = None,
        verbose: bool = False,
        mode: ExecutionMode | str | None = None,
        callback_handlers: Iterable[FlowCallback] | None = None,
        callback_manager: BaseCallbackManager | None = None,
        event_bus: Bus | None = None,
        registry: NodeRegistry | None = None,
    ) -> None:
        self.parent, self.verbose, self.registry = parent, verbose, registry
        self.mode = None if mode is None else ExecutionMode(mode)
        self.timeout: int | str | None = None
        self.event_bus = event_bus
        handlers = [*(callback_handlers or ()), *([LoggerCallback()] if verbose else [])]
        inherited = parent.callback_manager if parent is not None else None
        if callback_manager is None and isinstance(inherited, CallbackManager):
            callback_manager = CallbackManager(handlers, inherited, inherit_handlers=True)
        self.callback_manager: BaseCallbackManager = callback_manager or CallbackManager(handlers)
        self.context = ExecutionContext(event_bus=event_bus)
        self.cancel_event = threading.Event()
        self.cancel_requested = False
        self._driver: SyncDriver | AsyncDriver | None = None

    @property
    def execution_id(self) -> str:
        """Id of the execution that runs, or ran last."""
        return self.context.execution_id

    def execute(
        self,
        flow: Flow,
        params: Mapping[str, Json] | None = None,
        lazy: bool = False,
        timeout: int | str | None = None,
        **options: Any,
    ) -> Any:
        """Run to the end and return the output; ``lazy``: an iterator of steps. ``timeout`` in ms or ISO 8601."""
        refuse_renaming(options)
        return self._run_sync(flow, dict(params or {}), lazy, timeout)

    def run_compatible(self, flow: Flow, lazy: bool = False, *args: Any, **kwargs: Any) -> Any:
        """``execute`` with the input as one dict and keywords."""
        return self._run_sync(flow, merge_input(args[0] if args else None, kwargs), lazy, None)

    async def arun_compatible(self, flow: Flow, lazy: bool = False, *args: Any, **kwargs: Any) -> Any:
        """``run_compatible`` in the running loop; ``lazy``: an asynchronous iterator of steps."""
        value = merge_input(args[0] if args else None, kwargs)
        if lazy:
            return self._walk_async(flow, value)
        return await self._run_async(flow, value)

    @classmethod
    def run(
        cls,
        flow: Flow,
        params: Mapping[str, Json] | None = None,
        mode: ExecutionMode | str | None = None,
        timeout: int | str | None = None,
        context: Mapping[str, Any] | None = None,
        event_bus: Bus | None = None,
        callback_handlers: Iterable[FlowCallback] | None = None,
        **options: Any,
    ) -> Any:
        """Run in a mode: ``normal`` gives the output, ``generator`` an iterator of steps, ``distributed`` one step.

        ``context`` is the saved context of a distributed execution; ``resume_type`` and ``resume_data`` go with it.
        """
        chosen = ExecutionMode(mode or ExecutionMode.NORMAL)
        execution = cls(mode=chosen, callback_handlers=callback_handlers, event_bus=event_bus)
        kind, data = options.pop("resume_type", "continue"), options.pop("resume_data", None)
        refuse_renaming(options)
        if chosen is ExecutionMode.DISTRIBUTED:
            return execution.run_distributed(
                flow, params, saved_context=context, resume_type=kind, resume_data=data, timeout=timeout
            )
        return execution.execute(flow, params, chosen is ExecutionMode.GENERATOR, timeout)

    def run_distributed(
        self,
        flow: Flow,
        params: Mapping[str, Json] | None = None,
        *,
        saved_context: Mapping[str, Any] | None = None,
        resume_type: str | ResumeType = ResumeType.CONTINUE,
        resume_data: Json = None,
        timeout: int | str | None = None,
        execution_id: str | None = None,
    ) -> StepDict:
        """Take one step and return it; its ``context`` is what the next call needs.

        Without ``saved_context`` the execution begins and its start node runs. A step with ``is_suspend`` waits: call
        again with ``resume_type`` ``event``, ``timeout`` (both with the ``subscription_id`` of the node's state in
        ``resume_data``) or ``cancel``. A step with ``is_end`` is the last one; going on behind it is a ``ResumeError``.
        """
        kind = resume_kind(resume_type)
        stage = self._stage(timeout, durable=True)
        if saved_context is None and kind is not ResumeType.CONTINUE:
            raise refused(f"resume type {str(kind)!r} needs a saved context")
        with SyncDriver(stage.options) as driver, self._held_by(driver):
            if saved_context is None:
                steps = Steps.begin(flow, stage, dict(params or {}), execution_id or secrets.token_hex(16))
            else:
                steps = Steps.go_on(flow, stage, saved_context)
            return self._take_step(steps, driver, kind, resume_data, saved_context)

    def _take_step(
        self, steps: Steps, driver: SyncDriver, kind: ResumeType, data: Json, saved: Mapping[str, Any] | None
    ) -> StepDict:
        plain = kind in (ResumeType.CONTINUE, ResumeType.RETRY)
        if plain and steps.machine.waits:
            raise refused("the execution waits: answer it with event, timeout or cancel")
        try:
            step = steps.step(driver) if plain else steps.resume(driver, kind, data)
        except PlaitaError:
            self.context = ExecutionContext.from_dict(dict(saved or {}), event_bus=self.event_bus)
            raise
        driver.run_detached(steps.machine.program)
        self.context = ExecutionContext.from_dict(step["context"], event_bus=self.event_bus)
        return step

    def get_child_execution(self) -> FlowExecution:
        """An execution that tells the same handlers and uses the same bus."""
        return FlowExecution(parent=self, event_bus=self.event_bus, registry=self.registry)

    def get_or_create_event_bus(self) -> Any:
        """The bus of this execution, its parent's, or the one of the process."""
        return self.event_bus or (self.parent.get_or_create_event_bus() if self.parent else default_bus())

    def cancel(self) -> None:
        """End the run at its next node; from any thread. Nodes that run are told by ``cancel_event``."""
        self.cancel_requested = True
        self.cancel_event.set()
        if self._driver is not None:
            self._driver.cancel()

    def clean(self) -> None:
        """Forget the last run."""
        self.context = ExecutionContext(event_bus=self.event_bus)
        self.cancel_event.clear()
        self.cancel_requested = False

    @property
    def state(self) -> ExecutionContext:
        """The context, for its ``flow_id``, ``last_node_id`` and ``last_branch``."""
        return self.context

    def update_node_result(self, node: Any, result: Json) -> None:
        """Keep the result of a node in the context."""
        self.context.update_node_result(node, result)

    def set_scratch(self, key: str, value: Json) -> None:
        """Set a root of the context that is not saved."""
        self.context.set_scratch(key, value)

    def evaluate(self, value: Json) -> Json:
        """A field's value in the context of the last run."""
        return self.context.evaluate(value)

    def get_state(self, key: str, default: Json = None) -> Any:
        """A root of the context."""
        return self.context.get_state(key, default)

    def set_state(self, key: str, value: Json) -> None:
        """Set a root of the context."""
        self.context.set_state(key, value)

    def get_global_variable(self, key: str, default: Json = None) -> Json:
        """A value of ``$GLOBAL``, here or in a parent."""
        found = self.context.get_global_variable(key)
        if found is None and self.parent is not None:
            return self.parent.get_global_variable(key, default)
        return default if found is None else found

    def _stage(self, timeout: int | str | None, *, durable: bool = False) -> Stage:
        given = self.timeout if timeout is None else timeout
        budget = None if given in (None, "") else parse_duration_ms(given)
        told = CallbackTrace(self.callback_manager)
        quiet = isinstance(self.callback_manager, CallbackManager) and not self.callback_manager.handlers
        options = Options(trace=None if quiet else told, budget_ms=budget, durable=durable)
        return Stage(options, told, self.get_or_create_event_bus() if durable else None)

    @contextmanager
    def _held_by(self, driver: SyncDriver | AsyncDriver) -> Iterator[None]:
        """One run at a time; a cancel from another thread reaches it."""
        if self._driver is not None:
            raise FlowExecutionException(message="this FlowExecution runs already; use another one", kind="conflict")
        self.cancel_event.clear()
        self.cancel_requested = False
        self._driver = driver
        try:
            yield
        finally:
            self._driver = None

    def _run_sync(self, flow: Flow, value: dict[str, Json], lazy: bool, timeout: int | str | None) -> Any:
        flow.resolve_nodes(self.registry)
        if lazy:
            return self._walk(flow, value, timeout)
        stage = self._stage(timeout)
        with SyncDriver(stage.options) as driver, self._held_by(driver):
            run = self._begin(flow, value, stage)
            effects = driver.drive(run)
            self._keep(run)
            driver.run_detached(run.program)
            return outcome(effects)

    async def _run_async(self, flow: Flow, value: dict[str, Json]) -> Json:
        flow.resolve_nodes(self.registry)
        stage = self._stage(None)
        driver = AsyncDriver(stage.options)
        with self._held_by(driver):
            try:
                run = self._begin(flow, value, stage)
                effects = await driver.drive(run)
                self._keep(run)
                await driver.run_detached(run.program)
                return outcome(effects)
            finally:
                driver.close()

    def _begin(self, flow: Flow, value: Json, stage: Stage) -> Run:
        return begin(flow.program, admit(value), stage.options, secrets.token_hex(16))

    def _keep(self, run: Run) -> None:
        self.context = ExecutionContext.of_run(run, event_bus=self.event_bus)

    def _walk(self, flow: Flow, value: dict[str, Json], timeout: int | str | None) -> Iterator[StepDict]:
        stage = self._stage(timeout)
        with SyncDriver(stage.options) as driver, self._held_by(driver):
            steps = Steps.begin(flow, stage, value, secrets.token_hex(16))
            ended = False
            try:
                for step in steps.walk(driver):
                    ended = bool(step["is_end"])
                    self.context = ExecutionContext.from_dict(step["context"], event_bus=self.event_bus)
                    yield step
            except GeneratorExit:
                if not ended:
                    stage.told("finish", steps.machine.root, None, None)
                raise
            driver.run_detached(steps.machine.program)

    async def _walk_async(self, flow: Flow, value: dict[str, Json]) -> AsyncIterator[StepDict]:
        """Steps are taken in a thread, one at a time, so that the loop goes on."""
        steps = self._walk(flow, value, None)
        try:
            while (step := await asyncio.to_thread(next, steps, None)) is not None:
                yield step
        finally:
            cast("Any", steps).close()
