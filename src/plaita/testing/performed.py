"""The calls of a flow under test: which node was performed with what, and that nothing is performed too often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TypeAlias

from plaita.base.json import Json, decode
from plaita.ports.runs import Step
from plaita.testing.saying import NotAsExpected

Attempt: TypeAlias = tuple[str, str, int]
"""Run, key without the incarnation, attempt."""


@dataclass(frozen=True, slots=True)
class Performed:
    """One performance of an effectful node, or of its mock.

    ``node`` is its address (``loop:0/pay``), ``label`` the same without rounds, ``fields`` what the flow gives it,
    evaluated. ``key`` stays the same over retries and repetitions, ``attempt`` counts retries from 1.
    """

    run_id: str
    node: str
    label: str
    fields: dict[str, Json]
    key: str
    attempt: int
    at_ms: int

    @property
    def node_id(self) -> str:
        """The id of the node."""
        return self.label.rpartition("/")[2]

    @property
    def identity(self) -> Attempt:
        """What is the same for a repetition after a crash."""
        return self.run_id, self.key, self.attempt

    def is_of(self, name: str) -> bool:
        """Is it of the node with this id or address?"""
        return name in (self.node, self.label, self.node_id)


class Ledger:
    """Every performance of a world, which of them are durable, and which a crash allows to repeat.

    A finished call, one whose result is in an accepted settle, never runs again. Each death of the process lets the
    calls that were under way run once more.
    """

    def __init__(self) -> None:
        self.performed: list[Performed] = []
        self.repeated = 0
        self._open: dict[tuple[str, str], Attempt] = {}
        self._finished: dict[Attempt, bool] = {}
        self._counted: Counter[Attempt] = Counter()
        self._allowed: Counter[Attempt] = Counter()

    def begin(self, call: Performed) -> None:
        """A performance begins. Raises ``NotAsExpected`` when it must not."""
        self.performed.append(call)
        identity = call.identity
        self._counted[identity] += 1
        if identity in self._finished:
            raise NotAsExpected(f"{call.node} was performed again (key {call.key}) although its result is stored")
        again = self._counted[identity] - 1
        if again > self._allowed[identity]:
            raise NotAsExpected(
                f"{call.node} was performed {again + 1} times (key {call.key}) without a crash under way"
            )
        self.repeated += again > 0

    def stored(self, step: Step) -> None:
        """A settle was accepted: its history says which calls it starts and which it ends."""
        for data in step.history:
            entry = decode(data)
            match entry["event"]:
                case "node_start":
                    key = entry["key"].removeprefix("/")
                    self._open[step.run_id, entry["node"]] = (step.run_id, key, entry["attempt"])
                case "node_end" | "node_error":
                    found = self._open.pop((step.run_id, entry["node"]), None)
                    if found is not None:
                        self._finished[found] = entry["event"] == "node_error"

    def reopened(self, run_id: str) -> list[Attempt]:
        """A failed run goes on at its failed calls: these are performed anew."""
        anew = [found for found, failed in self._finished.items() if failed and found[0] == run_id]
        for found in anew:
            del self._finished[found], self._counted[found]
        return anew

    def killed(self) -> None:
        """The process died: what was under way may run once more."""
        for call in self._unfinished():
            self._allowed[call.identity] += 1

    def _unfinished(self) -> list[Performed]:
        last = {call.identity: call for call in self.performed}
        return [call for identity, call in last.items() if identity not in self._finished]
