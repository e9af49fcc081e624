"""``plaita workers``: who drives executions."""

from __future__ import annotations

from plaita.cli.options import AsJson, Debug, Store


def workers(store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the processes that drive executions, with what they hold and since when they are there."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, show_json, table, time_cell
    from plaita.control.crew import list_workers

    found = at_desk(lambda desk: list_workers(desk.store), settings_of(store), store)
    if as_json:
        show_json(found)
        return
    rows = [
        (
            w["instance"] or w["holder"],
            w["host"] or "",
            str(w["pid"]),
            w["state"],
            w["only"] or ",".join(w["queues"]),
            f"{w['running']}/{w['concurrency'] or '?'}",
            time_cell(w["since"]),
            time_cell(w["last_heartbeat"]),
        )
        for w in found["items"]
    ]
    table(("WORKER", "HOST", "PID", "STATE", "QUEUES", "RUNNING", "SINCE", "LAST HEARD"), rows)
    if not rows:
        note("no process drives executions; plaita worker starts one")
