"""What happened in a world, line by line, and what must not have."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

LINES_MAX = 4_000


class Record:
    """``now`` answers the time of a line, ms since the world began."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.violations: list[str] = []
        self._lines: list[str] = []
        self._digest = blake2b(digest_size=8)

    def violated(self, issue: str) -> None:
        """A rule is broken; the world ends here."""
        self.violations.append(issue)
        self.trace("VIOLATED", issue, "")

    def trace(self, who: str, what: str, text: str) -> None:
        line = f"{self._now():>10.1f} {who:<8} {what} {text}"
        self._digest.update(line.encode())
        self._lines.append(line)

    @property
    def digest(self) -> str:
        """The same for the same seed: what a replay is checked by."""
        return self._digest.hexdigest()

    def text(self) -> str:
        """The last lines, and the violations."""
        return "\n".join([*self._lines[-LINES_MAX:], "", *self.violations])
