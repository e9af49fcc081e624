"""What a batch of worlds must have seen: faults, answers and the premises of the invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

FAULTS = (
    "request delayed", "request lost", "answer lost", "request arrived late", "request arrived twice", "outage",
    "store clock stepped forward", "store clock stepped back", "process killed", "process paused past its lease",
    "machine slept", "loop busy past its lease, renewed beside",
    "process drained", "process restarted", "dead process reported", "node killed its process",
    "producer repeated itself",
)  # fmt: skip
PREMISES = (
    "takeover", "takeover refused in grace", "settle accepted", "Dup answered", "Stale answered", "Conflict answered",
    "Lost answered", "claim answered what it held", "park became keep", "handed back", "cancel with a holder",
    "cancel without a holder", "settle after a cancel", "wake accepted", "wake while held", "wake came second",
    "wake without a wait", "candidate offered", "candidate refused", "candidate overtaken",
    "event consumed from the log", "event published twice", "fan-out beyond its first chunk", "wait timed out",
    "waited for a slot", "slot handed on", "start deduplicated", "start in conflict", "id refused after delete",
    "id used again after delete", "reopened", "worker lost", "backed off", "timer fired", "detached run",
    "task decided", "vote recorded", "vote refused", "message accepted", "message too old", "message dead",
    "message for a live run", "effect repeated", "effect retried", "thread job", "outcome compared", "run completed",
    "run failed", "run cancelled", "run deleted",
)  # fmt: skip
NAMES = (*FAULTS, *PREMISES)


class Coverage:
    """Counts by name; an undeclared name is a mistake of the simulation."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def saw(self, name: str, times: int = 1) -> None:
        """It happened."""
        if name not in _KNOWN:
            raise KeyError(name)
        self.counts[name] += times


_KNOWN = frozenset(NAMES)


def never(counts: Mapping[str, int]) -> list[str]:
    """What a batch has not seen at all."""
    return [name for name in NAMES if not counts.get(name)]


def table(counts: Iterable[tuple[str, int]]) -> str:
    """The report: one line a name."""
    found = dict(counts)
    return "\n".join(f"{found.get(name, 0):>9}  {name}" for name in NAMES)
