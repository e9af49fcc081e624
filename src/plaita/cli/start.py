"""``plaita start``: an execution for whoever takes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, Imports, InputFile, Inputs, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape
    from plaita.control.starting import StartOptions
    from plaita.ports.runs import Submitted


def start(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="The id of a published flow, or a flow file.")],
    inputs: Inputs = None,
    input_file: InputFile = None,
    execution_id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its id; the same start twice is one execution.")
    ] = None,
    version: Annotated[
        str, typer.Option("--version", metavar="VERSION", help="A version of the published flow. Default: the latest.")
    ] = "",
    queue: Annotated[
        str, typer.Option("--queue", metavar="NAME", help="The queue of the workers that take it.")
    ] = "default",
    priority: Annotated[int, typer.Option("--priority", metavar="NUMBER", help="A larger one goes first.")] = 0,
    not_before: Annotated[
        str,
        typer.Option("--not-before", metavar="TIME", help="ISO 8601: a time, or a duration from now such as PT10M."),
    ] = "",
    tags: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be repeated.")] = None,
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="A business key to find it by.")] = "",
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Start an execution and leave it to a worker. Exit code 0 when it is accepted."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import looking
    from plaita.control.starting import StartOptions

    if execution_id == "":
        raise typer.BadParameter("--id is empty; leave it out for a new id, or name one")
    settings = settings_of(store, imports)
    options = StartOptions(
        execution_id or "", key, tuple(tags or ()), _time(not_before), priority, queue, imports=settings.imports
    )
    begin = _starter(flow, version, (inputs or [], input_file), options, quiet=as_json)

    async def work(desk: Desk) -> None:
        answer = await begin(desk)
        shape = await looking.inspect(desk.store, answer.run_id)
        await _show(desk, shape, known=answer.deduplicated)

    at_desk(work, settings, store, as_json=as_json, create=True)


def _starter(
    flow: str, version: str, given: tuple[list[str], str | None], options: StartOptions, *, quiet: bool
) -> Callable[[Desk], Awaitable[Submitted]]:
    """How to start: a file is read and checked at once, before a store is touched."""
    from plaita.cli.inputs import note_undeclared, read_input
    from plaita.cli.run import read_run
    from plaita.control import starting
    from plaita.control.flow_files import is_flow_file

    pairs, source = given
    if is_flow_file(flow):
        file, value = read_run(flow, pairs, source, options.imports, quiet=quiet)
        chosen = replace(options, imports=file.imports)
        return lambda desk: starting.start_flow(desk.store, file.flow, value, chosen, file.name)

    async def published(desk: Desk) -> Submitted:
        declared = await starting.declared_input(desk.store, flow, version, options.imports)
        value = read_input(declared, pairs, source)
        if not quiet:
            note_undeclared(declared, pairs)
        return await starting.start_published(desk.store, flow, value, options, version)

    return published


async def _show(desk: Desk, shape: Shape, *, known: bool) -> None:
    from plaita.cli.screen import note, say, show_json
    from plaita.cli.wording import label
    from plaita.ports.values import RunId
    from plaita.runtime.driving import is_over, is_taken

    if desk.as_json:
        show_json(shape)
        return
    say(shape["execution_id"])
    view = await desk.store.run(RunId(shape["execution_id"]))
    if known:
        note(f"this start was made before; the execution is {label(shape)}")
    elif view is not None and not is_over(view) and not await is_taken(desk.store, view):
        wording = await desk.wording()
        note(f"queued; no worker takes the queue {view.queue!r} now:")
        note(f"  {wording.command('worker', '--queues', view.queue)}")
        note(f"  {wording.command('wait', view.run_id)}")


def _time(text: str) -> int | None:
    """Milliseconds since 1970 of an ISO 8601 time (local when it has no zone) or of a duration from now."""
    from plaita.base.clock import SystemClock
    from plaita.base.duration import parse_duration_ms

    if not text:
        return None
    try:
        if text.startswith("P"):
            return SystemClock().now_ms() + parse_duration_ms(text)
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        raise typer.BadParameter(
            f"--not-before {text}: neither a time (2026-05-04T17:30) nor a duration (PT10M)"
        ) from None
