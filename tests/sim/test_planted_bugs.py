"""Every planted bug of the model is caught in the smallest world that shows it, on a walk or by exploring it."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.protocol.explore import explore, walk
from tests.sim.protocol.scenarios import BUGS, SCENARIOS
from tests.sim.protocol.store import BUG

pytestmark = pytest.mark.timeout(300)

LOOKS = ((2_500, True), (25_000, False), (250_000, True))
"""How many states are explored, and whether a fair schedule is tried from each, which costs ten times as much.

Most bugs break a rule before they stop anything; what stops something does it soon.
"""

WALKED = {
    "close_no_cas": ("race", 16),
    "park_ignores_box": ("busy", 197),
    "park_before_arm": ("early", 119),
    "end_ignores_unread": ("race", 4),
    "end_keeps_waits": ("race", 17),
    "wake_overwrites": ("wake", 243),
    "wake_not_due": ("wake", 85),
    "wake_resets_lease": ("busy", 210),
    "wait_id_reused": ("loop", 21),
    "cancel_keeps_claim": ("cancel", 2),
    "cancel_keeps_slot": ("quota", 89),
    "cancel_leaves_waits": ("cancel", 313),
    "claim_ignores_cancel": ("cancel", 36),
    "settle_ignores_cancel": ("busy", 63),
    "dup_no_digest+recompute_on_unknown": ("wake", 1),
    "recompute_on_unknown": ("busy", 57),
    "no_token_check": ("ghost", 39),
    "no_seq_check": ("ghost2", 121),
    "seq_ge": ("rewind", 81),
    "claim_ignores_lease": ("effect", 105),
    "renew_takes_back": ("effect", 111),
    "lease_from_reply": ("slow", 149),
    "no_local_check": ("effect", 50),
    "effect_before_settle": ("effect", 28),
    "delta_key_dropped": ("busy", 55),
    "stale_arguments": ("effect", 82),
    "key_with_generation": ("effect", 7),
    "delete_live": ("delete", 54),
    "hand_back_keeps_token": ("drain", 52),
    "retry_count_lost": ("retries", 74),
    "backoff_not_due": ("retry", 79),
    "event_consumed_twice": ("loop", 24),
    "publish_twice_two_numbers": ("loop", 45),
    "uncorrelated_sees_old": ("uncorrelated", 101),
    "arm_ignores_log": ("early", 81),
    "close_ignores_log": ("timeout", 81),
    "fanout_cursor_lost": ("fanout", 93),
    "refused_no_rematch": ("filter", 5),
    "judged_out_of_order": ("filters", 73),
    "taken_no_rematch": ("filters", 61),
    "spawn_by_holder": ("child", 108),
    "child_cancel_silent": ("child", 23),
    "no_cancel_to_children": ("childcut", 36),
    "tombstoned_child_silent": ("childtomb", 42),
    "park_keeps_slot": ("quota", 78),
    "free_no_promote": ("quota", 16),
    "resume_over_cap": ("quota", 169),
    "timer_over_cap": ("quotatimer", 2),
    "no_crash_budget": ("kill", 58),
    "tries_reset_by_claim": ("kill", 66),
    "any_settle_resets": ("kill", 66),
    "release_uncounted": ("supervised", 29),
    "no_grace": ("outage", 48),
    "age_gate_on_live": ("inbox", 77),
    "dead_letter_of_live": ("inbox", 159),
    "ack_before_effect": ("inbox", 58),
    "dedup_any_payload": ("conflict", 61),
}
"""World and seed of a walk that meets the bug: the smallest of the first ones that do.

Where a walk meets it no more, as for a bug that no walk meets, the worlds are explored.
"""


@pytest.fixture(autouse=True)
def without_bugs() -> Iterator[None]:
    yield
    BUG.clear()


def caught(name: str) -> bool:
    BUG.update(name.split("+"))
    if name in WALKED:
        world, seed = WALKED[name]
        if walk(SCENARIOS[world], seed)["bad"]:
            return True
    for limit, live in LOOKS:
        for world in BUGS[name]:
            found: dict[str, Any] = explore(SCENARIOS[world], limit=limit, live=live)
            if found["bad"]:
                return True
    return False


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    assert caught(name)


@pytest.mark.parametrize(("world", "seed"), sorted(set(WALKED.values())))
def test_without_its_bug_a_walk_keeps_every_invariant(world: str, seed: int) -> None:
    assert not walk(SCENARIOS[world], seed)["bad"]
