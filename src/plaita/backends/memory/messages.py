"""Producers' messages and dead letters in memory."""

from __future__ import annotations

from plaita.backends.memory.runs import MemoryRuns
from plaita.backends.memory.tables import Journal, Tables
from plaita.ports.inbox import DeadLetter, Message


class MemoryMessages:
    """Both tables by message id; a number orders them."""

    def __init__(self, tables: Tables, journal: Journal, runs: MemoryRuns) -> None:
        self._tables, self._journal, self._runs = tables, journal, runs

    def holds(self, message_id: str) -> bool:
        return message_id in self._tables.inbox

    def add(self, message: Message) -> None:
        number = self._journal.count(self._tables.counters, "message")
        self._journal.put(self._tables.inbox, message.message_id, (number, message))
        self._runs.stirred = True

    def first(self, n: int) -> list[Message]:
        waiting = sorted(self._tables.inbox.values(), key=lambda entry: entry[0])
        return [message for _, message in waiting[:n]]

    def remove(self, message: Message) -> None:
        self._journal.cut(self._tables.inbox, message.message_id)

    def count(self) -> int:
        return len(self._tables.inbox)

    def bury(self, letter: DeadLetter) -> None:
        number = self._journal.count(self._tables.counters, "dead_letter")
        self._journal.put(self._tables.dead, letter.message.message_id, (number, letter))

    def dead(self, limit: int, after: str) -> list[tuple[str, DeadLetter]]:
        letters = sorted(self._tables.dead.values(), key=lambda entry: entry[0])
        return [(str(number), letter) for number, letter in letters if number > int(after or 0)][:limit]

    def forget_dead(self, older_than_ms: int) -> None:
        for message_id in [k for k, (_, letter) in self._tables.dead.items() if letter.died_ms < older_than_ms]:
            self._journal.cut(self._tables.dead, message_id)
