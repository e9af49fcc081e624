"""``plaita inbox``: open tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape


def inbox(
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Only tasks this person may vote on.")] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="COUNT", min=1, max=1000, help="At most so many.")] = 50,
    after: Annotated[
        str, typer.Option("--after", metavar="CURSOR", help="The next page: `next` of the last one.")
    ] = "",
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the tasks that wait for a person, oldest first."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import looking

    async def work(desk: Desk) -> None:
        await _show(desk, await looking.inbox(desk.store, actor=by, limit=limit, cursor=after), by)

    at_desk(work, settings_of(store), store, as_json=as_json)


async def _show(desk: Desk, page: Shape, by: str) -> None:
    from plaita.cli.screen import note, say, show_json

    if desk.as_json:
        show_json(page)
        return
    wording = await desk.wording()
    for task in page["items"]:
        say(f"{task['task_id']}  {task['flow_id']} {task['execution_id']}  until {wording.when(task['deadline'])}")
        for line in wording.task(task):
            say(f"  {line}")
    if not page["items"]:
        note(f"{by} is asked for nothing" if by else "nobody is asked for anything")
    if page["next"]:
        note(f"there are more: --after {page['next']}")
