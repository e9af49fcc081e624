"""``plaita adopt``: executions of the published system go on here."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, Imports, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk


def adopt(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take over the executions that a published installation left on this Redis, and its flows.

    What has ended stays as it is; what one of its workers still holds is left alone.
    """
    from collections import Counter

    from plaita.app import published_rows
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.failing import FAILED
    from plaita.cli.screen import note, say, show_json
    from plaita.control.adopting import LEFT
    from plaita.control.adopting import adopt as judged_of
    from plaita.core.imports import import_all
    from plaita.core.taking_over import Judged

    settings = settings_of(store, imports)
    import_all(settings.imports)
    found: list[Judged] = []

    async def work(desk: Desk) -> None:
        async for judged in judged_of(desk.store, published_rows(desk.store), dry_run=dry_run):
            found.append(judged)
            if not as_json and judged.verdict not in ("ours", "ended"):
                verdict = judged.verdict.replace("_", " ")
                why = f": {judged.reason}" if judged.reason else ""
                say(f"{judged.execution_id}  {judged.flow_id or '-'}  {judged.status or '-'}  {verdict}{why}")

    at_desk(work, settings, store)
    counts = Counter(judged.verdict for judged in found)
    if as_json:
        show_json({"dry_run": dry_run, "counts": dict(counts), "items": [asdict(judged) for judged in found]})
    else:
        note(", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items()) or "nothing found")
    if LEFT & counts.keys():
        raise typer.Exit(FAILED)
