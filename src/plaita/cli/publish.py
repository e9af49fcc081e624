"""``plaita publish`` and ``plaita flows``: definitions in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    at_desk(work, settings, store, as_json=as_json, create=True)


def flows(store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """List published flows."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import show_json, table
    from plaita.control.keeping import list_flows

    page = at_desk(lambda desk: list_flows(desk.store), settings_of(store), store)
    if as_json:
        show_json(page)
        return
    table(("FLOW", "VERSION", "PUBLISHED"), [(f["flow_id"], f["version"], f["published"]) for f in page["items"]])
