"""Each of the twenty scenarios is shown by tests that exist."""

from __future__ import annotations

from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

from tests.process.scenarios import BESIDE, TWENTY

ROOT = Path(__file__).parents[2]
NAMED = sorted({test for scenario in TWENTY for test in scenario.shown_by} | set(BESIDE))


def test_there_are_twenty_scenarios_and_each_has_a_test() -> None:
    assert len({scenario.fault for scenario in TWENTY}) == 20
    assert all(scenario.shown_by and scenario.holds for scenario in TWENTY)


@pytest.mark.parametrize("test", NAMED)
def test_a_test_that_a_scenario_names_exists(test: str) -> None:
    path, *names = test.split("::")
    assert (ROOT / path).is_file()
    module = import_module(path.removesuffix(".py").replace("/", "."))
    found = reduce(getattr, names, module)
    assert callable(found)
    assert names[-1].startswith("test_")
