"""What hangs on one run alone: start, outcome, frames and history, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy

from plaita.backends.memory.tables import Journal, Tables
from plaita.backends.rows import OutcomeRow, RunRow, StartRow
from plaita.ports.queries import Entry
from plaita.ports.values import Parent


class MemoryRecord:
    """Written when it is said; ``now`` dates the history."""

    def __init__(self, tables: Tables, journal: Journal, now: int) -> None:
        self._tables, self._journal, self._now = tables, journal, now

    def start(self, run: RunRow) -> StartRow:
        return self._tables.belongings[run.rid].start

    def parent(self, run: RunRow) -> Parent | None:
        return self.start(run).start.parent

    def outcome(self, run: RunRow) -> OutcomeRow:
        return copy(self._tables.belongings[run.rid].outcome)

    def save_outcome(self, run: RunRow, outcome: OutcomeRow) -> None:
        belongings = copy(self._tables.belongings[run.rid])
        belongings.outcome = outcome
        self._journal.put(self._tables.belongings, run.rid, belongings)

    def frames(self, run: RunRow) -> dict[str, bytes]:
        return dict(self._tables.belongings[run.rid].frames)

    def put_frames(self, run: RunRow, delta: Mapping[str, bytes | None]) -> None:
        frames = self._tables.belongings[run.rid].frames
        for key, value in delta.items():
            if value is None:
                self._journal.cut(frames, key)
            else:
                self._journal.put(frames, key, value)

    def drop_frames(self, run: RunRow) -> None:
        frames = self._tables.belongings[run.rid].frames
        for key in list(frames):
            self._journal.cut(frames, key)

    def log(self, run: RunRow, entries: Iterable[bytes]) -> None:
        history = self._tables.belongings[run.rid].history
        for data in entries:
            run.entries += 1
            self._journal.append(history, Entry(run.entries, self._now, data))

    def history(self, run: RunRow, after: int, limit: int) -> list[Entry]:
        return [e for e in self._tables.belongings[run.rid].history if e.seq > after][:limit]
