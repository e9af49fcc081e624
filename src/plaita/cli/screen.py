"""Writing: results on stdout, words on stderr; colours and tables for people, plain text for pipes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
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


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns for a person; in a pipe one line a row, columns divided by tabs, without header."""
    if not sys.stdout.isatty():
        for row in rows:
            say("\t".join(" ".join(cell.split("\n")) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for title in header:
        grid.add_column(title, overflow="fold")
    for row in rows:
        grid.add_row(*(_cell(text) for text in row))
    Console().print(grid)


def _cell(text: str) -> str:
    escaped = shown(text).replace("[", r"\[")
    return f"[{COLOURS[text]}]{escaped}[/]" if text in COLOURS else escaped
