"""Small worlds, and the planted bugs with the worlds that must catch them."""

# mypy: ignore-errors

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    name: str
    acts: tuple  # ((environment action, how often), ...)
    limits: dict = {}
    holders: int = 2
    timely: bool = False  # healthy holders renew in time; takeovers of them are violations
    slow: bool = False  # answers travel, they do not arrive at once
    fresh_nonce: bool = False  # a nonce per claim (needed when the store may rewind)
    supervised: bool = False  # a supervisor releases a dead worker's leases at once
    max_kills: int = 99
    max_fails: int = 99


A, B, H00 = "a", "b", (0, 0)
PAY = ("publish", "e1", "pay", "k", True)
PAY2 = ("publish", "e2", "pay", "k", True)
BAD = ("publish", "e0", "pay", "k", False)
BAD2 = ("publish", "e3", "pay", "k", False)
CRASH, LOSE, GHOST, DRAIN, FAIL, RELEASE = (
    (("crash",), 1),
    (("lose",), 1),
    (("ghost",), 1),
    (("drain",), 1),
    (("fail",), 1),
    (("release",), 1),
)


def sub(flow: str, rid: str = A, n: int = 1) -> tuple:
    return (("submit", rid, flow), n)


ALL = (
    Scenario("effect", (sub("EE"), CRASH, LOSE)),
    Scenario("ghost", (sub("E"), CRASH, GHOST)),
    Scenario("ghost2", (sub("EE"), GHOST), holders=1),
    Scenario("drain", (sub("E"), DRAIN, GHOST, LOSE)),
    Scenario("retry", (sub("E"), CRASH, (("fail",), 3))),
    Scenario("slow", (sub("E"), CRASH, LOSE), slow=True),
    Scenario("retries", (sub("E"), (("fail",), 3)), holders=1, max_fails=2),
    Scenario("wake", (sub("HT"), (("wake", A, H00, "x"), 1), (("wake", A, H00, "y"), 1), LOSE)),
    Scenario("wakeghost", (sub("HT"), (("wake", A, H00, "x"), 1), GHOST)),
    Scenario("race", (sub("EHT"), (("wake", A, (1, 0), "x"), 1), LOSE)),
    Scenario("racecrash", (sub("EHT"), (("wake", A, (1, 0), "x"), 1), CRASH)),
    Scenario("busy", (sub("E_H"), (("wake", A, (1, 0), "x"), 1), (("cancel", A), 1), LOSE)),
    Scenario("cancel", (sub("EHT"), (("cancel", A), 2), (("wake", A, (1, 0), "x"), 1), CRASH)),
    Scenario("cancelghost", (sub("E"), (("cancel", A), 1), GHOST)),
    Scenario("delete", (sub("E", n=2), (("cancel", A), 1), (("delete", A), 1), (("untomb", A), 1), GHOST, CRASH)),
    Scenario("again", (sub("E", n=2), (("delete", A), 1), (("untomb", A), 1)), holders=1),
    Scenario("conflict", (sub("E"), (("submit", A, "H"), 1))),
    Scenario("loop", (sub("WW"), (PAY, 2), (PAY2, 1), CRASH, LOSE)),
    Scenario("uncorrelated", (sub("UU"), (PAY, 1), (PAY2, 1), CRASH)),
    Scenario("early", (sub("EW"), (PAY, 1), CRASH, LOSE)),
    Scenario("timeout", (sub("WT"), (PAY, 1), sub("WT", B), CRASH)),
    Scenario("fanout", (sub("W"), sub("W", B), (PAY, 1), CRASH)),
    Scenario("twowaits", (sub("W_W"), (PAY, 1), (PAY2, 1), CRASH)),
    Scenario("filter", (sub("X"), (BAD, 1), (PAY, 1), (("wake", A, H00, "x"), 1), CRASH)),
    Scenario("filter2", (sub("X_W"), (BAD, 1), (PAY, 1), CRASH)),
    Scenario("filters", (sub("X_X"), (BAD, 1), (BAD2, 1), (PAY, 1), (PAY2, 1)), holders=1),
    Scenario("child", (sub("P"), (("cancel", A), 1), (("cancel", "a.1/0.0"), 1), LOSE)),
    Scenario("childcut", (sub("PT"), (("wake", A, (1, 0), "x"), 1), (("delete", "a.1/0.0"), 1))),
    Scenario("childtomb", (sub("H", "a.2/0.0"), (("cancel", "a.2/0.0"), 1), (("delete", "a.2/0.0"), 1), sub("P"))),
    Scenario("childagain", (sub("P", n=2), (("cancel", A), 1), (("delete", A), 1), (("untomb", A), 1)), holders=1),
    Scenario(
        "quota",
        (sub("EHT"), sub("H", B), (("wake", A, (1, 0), "x"), 1), (("wake", B, H00, "y"), 1), (("cancel", A), 1)),
        {"cap": 1},
    ),
    Scenario("quotatimer", (sub("HT"), sub("E", B), CRASH), {"cap": 1}),
    Scenario("quotachild", (sub("P"), sub("E", B), FAIL), {"cap": 1}),
    Scenario("kill", (sub("K"),), {"lost": 9}, max_kills=3),
    Scenario("killbusy", (sub("EK"),), {"lost": 2}, max_kills=3),
    Scenario("supervised", (sub("K"), (("cancel", A), 1)), {"lost": 9}, supervised=True, max_kills=3),
    Scenario("outage", (sub("E_H"), (("outage",), 1)), dict(lease=4, grace=2), timely=True),
    Scenario("crashgrace", (sub("E"), CRASH, RELEASE, (("cancel", A), 1), (("outage",), 1)), dict(lease=4, grace=2)),
    Scenario(
        "inbox",
        (
            (("msg", 1, "start", A, "H", False), 2),
            (("msg", 2, "resume", A, H00, True), 2),
            (("msg", 3, "junk", A, None, False), 1),
            (("msg", 4, "cancel", A, None, False), 1),
            (("msg", 5, "resume", "z", H00, False), 1),
        ),
        holders=1,
    ),
    Scenario("elapse", (sub("HT"), (("msg", 1, "timeout", A, H00, False), 2), (("wake", A, H00, "x"), 1), CRASH)),
    Scenario("elapsefilter", (sub("X"), (("msg", 1, "timeout", A, H00, False), 1), (BAD, 1), (PAY, 1)), holders=1),
    Scenario("rewind", (sub("EE", n=2), (("snap",), 1), (("rewind",), 1), GHOST, CRASH), fresh_nonce=True),
    Scenario("rewindagain", (sub("E", n=2), (("snap",), 1), (("rewind",), 1), GHOST), holders=1, fresh_nonce=True),
    Scenario("rewindfail", (sub("E"), (("snap",), 1), (("rewind",), 1), GHOST, FAIL), holders=1, fresh_nonce=True),
    Scenario(
        "rewindwait",
        (sub("EHT"), (("wake", A, (1, 0), "x"), 1), (("snap",), 1), (("rewind",), 1), (("cancel", A), 1)),
        fresh_nonce=True,
    ),
)
SCENARIOS = {s.name: s for s in ALL}

BUGS = {
    "close_no_cas": ("wake", "race"),
    "park_ignores_box": ("busy",),
    "park_before_arm": ("early",),
    "end_ignores_unread": ("race",),
    "end_keeps_waits": ("race", "cancel"),
    "wake_overwrites": ("wake",),
    "wake_not_due": ("wake",),
    "wake_resets_lease": ("busy",),
    "wait_id_reused": ("loop",),
    "cancel_keeps_claim": ("cancel",),
    "cancel_keeps_slot": ("quota",),
    "cancel_leaves_waits": ("cancel",),
    "claim_ignores_cancel": ("cancel", "busy"),
    "settle_ignores_cancel": ("cancel", "busy"),
    "dup_no_token": ("cancelghost", "delete", "rewind"),
    "dup_no_digest+recompute_on_unknown": ("busy", "wake"),
    "recompute_on_unknown": ("busy", "wake"),
    "no_token_check": ("ghost", "effect"),
    "no_seq_check": ("ghost2",),
    "seq_ge": ("rewind",),
    "nonce_per_process": ("rewindfail",),
    "token_without_incarnation": ("rewindagain", "rewind"),
    "claim_ignores_lease": ("effect",),
    "renew_takes_back": ("effect",),
    "lease_from_reply": ("slow",),
    "no_local_check": ("effect",),
    "effect_before_settle": ("effect",),
    "begin_while_settling": ("race", "effect"),
    "delta_key_dropped": ("race", "busy"),
    "stale_arguments": ("effect",),
    "key_with_generation": ("effect",),
    "key_without_incarnation": ("again", "delete"),
    "gen_dies_with_row": ("again", "delete"),
    "delete_live": ("delete",),
    "hand_back_keeps_token": ("drain",),
    "retry_count_lost": ("retries",),
    "backoff_not_due": ("retry",),
    "event_consumed_twice": ("loop",),
    "publish_twice_two_numbers": ("loop",),
    "uncorrelated_sees_old": ("uncorrelated",),
    "arm_ignores_log": ("early",),
    "close_ignores_log": ("timeout",),
    "fanout_cursor_lost": ("fanout",),
    "refused_no_rematch": ("filter", "filter2"),
    "judged_out_of_order": ("filters",),
    "taken_no_rematch": ("filters",),
    "spawn_by_holder": ("child",),
    "child_cancel_silent": ("child",),
    "no_cancel_to_children": ("childcut", "child"),
    "child_id_without_incarnation": ("childagain",),
    "outbox_ignores_incarnation": ("childagain",),
    "tombstoned_child_silent": ("childtomb",),
    "park_keeps_slot": ("quota",),
    "free_no_promote": ("quota",),
    "resume_over_cap": ("quota",),
    "timer_over_cap": ("quotatimer",),
    "no_crash_budget": ("kill",),
    "tries_reset_by_claim": ("kill",),
    "any_settle_resets": ("kill",),
    "release_uncounted": ("supervised",),
    "no_grace": ("outage",),
    "age_gate_on_live": ("inbox",),
    "dead_letter_of_live": ("inbox",),
    "ack_before_effect": ("inbox",),
    "dedup_any_payload": ("conflict",),
}
