"""``plaita explain``: why is it not moving?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plaita.cli.options import AsJson, Debug, ExecutionId, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.cli.wording import Wording
    from plaita.control.explaining import Reason

ENDED: Final = ("completed", "cancelled", "failed")
"""Codes of reasons whose time is that of the end."""


def explain(execution_id: ExecutionId, store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Say why an execution does not move: what it waits for, who holds it, what is missing, and what you can do."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import coloured, say, show_json
    from plaita.cli.wording import LABELS, WAITS_MAX
    from plaita.control import explaining

    async def work(desk: Desk) -> None:
        facts, reasons = await explaining.explain(desk.store, execution_id)
        run = facts.run
        if as_json:
            items = [reason.as_json() for reason in reasons]
            show_json({"execution_id": run.run_id, "status": run.status, "reasons": items})
            return
        say(f"{coloured(LABELS.get(run.status, run.status))}: {run.flow_id} {run.run_id}")
        wording = await desk.wording()
        for reason in reasons[:WAITS_MAX]:
            for line in _lines(reason, wording):
                say(f"  {line}")
        for line in wording.more(len(reasons) - WAITS_MAX, "explain", execution_id):
            say(line)

    at_desk(work, settings_of(store), store, as_json=as_json)


def _lines(reason: Reason, wording: Wording) -> list[str]:
    from plaita.base.moment import iso

    since, until = iso(reason.since_ms), iso(reason.until_ms)
    times = [f"since {wording.when(since)}"] if since else []
    times += [f"until {wording.when(until)}"] if until and reason.code not in ENDED else []
    times += [f"ended {wording.when(until)}"] if until and reason.code in ENDED else []
    head = ", ".join([reason.text, *times])
    return [head, *(f"  {wording.command(*words)}" for words in reason.do)]
