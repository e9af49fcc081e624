"""What may go wrong between a process and the store, and how often."""

from __future__ import annotations

from dataclasses import dataclass

from plaita.testing.simulation.coverage import Coverage
from plaita.testing.simulation.random_flows import Dice

PATIENCE_MS = 400
"""After so long without an answer a process takes the outcome for unknown."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How often, per thousand. The first five are per request, the others per second of the world."""

    delayed: int = 0
    request_lost: int = 0
    answer_lost: int = 0
    late: int = 0
    twice: int = 0
    killed: int = 0
    paused: int = 0
    slept: int = 0
    drained: int = 0
    busy: int = 0
    outage: int = 0
    stepped: int = 0


QUIET = Rates()
MILD = Rates(60, 10, 10, 5, 10, 10, 20, 4, 10, 8, 12, 6)
ROUGH = Rates(150, 40, 40, 20, 30, 40, 70, 8, 25, 25, 20, 12)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The fate of one request. ``arrives_ms`` ``None``: never; ``answered`` false: nobody hears what came of it.

    Times are from now. ``again_ms``: a copy of the same bytes arrives then.
    """

    arrives_ms: float | None
    back_ms: float
    answered: bool = True
    again_ms: float | None = None


class Faults:
    """Draws fates. ``active`` off: every request arrives and is answered."""

    def __init__(self, dice: Dice, rates: Rates, coverage: Coverage) -> None:
        self._dice, self.rates, self._coverage = dice, rates, coverage
        self.active = True

    def deliver(self) -> Delivery:
        """What happens to the next request."""
        dice, rates = self._dice, self.rates
        there, back = 1.0 + dice.below(4), 1.0 + dice.below(4)
        if not self.active:
            return Delivery(there, back)
        drawn = dice.below(1000)
        for name, rate in (
            ("request delayed", rates.delayed), ("request lost", rates.request_lost),
            ("answer lost", rates.answer_lost), ("request arrived late", rates.late),
            ("request arrived twice", rates.twice),
        ):  # fmt: skip
            if drawn < rate:
                self._coverage.saw(name)
                return self._faulty(name, there, back)
            drawn -= rate
        return Delivery(there, back)

    def happens(self, per_thousand: int) -> bool:
        """Whether something that has this rate happens now."""
        return self.active and self._dice.below(1000) < per_thousand

    def _faulty(self, name: str, there: float, back: float) -> Delivery:
        dice = self._dice
        match name:
            case "request delayed":
                return Delivery(there + dice.below(PATIENCE_MS // 2), back + dice.below(PATIENCE_MS // 2))
            case "request lost":
                return Delivery(None, PATIENCE_MS, answered=False)
            case "answer lost":
                return Delivery(there, PATIENCE_MS, answered=False)
            case "request arrived late":
                return Delivery(PATIENCE_MS + dice.pick((1, 10, 100, 1_000, 15_000)), PATIENCE_MS, answered=False)
        return Delivery(there, back, again_ms=there + dice.pick((0, 1, 20, 500, 4_000, 15_000)))
