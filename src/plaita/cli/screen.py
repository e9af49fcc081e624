"""Writing: results on stdout, words on stderr; colours and tables for people, plain text for pipes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

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

GAP = 2
"""Blanks between two columns of a table."""
FOLDED_MIN = 8
"""How narrow a folded column may become."""

CONTROLS = re.compile(r"(\x1b\[(?:0|1|3[0-7])m)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Colours of our own (group 1), and control characters: C0 without tab and newline, C1, changes of direction."""


def show_json(value: Json) -> None:
    """JSON on stdout, indented for a person."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2 if sys.stdout.isatty() else None))


def say(text: str) -> None:
    """A line of a result on stdout."""
    typer.echo(shown(text))


def note(text: str) -> None:
    """A line for the person, on stderr. Where nobody reads any more nothing is written: what is told of goes on."""
    try:
        typer.echo(shown(text), err=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def shown(text: str) -> str:
    """``text`` with what a terminal would obey instead of showing, colours apart, as escapes: data moves no cursor."""
    return CONTROLS.sub(lambda found: found[0] if found[1] else found[0].encode("unicode_escape").decode(), text)


def coloured(word: str, text: str = "") -> str:
    """``text`` in the colour of a status word; colours vanish in a pipe."""
    return typer.style(text or word, fg=COLOURS.get(word))


def time_cell(iso: str) -> str:
    """A time in a table: local and to the minute for a person, as it is in a pipe."""
    return f"{datetime.fromisoformat(iso).astimezone():%Y-%m-%d %H:%M}" if sys.stdout.isatty() else iso


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, folding: Sequence[str] = ()) -> None:
    """Aligned columns for a person; in a pipe one line a row, columns divided by tabs, without header.

    On a narrow screen the columns called ``folding`` give way, so that what is copied stays in one piece.
    """
    if not sys.stdout.isatty():
        for row in rows:
            say("\t".join(" ".join(cell.split("\n")) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table

    console, grid = Console(), Table(box=None, header_style="bold", pad_edge=False)
    widths = [
        max(len(line) for text in column for line in text.split("\n")) for column in zip(header, *rows, strict=True)
    ]
    kept = kept_whole(dict(zip(header, widths, strict=True)), folding, console.width)
    for title in header:
        grid.add_column(title, overflow="fold", no_wrap=title in kept)
    for row in rows:
        grid.add_row(*(_cell(text) for text in row))
    console.print(grid)


def kept_whole(widths: Mapping[str, int], folding: Collection[str], room: int) -> frozenset[str]:
    """The columns that are not folded: all but the ``folding`` ones, unless nothing readable is left of those."""
    kept = frozenset(widths).difference(folding)
    left = room - sum(widths[title] for title in kept) - GAP * (len(widths) - 1)
    return kept if left >= FOLDED_MIN * len(folding) else frozenset()


def _cell(text: str) -> str:
    escaped = shown(text).replace("[", r"\[")
    return f"[{COLOURS[text]}]{escaped}[/]" if text in COLOURS else escaped
