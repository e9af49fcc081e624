"""``plaita logs``: what happened to an execution."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plaita.cli.options import AsJson, Debug, ExecutionId, Store

if TYPE_CHECKING:
    from plaita.base.json import Json
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape

HEAD: Final = ("seq", "at", "event", "node")
LONG: Final = 200


def logs(
    execution_id: ExecutionId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Stay until it ends, or waits for somebody.")] = False,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what happened to an execution, oldest first: one line an entry, with --json one object a line."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, say
    from plaita.control.following import entries
    from plaita.control.looking import run_of

    async def work(desk: Desk) -> None:
        begun: dict[str, str] = {}
        async for entry in entries(desk.store, execution_id, follow=follow):
            say(json.dumps(entry, ensure_ascii=False) if as_json else _line(entry, begun))
        run = await run_of(desk.store, execution_id)
        if run.blocked_reason:
            note(f"blocked: {run.blocked_reason}")
            note(f"  {(await desk.wording()).command('explain', execution_id)}")

    at_desk(work, settings_of(store), store, as_json=as_json)


def _line(entry: Shape, begun: dict[str, str]) -> str:
    """Time, event, node, how long it took, and the rest; ``begun`` remembers when each node began."""
    from plaita.cli.screen import coloured
    from plaita.cli.wording import facts_of

    at, event, node = entry["at"], entry["event"], entry.get("node") or ""
    took = ""
    if event == "node_start":
        begun[node] = at
    elif event in ("node_end", "node_error") and node in begun:
        took = f"  {_seconds(begun.pop(node), at):.2f} s"
    word = coloured({"node_error": "failed", "run_ended": str(entry.get("status"))}.get(event, ""), f"{event:14}")
    facts = "  ".join(f"{key}={_short(value)}" for key, value in facts_of(entry, HEAD, _local))
    return f"{_local(at)}  {word}  {node}{took}  {facts}".rstrip()


def _local(at: str) -> str:
    local = datetime.fromisoformat(at).astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03}"


def _seconds(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def _short(value: Json) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split("\n"))
    return text if len(text) <= LONG else f"{text[:LONG]}…"
