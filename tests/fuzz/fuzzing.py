"""The fuzzer: changes inputs, keeps those that end in a new way, and reports what ends in no named error.

python -m tests.fuzz.fuzzing TARGET SECONDS [SEED]
"""

from __future__ import annotations

import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plaita.testing.simulation.random_flows import Dice
from tests.fuzz.targets import TARGETS, Target

HANG_SECONDS = 5
MEMORY_BYTES = 500 * 1024 * 1024
CORPUS_MAX = 2_000


class Hang(Exception):
    """An input took too long."""


class Find(Exception):
    """An input that ended in no named error."""


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises ``Hang`` when what is inside takes longer. In the main thread only."""

    def over(*_: object) -> None:
        raise Hang(f"longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Fuzzer:
    """One target, one seed."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target, self.dice = target, Dice(seed)
        self.corpus: list[Any] = list(target.seeds)
        self.endings: set[str] = set()
        self.played = 0

    def once(self) -> None:
        """Play one changed input. Raises ``Find``."""
        value = self.target.change(self.dice.pick(self.corpus), self.dice, self.corpus)
        try:
            with at_most(HANG_SECONDS):
                ending = self.target.play(value)
        except Exception as e:
            raise Find(f"{type(e).__name__}: {e}\n  input: {value!r}") from e
        self.played += 1
        if ending not in self.endings:
            self.endings.add(ending)
            if len(self.corpus) < CORPUS_MAX:
                self.corpus.append(value)


def peak_bytes() -> int:
    """The most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> int:
    name, seconds = sys.argv[1], float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else time.time_ns() % 10**9
    fuzzer, until, finds = Fuzzer(TARGETS[name](), seed), time.monotonic() + seconds, 0
    while time.monotonic() < until and finds < 20:
        try:
            fuzzer.once()
        except Find as e:
            finds += 1
            print(f"{name} (seed {seed}): {e}", flush=True)
        if peak_bytes() > MEMORY_BYTES:
            print(f"{name} (seed {seed}): more than {MEMORY_BYTES // 2**20} MB", flush=True)
            finds += 1
            break
    print(
        f"{name}: seed {seed}, {fuzzer.played} inputs, {len(fuzzer.endings)} endings, {finds} finds, "
        f"at most {peak_bytes() // 2**20} MB",
        flush=True,
    )
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
