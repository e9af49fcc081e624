"""``plaita workers``: who drives executions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from plaita.cli.options import AsJson, Debug, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.cli.wording import Wording
    from plaita.control.shapes import Shape


def workers(store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the processes that drive executions, with what they hold and since when they are there."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, show_json, table
    from plaita.control.crew import list_workers

    async def work(desk: Desk) -> tuple[Shape, Wording]:
        return await list_workers(desk.store), await desk.wording()

    found, wording = at_desk(work, settings_of(store), store)
    if as_json:
        show_json(found)
        return
    header = ("WORKER", "HOST", "PID", "STATE", "QUEUES", "RUNNING", "UP", "LAST HEARD")
    table(header, [_row(one, wording) for one in found["items"]], folding=("HOST", "QUEUES"))
    if not found["items"]:
        note("no process drives executions; plaita worker starts one")


def _row(one: Shape, wording: Wording) -> tuple[str, ...]:
    """A person reads ages, a program times."""
    since, heard = one["since"], one["last_heartbeat"]
    if sys.stdout.isatty():
        since, heard = wording.age(since), f"{wording.age(heard)} ago"
    return (
        one["instance"] or one["holder"],
        one["host"] or "",
        str(one["pid"]),
        one["state"],
        one["only"] or ",".join(one["queues"]),
        f"{one['running']}/{one['concurrency'] or '?'}",
        since,
        heard,
    )
