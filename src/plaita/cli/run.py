"""``plaita run``: a flow file, now."""

from __future__ import annotations

import asyncio
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, Imports, InputFile, Inputs, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.cli.progress import Progress
    from plaita.control.flow_files import FlowFile
    from plaita.ports.queries import RunView
    from plaita.ports.values import RunId
    from plaita.runtime.driving import Drive
    from plaita.settings import Settings


def run(
    flow: Annotated[str | None, typer.Argument(metavar="FLOW", help="A .json, .yaml or .py file.")] = None,
    inputs: Inputs = None,
    input_file: InputFile = None,
    once: Annotated[bool, typer.Option("--once", help="Run in this process alone; no store.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Stay until it ends, also while it waits.")] = False,
    continue_id: Annotated[
        str | None, typer.Option("--continue", metavar="ID", help="Go on with an interrupted execution.")
    ] = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a flow file now, as a durable execution.

    One line a node on stderr, the output as JSON on stdout. When it waits, the command that lets it go on is printed
    and the exit code is 3.
    """
    from plaita.cli.desk import at_desk, settings_of

    if flow is None and continue_id is None:
        raise typer.BadParameter("name a FLOW, or --continue ID")
    if flow is not None and continue_id is not None:
        raise typer.BadParameter("--continue goes on with the flow the execution has; leave FLOW out")
    if continue_id is not None and (inputs or input_file or once):
        raise typer.BadParameter("--continue goes on with the input the execution has")
    settings = settings_of(store, imports)
    if continue_id is not None:
        work = Running(None, {}, continue_id, watch)
    else:
        file, value = read_run(str(flow), inputs or [], input_file, settings.imports, quiet=as_json)
        work = Running(file, value, "", watch)
    if once:
        _run_once(work, settings)
        return
    raise typer.Exit(at_desk(work.perform, settings, store, as_json=as_json, create=continue_id is None))


def read_run(
    flow: str, pairs: list[str], source: str | None, imports: tuple[str, ...], *, quiet: bool
) -> tuple[FlowFile, dict[str, object]]:
    """Everything that can be wrong with the flow and its input, before anything is written.

    ``quiet``: what is only strange is not said.
    """
    from plaita.base.errors import InputError
    from plaita.cli.inputs import inputs_in_words, note_undeclared, read_input
    from plaita.control.flow_files import read_flow_file
    from plaita.control.starting import check_input

    file = read_flow_file(flow, imports)
    declared = file.flow.declared_input()
    value = read_input(declared, pairs, source)
    if not quiet:
        note_undeclared(declared, pairs)
    try:
        return file, check_input(file.flow, value)
    except InputError as e:
        refused = InputError(f"input {e.path}", e.reason)
        refused.hint = inputs_in_words(declared)
        raise refused from None


def _run_once(work: Running, settings: Settings) -> None:
    from plaita.cli.screen import show_json
    from plaita.core.drivers import Options, run_flow

    assert work.file is not None
    engine = settings.engine
    options = Options(timezone=engine.timezone, active_ms_max=engine.execution_deadline_ms)
    show_json(run_flow(work.file.flow, work.value, options))


class Running:
    """One ``plaita run``: a new execution of ``file``, or the one that goes on."""

    def __init__(self, file: FlowFile | None, value: dict[str, object], continue_id: str, watch: bool) -> None:
        self.file, self.value, self.continue_id, self.watch = file, value, continue_id, watch

    async def perform(self, desk: Desk) -> int:
        """Start it if it is new, move it, say what it is then; the exit code."""
        from plaita.cli.progress import Progress
        from plaita.control import looking
        from plaita.runtime.driving import Drive

        execution_id = await self._execution(desk)
        progress = None if desk.as_json else Progress(execution_id)
        how = Drive(desk.settings, observer=progress)
        try:
            left = await self._move(desk, execution_id, how, progress)
        finally:
            if progress is not None:
                progress.close()
        if progress is not None:
            progress.catch_up((await looking.history(desk.store, execution_id))["items"])
        shape = await looking.inspect(desk.store, execution_id)
        if left and shape["status"] in ("queued", "running"):
            return await _leave(desk, execution_id)
        return await desk.show(shape)

    async def _execution(self, desk: Desk) -> RunId:
        from plaita.control import looking, starting

        if self.file is None:
            return (await looking.run_of(desk.store, self.continue_id)).run_id
        if not desk.as_json:
            await _name_interrupted(desk, self.file.name)
        options = starting.StartOptions(imports=self.file.imports)
        answer = await starting.start_flow(desk.store, self.file.flow, self.value, options, self.file.name)
        return answer.run_id

    async def _move(self, desk: Desk, execution_id: RunId, how: Drive, progress: Progress | None) -> bool:
        """Move it until it rests or ends; true when the person left it before."""
        from plaita.cli.interrupting import Interrupts

        stop = asyncio.Event()
        with Interrupts() as interrupts:
            moving = asyncio.create_task(self._follow(desk, execution_id, how, stop, progress))
            pressed = asyncio.create_task(interrupts.pressed.wait())
            ending = asyncio.create_task(interrupts.asked_to_end.wait())
            await asyncio.wait([moving, pressed, ending], return_when=asyncio.FIRST_COMPLETED)
            left = not moving.done()
            if pressed.done() and left:
                with nullcontext() if progress is None else progress.quiet():
                    left = await _ask_or_leave(desk, execution_id, moving)
            if left:
                stop.set()
            await moving
            pressed.cancel()
            ending.cancel()
        return left

    async def _follow(
        self, desk: Desk, execution_id: RunId, how: Drive, stop: asyncio.Event, progress: Progress | None
    ) -> None:
        """To the next wait; with ``watch`` to the end, and what it waits for is said each time."""
        from plaita.control import looking
        from plaita.runtime.driving import follow_through

        async def stays(_: RunView) -> bool:
            if self.watch and progress is not None:
                for line in await desk.lines(await looking.inspect(desk.store, execution_id), stays=True):
                    progress.say(line)
            return self.watch

        await follow_through(desk.store, execution_id, how, stays, stop=stop)


async def _name_interrupted(desk: Desk, flow_id: str) -> None:
    from plaita.cli.screen import note
    from plaita.runtime.driving import interrupted

    wording = await desk.wording()
    for view in await interrupted(desk.store, flow_id):
        since = wording.distance(view.submitted_ms)
        note(f"interrupted: {flow_id} {view.run_id}, started {since}; it goes on with:")
        note(f"  {wording.command('run', '--continue', view.run_id)}")


async def _ask_or_leave(desk: Desk, execution_id: RunId, moving: asyncio.Task[None]) -> bool:
    """After the first Ctrl-C: true to leave the execution for later, false when it was cancelled or came to rest."""
    from plaita.cli.interrupting import ask
    from plaita.cli.screen import note
    from plaita.control import acting
    from plaita.runtime.runtime import whoami

    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        note("leaving the execution at its next commit; once more quits at once")
        return True
    asking = asyncio.create_task(ask("\n[c]ancel the execution, or [l]eave it for later? "))
    await asyncio.wait([asking, moving], return_when=asyncio.FIRST_COMPLETED)
    if not asking.done():
        asking.cancel()
        note("")
        return False
    if asking.result() not in ("c", "cancel"):
        return True
    await acting.cancel(desk.store, execution_id, whoami())
    return False


async def _leave(desk: Desk, execution_id: RunId) -> int:
    from plaita.cli.failing import INTERRUPTED
    from plaita.cli.screen import note

    wording = await desk.wording()
    note("left; it goes on with:")
    note(f"  {wording.command('run', '--continue', execution_id)}")
    return INTERRUPTED
