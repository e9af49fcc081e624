"""Where the process of a world dies: places in the order of its settles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from plaita.base.json import decode
from plaita.ports.runs import Step

When: TypeAlias = Literal["before", "after", "lost"]
WHENS: tuple[When, ...] = ("before", "after", "lost")
ALL = 0
_PLACE = re.compile(r"(before|after|lost)-(\d{1,9}|all)")


@dataclass(frozen=True, slots=True)
class Place:
    """A fault at a settle. ``number`` counts settles from 1, ``ALL`` means each of them once.

    ``before``: the process is killed as it sends the settle, which never arrives; ``after``: it is killed before it
    hears the answer; ``lost``: it lives, only the answer is lost, so that it sends the same settle again.
    """

    when: When
    number: int

    def __str__(self) -> str:
        return f"{self.when}-{'all' if self.number == ALL else self.number}"

    def in_words(self, settles: Sequence[str]) -> str:
        """What happens there; ``settles`` says what each settle of the undisturbed run carries."""
        which = f"settle {self.number} of {len(settles)}" if self.number else "each settle"
        carried = f" ({settles[self.number - 1]})" if 0 < self.number <= len(settles) else ""
        if self.when == "lost":
            return f"the answer to {which}{carried} is lost, and it is sent again"
        return f"the process is killed {self.when} {which}{carried}"


def read_place(text: str) -> Place:
    """``before-3``, ``after-all``. Raises ``ValueError``."""
    match = _PLACE.fullmatch(text)
    if match is None or match[2] == "0":
        raise ValueError(f"{text!r} is no place; write before-3, after-3, lost-3 or before-all")
    when: When = next(w for w in WHENS if w == match[1])
    return Place(when, ALL if match[2] == "all" else int(match[2]))


class Kills:
    """Counts the settles of a world and says at which of them the fault strikes; at each at most once."""

    def __init__(self, place: Place | None = None) -> None:
        self.place = place
        self.settles: list[str] = []
        self._numbers: dict[tuple[str, int], int] = {}
        self._struck: set[object] = set()

    def strike(self, step: Step) -> When | None:
        """A settle is sent, maybe not for the first time."""
        known = (step.run_id, step.seq)
        if known not in self._numbers:
            self._numbers[known] = len(self._numbers) + 1
            self.settles.append(_carried(step))
        number, place = self._numbers[known], self.place
        if place is None or place.number not in (ALL, number):
            return None
        # With each death the numbers move on: what a settle says is what tells that it was struck before.
        mark = _facts(step) if place.number == ALL else (number,)
        if not mark or mark in self._struck:
            return None
        self._struck.add(mark)
        return place.when


def _facts(step: Step) -> tuple[object, ...]:
    """What a settle says, without the times it says it under; empty when it says nothing."""
    entries = [decode(data) for data in step.history]
    named = ("event", "node", "key", "attempt", "wait_id", "nodes")
    facts = [(step.run_id, *(str(entry.get(name)) for name in named)) for entry in entries]
    return (*facts, type(step.next).__name__) if facts else ()


def _carried(step: Step) -> str:
    """What a settle says, in a few words."""
    words = []
    for data in step.history:
        entry = decode(data)
        match entry["event"]:
            case "node_start":
                words.append(f"{entry['node']} begins")
            case "node_end":
                words.append(f"{entry['node']} has its result")
            case "node_error":
                words.append(f"{entry['node']} failed")
            case "wait":
                words.append(f"{entry['node']} waits")
    last = type(step.next).__name__
    words += ["the run ends"] if last == "End" else []
    return ", ".join(words) or f"{last.lower()}s the run"
