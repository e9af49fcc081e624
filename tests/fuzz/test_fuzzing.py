"""A short run of the fuzzer; ``make fuzz`` is the long one."""

from __future__ import annotations

import pytest

from tests.fuzz.fuzzing import Find, Fuzzer
from tests.fuzz.targets import TARGETS, Target

COUNTS = {"expressions": 3_000, "texts": 300, "flows": 1_000}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", TARGETS)
def test_whatever_comes_in_ends_in_a_named_error_or_well(name: str) -> None:
    fuzzer = Fuzzer(TARGETS[name](), seed=1)
    for _ in range(COUNTS[name]):
        fuzzer.once()
    assert len(fuzzer.endings) > 5


def test_an_unnamed_error_is_a_find() -> None:
    def play(value: str) -> str:
        raise KeyError(value)

    with pytest.raises(Find, match="KeyError"):
        Fuzzer(Target(["x"], lambda value, *_: value, play), seed=1).once()
