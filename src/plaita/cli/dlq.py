"""``plaita dlq``: messages that could not be carried out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli import completing
from plaita.cli.options import AsJson, Debug, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape

LetterId = Annotated[
    str, typer.Argument(metavar="LETTER", help="A dead letter.", autocompletion=completing.letters)
]  # fmt: skip
LetterIds = Annotated[
    list[str], typer.Argument(metavar="LETTER…", help="Dead letters.", autocompletion=completing.letters)
]
Actor = Annotated[str, typer.Option("--by", metavar="NAME", help="Who does it. Default: the user of this system.")]


def ls(
    limit: Annotated[int, typer.Option("--limit", metavar="COUNT", min=1, max=1000, help="At most so many.")] = 50,
    after: Annotated[
        str, typer.Option("--after", metavar="CURSOR", help="The next page: `next` of the last one.")
    ] = "",
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List dead letters, oldest first."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, show_json, table, time_cell
    from plaita.control import dead_letters

    async def work(desk: Desk) -> Shape:
        return await dead_letters.dead_letters(desk.store, limit=limit, cursor=after)

    page = at_desk(work, settings_of(store), store)
    if as_json:
        show_json(page)
        return
    rows = [
        (
            one["letter_id"],
            one["reason"],
            time_cell(one["died_at"]),
            one["execution_id"] or "",
            "sent again" if one["replays"] else "",
        )
        for one in page["items"]
    ]
    table(("LETTER", "REASON", "DIED", "EXECUTION", ""), rows, folding=("DIED", ""))
    if not rows:
        note("no dead letters")
    if page["next"]:
        note(f"there are more: --after {page['next']}")


def show(letter: LetterId, store: Store = None, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show a dead letter: why it died, its message, and what was done with it."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note, say, show_json
    from plaita.control import dead_letters
    from plaita.ports.inbox import MESSAGE_TYPES

    async def work(desk: Desk) -> Shape:
        return await dead_letters.show(desk.store, letter)

    found = at_desk(work, settings_of(store), store)
    if as_json:
        show_json(found)
        return
    say(f"{found['letter_id']}  {found['reason']}  {found['died_at']}")
    say(f"  {found['detail']}")
    for deed in found["history"]:
        say(f"  {deed['at']}  {deed['action']} by {deed['by']}: {deed['result']}")
    show_json(found["message"])
    again = f"plaita dlq replay {letter} sends it again, " if found["type"] in MESSAGE_TYPES else ""
    note(f"{again}plaita dlq discard {letter} throws it away")


def replay(
    letters: LetterIds,
    force: Annotated[bool, typer.Option("--force", help="Also when it was sent again before.")] = False,
    tenant: Annotated[str, typer.Option("--tenant", metavar="TENANT", help="Whose it is, if it does not say.")] = "",
    execution: Annotated[
        str, typer.Option("--execution", metavar="ID", help="Which execution it is for, if it does not say.")
    ] = "",
    by: Actor = "",
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Send the messages of dead letters again, each once. Workers take them; the letters stay."""
    from plaita.control import dead_letters
    from plaita.ports.inbox import Replaying
    from plaita.runtime.runtime import whoami

    async def one(desk: Desk, letter_id: str) -> tuple[Shape, str]:
        default = "default" if desk.settings.store.tenancy == "single" else ""
        asked = Replaying(letter_id, by or whoami(), force, tenant, execution, default)
        sent = await dead_letters.replay(desk.store, asked)
        whom = f" for {sent['execution_id']}" if sent["execution_id"] else ""
        return sent, f"message {sent['message_id']}{whom} waits for a worker"

    _each(letters, one, store, as_json=as_json)


def discard(
    letters: LetterIds, by: Actor = "", store: Store = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Throw dead letters away. Who did it stays recorded."""
    from plaita.control import dead_letters
    from plaita.runtime.runtime import whoami

    async def one(desk: Desk, letter_id: str) -> tuple[Shape, str]:
        await dead_letters.discard(desk.store, letter_id, by or whoami())
        return {"letter_id": letter_id, "answer": "discarded"}, "discarded"

    _each(letters, one, store, as_json=as_json)


def _each(
    letters: list[str],
    one: Callable[[Desk, str], Awaitable[tuple[Shape, str]]],
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Every letter in turn; one that is refused does not stop the others. Exits with the first error's code."""
    from plaita.base.errors import PlaitaError
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.failing import DONE, error_shape, exit_code, report
    from plaita.cli.screen import say, show_json

    async def work(desk: Desk) -> int:
        items: list[Shape] = []
        code = DONE
        for letter_id in letters:
            try:
                shape, words = await one(desk, letter_id)
            except PlaitaError as e:
                code = code or exit_code(e)
                items.append({"letter_id": letter_id, "error": error_shape(e)})
                if not as_json:
                    report(e, as_json=False, debug=False)
                continue
            items.append(shape)
            if not as_json:
                say(f"{letter_id}: {words}")
        if as_json:
            show_json({"items": items, "next": None})
        return code

    raise typer.Exit(at_desk(work, settings_of(store), store, as_json=as_json))
