"""One line a node while an execution moves: live on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from plaita.base.clock import SystemClock
from plaita.base.json import Json
from plaita.cli.screen import note

if TYPE_CHECKING:
    from rich.status import Status

MARKS = {"done": ("✓", typer.colors.GREEN), "failed": ("✗", typer.colors.RED), "retry": ("↻", typer.colors.YELLOW)}
MARKS |= {"waits": ("…", typer.colors.YELLOW)}


class Progress:
    """Told of every entry of a timeline. ``live`` shows running nodes with a spinner."""

    def __init__(self, execution_id: str, *, live: bool | None = None) -> None:
        self._id, self._clock = execution_id, SystemClock()
        self._began: dict[str, tuple[float, str]] = {}
        self._live = sys.stderr.isatty() if live is None else live
        self._status: Status | None = None
        self._told = self._replays = False

    def __call__(self, execution_id: str, entry: dict[str, Any]) -> None:
        self._told = True
        node = str(entry.get("node", ""))
        if execution_id != self._id:
            node = f"{execution_id.removeprefix(self._id)}:{node}"
        match entry["event"]:
            case "node":
                self._line("done", node, entry["type"])
            case "node_start":
                self._began[node] = (self._clock.elapsed_ms(), entry["type"])
                self._spin()
            case "node_end":
                self._line("done", node, *self._ended(node))
            case "node_error":
                self._line("failed", node, *self._ended(node), str(entry["message"]))
            case "retry":
                self._line("retry", node, str(entry["message"]))
            case "wait":
                self._line("waits", node, "")

    def catch_up(self, entries: Sequence[Json]) -> None:
        """Show a history whose entries were never told, because another process moved the execution."""
        if self._told:
            return
        self._replays = True
        for entry in entries:
            for node in entry.get("nodes", ()):
                self._line("done", node)
            self(self._id, entry)

    def close(self) -> None:
        """Take the spinner away."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        self._live = False

    def _ended(self, node: str) -> tuple[str, str]:
        """Type and time of a call; without them when its beginning was not seen here."""
        began, kind = self._began.pop(node, (None, ""))
        if began is None or self._replays:
            return kind, ""
        return kind, f"{(self._clock.elapsed_ms() - began) / 1000:.2f} s"

    def _line(self, word: str, node: str, *facts: Json) -> None:
        mark, colour = MARKS[word]
        shown = typer.style(mark, fg=colour) if sys.stderr.isatty() else f"{word:<6}"
        text = "  ".join([f"{shown} {node}", *(str(fact) for fact in facts if fact)])
        if self._status is None:
            note(text)
            return
        self._status.stop()
        note(text)
        self._spin()

    def _spin(self) -> None:
        if not self._live:
            return
        if not self._began:
            if self._status is not None:
                self._status.stop()
            return
        running = ", ".join(f"{node}  {kind}" for node, (_, kind) in self._began.items())
        if self._status is None:
            from rich.console import Console
            from rich.status import Status

            self._status = Status("", console=Console(stderr=True))
        self._status.update(running.replace("[", r"\["))
        self._status.start()
