"""``plaita prune``: old executions go."""

from __future__ import annotations

from typing import Annotated

import typer

from plaita.cli.options import AsJson, Debug, Store


def prune(
    days: Annotated[
        int | None,
        typer.Option("--older-than", min=0, max=36_500, metavar="DAYS", help="Default: the retention of the settings."),
    ] = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove executions that ended before the retention, and events, dead letters and unused definitions as old.

    Live executions, published flows and the definitions of both stay.
    """
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import say, show_json
    from plaita.control import keeping

    settings = settings_of(store)
    kept = settings.store.retention_days if days is None else days
    count = at_desk(lambda desk: keeping.prune(desk.store, kept), settings, store)
    if as_json:
        show_json({"pruned": count})
    else:
        removed, ago = (_counted(count, "execution"), _counted(kept, "day"))
        say(f"{removed} removed that ended more than {ago} ago, and events, unused definitions and dead letters as old")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
