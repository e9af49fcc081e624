"""Which lease numbers hold together."""

import pytest

from plaita.policy.lease import LEASE_MIN_MS, LeasePlan, lease_issues, plan_lease


@pytest.mark.parametrize("lease_ms", [LEASE_MIN_MS, 10_000, 60_000])
def test_a_plan_made_from_a_lease_protects_healthy_holders(lease_ms: int) -> None:
    assert lease_issues(plan_lease(lease_ms)) == []


def test_ten_seconds_give_the_documented_numbers() -> None:
    assert plan_lease(10_000) == LeasePlan() == LeasePlan(10_000, 3_000, 3_300, 4_000)


@pytest.mark.parametrize(
    ("plan", "word"),
    [
        (LeasePlan(2_999, 900, 900, 1_000), "at least"),
        (LeasePlan(9_300, 3_000, 3_300, 4_000), "longer than 2"),
        (LeasePlan(10_000, 3_000, 3_300, 3_000), "grace"),
    ],
)
def test_numbers_that_could_cost_a_healthy_holder_its_run_are_named(plan: LeasePlan, word: str) -> None:
    [issue] = lease_issues(plan)
    assert word in issue
