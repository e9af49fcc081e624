"""One line a node while an execution moves: live on a terminal, plain lines in a pipe."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from plaita.base.clock import Clock, SystemClock
from plaita.base.json import Json
from plaita.cli.screen import note

if TYPE_CHECKING:
    from rich.status import Status

MARKS = {"done": ("✓", typer.colors.GREEN), "failed": ("✗", typer.colors.RED), "retry": ("↻", typer.colors.YELLOW)}
MARKS |= {"waits": ("…", typer.colors.YELLOW)}
ROUND = re.compile(r":\d+(?=/)")
LINES_MAX = 1_000
"""Lines about nodes in all."""
REPEATS_MAX = 20
"""Lines a second about nodes that were told of before: further rounds, further visits."""


class Allowance:
    """Which lines are shown. ``held`` counts those that were not and of which nothing was said yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._known = clock, set[str]()
        self._told, self._since, self._repeats = 0, clock.elapsed_ms(), 0
        self.held = 0

    def takes(self, node: str) -> bool:
        """May this line be shown? The first one of a node may, up to the bound of all."""
        place = ROUND.sub("", node)
        if self._told >= LINES_MAX or (place in self._known and not self._may_repeat()):
            self.held += 1
            return False
        self._known.add(place)
        self._told += 1
        return True

    def _may_repeat(self) -> bool:
        now = self._clock.elapsed_ms()
        if now - self._since >= 1000:
            self._since, self._repeats = now, 0
        self._repeats += 1
        return self._repeats <= REPEATS_MAX


class Progress:
    """Told of every entry of a timeline. ``live`` shows running nodes with a spinner.

    Rounds that come faster than a person reads are counted instead of shown.
    """

    def __init__(self, execution_id: str, *, live: bool | None = None, clock: Clock | None = None) -> None:
        self._id, self._clock = execution_id, clock or SystemClock()
        self._allowance = Allowance(self._clock)
        self._began: dict[str, tuple[float, str]] = {}
        self._live = sys.stderr.isatty() if live is None else live
        self._status: Status | None = None
        self._told = self._replays = False
        self._kept: list[str] | None = None

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
        self._say_held()

    def close(self) -> None:
        """Take the spinner away."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        self._live = False
        self._say_held()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing is written while a question is open: what there is to say is said afterwards."""
        self.close()
        self._kept = []
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for text in kept:
                note(text)

    def say(self, text: str) -> None:
        """A line between those about nodes."""
        if self._kept is not None:
            self._kept.append(text)
            return
        if self._status is None:
            note(text)
            return
        self._status.stop()
        note(text)
        self._spin()

    def _ended(self, node: str) -> tuple[str, str]:
        """Type and time of a call; without them when its beginning was not seen here."""
        began, kind = self._began.pop(node, (None, ""))
        if began is None or self._replays:
            return kind, ""
        return kind, f"{(self._clock.elapsed_ms() - began) / 1000:.2f} s"

    def _line(self, word: str, node: str, *facts: Json) -> None:
        if not self._allowance.takes(node):
            return
        mark, colour = MARKS[word]
        shown = typer.style(mark, fg=colour) if sys.stderr.isatty() else f"{word:<6}"
        self.say("  ".join([f"{shown} {node}", *(str(fact) for fact in facts if fact)]))

    def _say_held(self) -> None:
        """What was not shown, in one line at the end."""
        if held := self._allowance.held:
            note(f"… {held} more {'node' if held == 1 else 'nodes'}")
            self._allowance.held = 0

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
