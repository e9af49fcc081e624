"""``plaita event publish``: a fact from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Data, Debug, Imports, Store

if TYPE_CHECKING:
    from plaita.base.json import Json
    from plaita.cli.desk import Desk


def publish(
    event_type: Annotated[str, typer.Argument(metavar="TYPE", help="The type waits listen for.")],
    data: Data = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="KEY", help="The key that correlated waits listen for.")
    ] = None,
    event_id: Annotated[str, typer.Option("--id", metavar="ID", help="The same id twice is one event.")] = "",
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Publish an event. Says how many waits matched and woke, and lets their executions go on.

    Exit code 1 when one of them fails then, else 0.
    """
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.inputs import read_json

    payload = read_json(data, "--data")

    async def work(desk: Desk) -> int:
        return await _publish(desk, event_type, payload, key, event_id)

    raise typer.Exit(at_desk(work, settings_of(store, imports), store, as_json=as_json, create=True))


async def _publish(desk: Desk, event_type: str, data: Json, key: str | None, event_id: str) -> int:
    from plaita.cli.failing import answer_code
    from plaita.cli.screen import say, show_json
    from plaita.control import acting
    from plaita.runtime.driving import move_woken

    answer = await acting.publish_event(desk.store, event_type, data, key, event_id)
    moved: list[Json] = []
    if answer.matched and not answer.duplicate:
        moved = await move_woken(desk.store, event_type, desk.move)
    if desk.as_json:
        facts = {"event_id": answer.event_id, "matched": answer.matched, "woken": answer.woken}
        show_json({**facts, "duplicate": answer.duplicate, "pending": answer.pending, "executions": moved})
        return answer_code(*moved)
    again = " (published before)" if answer.duplicate else ""
    more = ", more follow" if answer.pending else ""
    waits = "1 wait" if answer.matched == 1 else f"{answer.matched} waits"
    asked = answer.matched - answer.woken
    filters = f", {asked} {'looks' if asked == 1 else 'look'} at the data" if asked and not answer.duplicate else ""
    say(f"{answer.event_id}: {waits} matched, {answer.woken} woke{filters}{more}{again}")
    for shape in moved:
        await desk.show(shape)
    return answer_code(*moved)
