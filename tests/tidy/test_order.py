"""How tests are shared out."""

from __future__ import annotations

import pytest

from tests.support.order import long_first


@pytest.mark.parametrize(
    ("items", "processes", "found"),
    [
        ([1, 300, 2, 400, 3], 1, [400, 300, 1, 2, 3]),
        ([1, 300, 2, 400, 3, 500], 2, [500, 300, 1, 400, 2, 3]),
        ([300, 400, 500, 1], 3, [500, 400, 300, 1]),
        ([300, 400, 500], 2, [500, 300, 400]),
        ([3, 1, 2], 2, [3, 1, 2]),
        ([], 2, []),
    ],
)
def test_every_process_begins_with_its_part_of_the_long_ones(
    items: list[float], processes: int, found: list[float]
) -> None:
    assert long_first(items, lambda seconds: seconds, processes) == found
