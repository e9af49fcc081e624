"""``plaita ps``: executions, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from plaita.cli.options import AsJson, Debug, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape

STATUSES: Final = ("queued", "running", "suspended", "completed", "error", "cancelled")
HEADER: Final = ("EXECUTION", "FLOW", "STATUS", "STARTED", "WAITS FOR")
SPOKEN: Final = {"waiting": "suspended", "failed": "error"}


def ps(
    status: Annotated[
        str, typer.Option("--status", metavar="STATUS", help=f"Only this: {', '.join((*STATUSES, *SPOKEN))}.")
    ] = "",
    flow: Annotated[str, typer.Option("--flow", metavar="FLOW_ID", help="Only executions of this flow.")] = "",
    key: Annotated[str, typer.Option("--key", metavar="KEY", help="Only this business key.")] = "",
    tag: Annotated[str, typer.Option("--tag", metavar="TAG", help="Only executions with this tag.")] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="COUNT", min=1, max=1000, help="At most so many.")] = 50,
    where: Annotated[
        str, typer.Option("--where", metavar="EXPRESSION", help="Only those this holds for: '$status == \"error\"'.")
    ] = "",
    after: Annotated[
        str, typer.Option("--after", metavar="CURSOR", help="The next page: `next` of the last one.")
    ] = "",
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List executions, newest first."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, show_json, table, time_cell
    from plaita.cli.wording import label, waits_in_short
    from plaita.control.crew import unmoved

    if where and after:
        raise typer.BadParameter("--where has no pages; --limit says how many")
    status = SPOKEN.get(status, status)
    if status and status not in STATUSES:
        raise typer.BadParameter(f"--status {status}: choose from {', '.join((*STATUSES, *SPOKEN))}")

    filters = {"status": status, "flow_id": flow, "business_key": key, "tag": tag}

    async def work(desk: Desk) -> tuple[Shape, set[str]]:
        page = await _page(desk, where, after, limit, filters)
        return page, await unmoved(desk.store, page["items"])

    page, still = at_desk(work, settings_of(store), store)
    if as_json:
        show_json(page)
        return
    rows = [
        (
            e["execution_id"],
            e["flow_id"],
            "interrupted" if e["execution_id"] in still and not e.get("blocked_reason") else label(e),
            time_cell(e["start_time"]),
            waits_in_short(e),
        )
        for e in page["items"]
    ]
    table(HEADER, rows, folding=("FLOW", "WAITS FOR"))
    if not rows:
        note("no executions")
    if page["next"]:
        note(f"there are more: --after {page['next']}")


async def _page(desk: Desk, where: str, after: str, limit: int, filters: dict[str, str]) -> Shape:
    if where:
        from plaita.control.choosing import Choice, first_of

        return {"items": await first_of(desk.store, Choice(where), limit, **filters), "next": None}
    from plaita.control.looking import list_executions

    return await list_executions(desk.store, **filters, limit=limit, cursor=after)
