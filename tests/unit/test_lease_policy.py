"""Which lease numbers hold together."""

import pytest

from plaita.policy.lease import LeasePlan, plan_lease
from plaita.settings import WorkerSettings, load_settings


@pytest.mark.parametrize("lease_s", [3, 10, 60, 3_600])
def test_a_lease_outlives_two_renewals_and_a_gap_and_a_grace_outlives_a_renewal(lease_s: int) -> None:
    worker = load_settings({"PLAITA_LEASE_TTL_SECONDS": str(lease_s)}).worker
    plan = plan_lease(worker.lease_ttl_ms)
    assert plan.lease_ms > 2 * worker.renew_ms + plan.gap_ms
    assert plan.grace_ms > worker.renew_ms


def test_ten_seconds_give_the_documented_numbers() -> None:
    assert plan_lease(10_000) == LeasePlan() == LeasePlan(10_000, 3_300, 4_000)
    assert (WorkerSettings().lease_ttl_ms, WorkerSettings().renew_ms) == (10_000, 3_000)
