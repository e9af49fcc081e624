"""``--where``: many executions at once, after a look at them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.control.shapes import Shape

Where = Annotated[
    str,
    typer.Option(
        "--where",
        metavar="EXPRESSION",
        help='Every execution this holds for, for example \'$status == "error" and $flow_id == "order"\'.',
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="With --where: do not ask.")]
Most = Annotated[
    int,
    typer.Option("--limit", metavar="COUNT", min=1, max=100_000, help="With --where: refuse more than so many."),
]
SHOWN: Final = 10


async def ids_of(desk: Desk, verb: str, ids: list[str], where: str, most: int, *, yes: bool) -> list[str]:
    """The executions to act on: those named, or those chosen, shown and confirmed."""
    if bool(ids) == bool(where):
        raise typer.BadParameter(f"name executions, or choose them with --where{', not both' if ids else ''}")
    if ids:
        return ids
    found = await _chosen(desk, where, most)
    if not found or yes:
        return [shape["execution_id"] for shape in found]
    _preview(verb, found)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise typer.BadParameter(f"{_counted(found)} would be acted on; --yes confirms it")
    from plaita.cli.screen import note

    typer.echo(f"{verb} {_counted(found)}? Type yes: ", err=True, nl=False)
    if sys.stdin.readline().strip() != "yes":
        note("nothing was done")
        return []
    return [shape["execution_id"] for shape in found]


async def _chosen(desk: Desk, where: str, most: int) -> list[Shape]:
    from plaita.control.choosing import Choice, first_of

    found = await first_of(desk.store, Choice(where), most + 1)
    if len(found) > most:
        raise typer.BadParameter(f"more than {most} executions fit; --limit allows more")
    return found


def _counted(found: list[Shape]) -> str:
    return f"{len(found)} execution{'' if len(found) == 1 else 's'}"


def _preview(verb: str, found: list[Shape]) -> None:
    from plaita.cli.screen import note
    from plaita.cli.wording import label

    for shape in found[:SHOWN]:
        note(f"{shape['execution_id']}  {shape['flow_id']}  {label(shape)}  {shape['start_time']}")
    if len(found) > SHOWN:
        note(f"… and {len(found) - SHOWN} more")
