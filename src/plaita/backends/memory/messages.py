"""Producers' messages and dead letters in memory."""

from __future__ import annotations

from dataclasses import replace

from plaita.backends.memory.runs import MemoryRuns
from plaita.backends.memory.tables import Journal, Tables
from plaita.base.ids import NUMBER
from plaita.ports.inbox import DeadLetter, Deed, Message


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

    def count_dead(self) -> int:
        return len(self._tables.dead)

    def bury(self, letter: DeadLetter) -> None:
        number = self._journal.count(self._tables.counters, "dead_letter")
        self._journal.put(self._tables.dead, number, replace(letter, letter_id=str(number)))

    def dead(self, limit: int, after: str) -> list[DeadLetter]:
        return [letter for number, letter in sorted(self._tables.dead.items()) if number > int(after or 0)][:limit]

    def dead_letter(self, letter_id: str) -> DeadLetter | None:
        return self._tables.dead.get(int(letter_id)) if NUMBER.fullmatch(letter_id) else None

    def save_dead(self, letter: DeadLetter) -> None:
        self._journal.put(self._tables.dead, int(letter.letter_id), letter)

    def drop_dead(self, letter_id: str) -> None:
        self._journal.cut(self._tables.dead, int(letter_id))

    def record(self, deed: Deed) -> None:
        self._journal.append(self._tables.deeds, deed)

    def deeds(self, letter_id: str) -> list[Deed]:
        return [deed for deed in self._tables.deeds if deed.letter_id == letter_id]

    def forget_dead(self, older_than_ms: int) -> None:
        for number in [n for n, letter in self._tables.dead.items() if letter.died_ms < older_than_ms]:
            self._journal.cut(self._tables.dead, number)
