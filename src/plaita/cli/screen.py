"""Writing: results on stdout, words on stderr; colours and tables for people, plain text for pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import typer

from plaita.base.json import Json

COLOURS = {
    "completed": typer.colors.GREEN,
    "error": typer.colors.RED,
    "failed": typer.colors.RED,
    "cancelled": typer.colors.RED,
    "waiting": typer.colors.YELLOW,
    "warning": typer.colors.YELLOW,
    "ok": typer.colors.GREEN,
}


def show_json(value: Json) -> None:
    """JSON on stdout, indented for a person."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def say(text: str) -> None:
    """A line of a result on stdout."""
    typer.echo(text)


def note(text: str) -> None:
    """A line for the person, on stderr."""
    typer.echo(text, err=True)


def coloured(word: str, text: str = "") -> str:
    """``text`` in the colour of a status word; colours vanish in a pipe."""
    return typer.style(text or word, fg=COLOURS.get(word))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns for a person; in a pipe one line a row, columns divided by tabs, without header."""
    if not sys.stdout.isatty():
        for row in rows:
            say("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for title in header:
        grid.add_column(title, overflow="fold")
    for row in rows:
        grid.add_row(*(f"[{COLOURS[cell]}]{cell}[/]" if cell in COLOURS else cell.replace("[", r"\[") for cell in row))
    Console().print(grid)
