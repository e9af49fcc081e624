"""``plaita inspect``: one execution."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, ExecutionId, Store

if TYPE_CHECKING:
    from plaita.base.json import Json
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape


def inspect(
    execution_id: ExecutionId,
    history: Annotated[bool, typer.Option("--history", help="Also what happened, oldest first.")] = False,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show an execution: what it is, what it waits for, what can be done. Exit code 0 whatever its status."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import looking
    from plaita.control.following import entries

    async def work(desk: Desk) -> None:
        shape = await looking.inspect(desk.store, execution_id)
        if history:
            shape["history"] = [entry async for entry in entries(desk.store, execution_id, follow=False)]
        await _show(desk, shape)

    at_desk(work, settings_of(store), store, as_json=as_json)


async def _show(desk: Desk, shape: Shape) -> None:
    from plaita.cli.screen import say, show_json

    if desk.as_json:
        show_json(shape)
        return
    for line in await desk.lines(shape):
        say(line)
    wording = await desk.wording()
    say(f"  started {wording.when(shape['start_time'])}")
    if shape["end_time"]:
        say(f"  ended {wording.when(shape['end_time'])}")
    if shape["status"] == "completed":
        say(f"  output {json.dumps(shape['output'], ensure_ascii=False)}")
    for entry in shape.get("history", ()):
        say(_entry(entry))


def _entry(entry: Json) -> str:
    from plaita.cli.wording import facts_of

    facts = facts_of(entry, ("seq", "at", "event"))
    words = (f"{k}={v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}" for k, v in facts)
    return "  ".join([f"{entry['seq']:>4}", entry["at"], entry["event"], *words])
