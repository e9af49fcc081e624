"""``plaita doctor``: is the store healthy, and does everything in it move?"""

from __future__ import annotations

import typer

from plaita.cli.options import AsJson, Debug, Store


def doctor(store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Check store, durability, clock, consistency, stuck executions and settings, and say what to do.

    Exit code 1 when a check failed; warnings alone are 0.
    """
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.failing import DONE, FAILED
    from plaita.cli.screen import coloured, say, show_json
    from plaita.runtime.checking import check, finding_shape

    settings = settings_of(store)
    checks = at_desk(lambda desk: check(desk.store, desk.settings), settings, store)
    if as_json:
        show_json({"items": [finding_shape(c) for c in checks], "next": None})
    else:
        for c in checks:
            say(f"{coloured(c.status):<8} {c.name}: {c.message}")
            if c.hint and c.status != "ok":
                say(f"         {c.hint}")
    raise typer.Exit(FAILED if any(c.status == "failed" for c in checks) else DONE)
