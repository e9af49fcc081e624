"""``plaita publish``, ``plaita flows`` and ``plaita flow``: definitions in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli import completing
from plaita.cli.options import AsJson, Debug, FlowFileArgument, Imports, Store, Strict

if TYPE_CHECKING:
    from plaita.cli.desk import Desk


def publish(
    flow: FlowFileArgument,
    strict: Strict = False,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Store a flow as the latest version of its id. Executions keep the version they began with."""
    from plaita.base.errors import FlowLoadError
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, say, show_json
    from plaita.control import starting
    from plaita.control.flow_files import read_flow_file

    settings = settings_of(store, imports)
    file = read_flow_file(flow, settings.imports)
    if strict and file.flow.issues:
        raise FlowLoadError(file.flow.issues, flow)

    async def work(desk: Desk) -> None:
        found = await starting.publish(desk.store, file.flow, file.name)
        if as_json:
            show_json({"flow_id": found.flow_id, "version": found.version, "closure": found.closure})
            return
        for issue in file.flow.issues:
            note(str(issue))
        say(f"published {found.flow_id} version {found.version}")
        for name in file.imports:
            note(f"  it needs the nodes of {name}: PLAITA_IMPORTS, or plaita start {found.flow_id} --import {name}")

    at_desk(work, settings, store, as_json=as_json, create=True)


def flows(store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """List published flows."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, show_json, table, time_cell
    from plaita.control.keeping import list_flows

    page = at_desk(lambda desk: list_flows(desk.store), settings_of(store), store)
    if as_json:
        show_json(page)
        return
    if not page["items"]:
        note("no flow is published; plaita publish FLOW publishes a file")
    table(
        ("FLOW", "VERSION", "PUBLISHED"),
        [(f["flow_id"], f["version"], time_cell(f["published"])) for f in page["items"]],
    )


def flow(
    flow_id: Annotated[str, typer.Argument(metavar="ID", help="A published flow.", autocompletion=completing.flows)],
    version: Annotated[str, typer.Option("--version", metavar="VERSION", help="Default: the latest.")] = "",
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show a published flow: its versions, its executions, where it may wait, and its picture."""
    from plaita.base.errors import FlowLoadError
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import say, show_json
    from plaita.control.definitions import describe, published
    from plaita.core.drawing import as_text, picture_of

    settings = settings_of(store, imports)

    async def work(desk: Desk) -> None:
        shape = await describe(desk.store, flow_id, version)
        if as_json:
            show_json(shape)
            return
        say(f"{shape['flow_id']} version {shape['version']}, published {shape['published']}")
        say("versions: " + ", ".join(v["version"] for v in shape["versions"]))
        counts = ", ".join(f"{count} {status}" for status, count in shape["executions"].items())
        say(f"executions: {counts or 'none'}")
        try:
            found = await published(desk.store, flow_id, version, settings.imports)
        except FlowLoadError as e:
            say(f"this process cannot load it: {e.issues[0]}")
            return
        waits = ", ".join(found.may_wait())
        say(f"may wait at: {waits}" if waits else "never waits")
        say(as_text(picture_of(found)))

    at_desk(work, settings, store)
