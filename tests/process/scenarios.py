"""Twenty faults that a durable store must stand, what must be true after each, and the tests that show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REDIS = "tests/conformance/test_redis.py"
FAULTS = "tests/process/test_redis_faults.py"
SCENARIOS = "tests/process/test_redis_scenarios.py"
LINK = "tests/unit/test_redis_link.py"
STORM = "tests/process/test_storm.py::test_a_fleet_in_a_storm_completes_everything_and_only_repeats_what_was_under_way"
WORLDS = "tests/sim/test_world_on_redis.py::test_no_world_on_redis_breaks_a_rule"


@dataclass(frozen=True)
class Scenario:
    """A fault, what holds after it, and the ids of the tests. A contract is named where it runs on Redis."""

    fault: str
    holds: str
    shown_by: tuple[str, ...]


TWENTY: Final = (
    Scenario(
        "a process is killed when a node has run and nothing is stored yet",
        "the node runs again under the same idempotency key; there is one result",
        (
            f"{FAULTS}::test_another_worker_goes_on_when_one_is_killed",
            "tests/process/test_kill.py::test_another_process_goes_on_after_a_kill",
            "tests/unit/test_survives_crashes.py::test_only_the_calls_under_way_are_repeated_and_each_at_most_once_a_kill",
        ),
    ),
    Scenario(
        "a process is killed when the commit is stored and it has not heard so",
        "the node does not run again",
        (
            f"{REDIS}::TestLease::test_what_was_settled_stays_although_nobody_heard_the_answer",
            "tests/sim/test_crash_equality.py::test_a_flow_ends_the_same_however_often_its_process_dies",
        ),
    ),
    Scenario(
        "the answer to a commit is lost and the commit is sent again",
        "it is answered as before; the history has each entry once",
        (
            f"{REDIS}::TestSettle::test_a_repeated_settle_is_answered_from_the_state_of_now",
            f"{REDIS}::TestLease::test_what_was_settled_stays_although_nobody_heard_the_answer",
            f"{FAULTS}::test_connections_that_are_cut_again_and_again_cost_no_execution",
        ),
    ),
    Scenario(
        "the answer to a claim is lost",
        "the same claim again gets what it holds; otherwise it is claimed anew when the lease is over",
        (
            f"{REDIS}::TestLease::test_a_resent_claim_gets_the_same_run_renewed",
            f"{REDIS}::TestLease::test_a_lease_is_over_exactly_at_its_end",
        ),
    ),
    Scenario(
        "a process stands still past its lease and goes on",
        "it can change nothing any more",
        (
            f"{FAULTS}::test_a_worker_that_was_stopped_past_its_lease_does_no_harm",
            f"{REDIS}::TestLease::test_a_takeover_has_a_higher_generation_and_shuts_the_old_holder_out",
        ),
    ),
    Scenario(
        "a lease is over, nobody took the run, and its holder commits or renews",
        "the commit is accepted, the lease revived",
        (
            f"{REDIS}::TestRunCells::test_each_verb_answers_as_the_table_says_in_each_state",
            f"{REDIS}::TestLease::test_renewing_extends_from_now_and_revives_an_expired_lease_nobody_took",
        ),
    ),
    Scenario(
        "one message is delivered many times, to several processes at once",
        "there is one sequence of node starts; nothing is left pending",
        (
            f"{SCENARIOS}::test_one_message_delivered_again_and_again_at_once_is_one_execution",
            f"{REDIS}::TestInboxCells::test_a_second_delivery_is_harmless",
        ),
    ),
    Scenario(
        "the second of two waits is answered while the run is moved for the first",
        "the run does not go to sleep over the answer",
        (f"{REDIS}::TestSettle::test_a_park_with_mail_becomes_a_keep",),
    ),
    Scenario(
        "an event comes before its wait, or while the run is about to wait",
        "the run is resumed by it exactly once",
        (
            f"{REDIS}::TestEvent::test_a_correlated_wait_sees_events_since_its_run_was_submitted",
            f"{REDIS}::TestEvent::test_a_timeout_decided_before_the_event_arrived_loses_to_it",
            "tests/process/test_waits.py::test_an_event_before_its_wait_counts_when_it_is_correlated",
        ),
    ),
    Scenario(
        "an event is published twice; an answer and the deadline come at once",
        "one of them wins, the other is told",
        (
            f"{REDIS}::TestEvent::test_an_event_is_published_once",
            f"{REDIS}::TestSettle::test_the_caller_of_a_wake_after_a_timeout_is_told_so",
            "tests/process/test_race.py::test_an_answer_and_a_deadline_have_one_winner_and_the_loser_is_told",
        ),
    ),
    Scenario(
        "Redis is killed and started again under load, forgets its functions, or reads its data back",
        "every execution completes; nobody is troubled with it",
        (
            f"{FAULTS}::test_a_redis_that_is_killed_and_started_again_costs_no_execution",
            f"{FAULTS}::test_a_redis_that_forgets_its_functions_is_told_them_again",
            f"{LINK}::test_what_passes_is_unavailable_and_the_next_call_goes_through",
            "tests/process/test_redis_outages.py::"
            "test_nobody_takes_over_because_redis_did_not_answer_for_longer_than_a_lease",
        ),
    ),
    Scenario(
        "a fail-over or a restore brings an older state back",
        "a holder that is ahead says so; two holders of one generation are told apart; effects repeat under their keys",
        (
            "tests/process/test_redis_failover.py::"
            "test_what_a_lagging_replica_does_not_know_is_gone_and_the_rest_goes_on_under_the_same_keys",
            f"{SCENARIOS}::test_two_holders_of_one_generation_are_told_apart_after_the_store_was_put_back",
            f"{SCENARIOS}::test_a_holder_that_is_ahead_says_that_the_store_was_put_back"
            "_and_the_effect_is_repeated_under_its_key",
        ),
    ),
    Scenario(
        "a connection breaks at any byte",
        "no reply goes to another call, and no call is lost",
        (
            f"{LINK}::test_whatever_is_cut_or_given_up_a_reply_belongs_to_its_call",
            f"{LINK}::test_a_reply_cut_in_the_middle_is_no_reply",
            f"{LINK}::test_what_had_not_left_when_the_connection_broke_leaves_on_the_next",
        ),
    ),
    Scenario(
        "a node lets no thread of its process run for longer than the lease",
        "there are never the results of two writers",
        (f"{SCENARIOS}::test_a_node_that_lets_no_thread_run_past_its_lease_leads_to_no_second_result",),
    ),
    Scenario(
        "very many starts are due and very many leases are over when new work comes",
        "all of them get their turn, and no claim looks at more than a few",
        (
            f"{SCENARIOS}::test_a_claim_looks_at_a_few_whatever_has_run_out_or_is_due",
            f"{REDIS}::TestClaim::test_half_of_a_claim_is_kept_for_runs_that_nobody_held",
            f"{REDIS}::TestClaim::test_runs_for_idle_processes_keep_no_other_from_a_busy_one",
        ),
    ),
    Scenario(
        "a cancel meets an end, a failure, a claim, a run that waits",
        "there is one last word, and whoever was promised a cancel gets it",
        (
            f"{REDIS}::TestRunCells::test_each_verb_answers_as_the_table_says_in_each_state",
            f"{REDIS}::TestSettle::test_a_promised_cancel_wins_over_the_end",
            f"{REDIS}::TestRunCells::test_no_verb_changes_an_ended_run",
            WORLDS,
        ),
    ),
    Scenario(
        "a message cannot be read, or asks for what nobody knows",
        "it is a dead letter once; its neighbours are carried out, and no run is changed",
        (
            f"{REDIS}::TestInbox::test_one_bad_message_keeps_no_other_back",
            f"{REDIS}::TestInbox::test_a_message_that_makes_no_sense_is_a_dead_letter",
            f"{REDIS}::TestInboxCells::test_each_message_does_what_the_table_says_in_each_state",
        ),
    ),
    Scenario(
        "the first node fails always, or every process that takes the run dies",
        "it ends as an error after exactly its budget, and keeps its pauses over crashes",
        (
            f"{REDIS}::TestClaim::test_a_run_that_makes_no_progress_ends_after_its_budget_of_claims",
            "tests/unit/test_machine_retries.py::"
            "test_an_error_that_would_end_a_durable_run_is_driven_again_five_times_in_all",
            "tests/unit/test_machine_retries.py::test_backoff_survives_a_crash",
            "tests/process/test_worker_processes.py::"
            "test_a_node_that_kills_its_process_ends_its_own_execution_and_no_other",
        ),
    ),
    Scenario(
        "a worker is told to end while a node does not hear it",
        "it ends in its time, gives the run back, and begins nothing",
        (
            f"{SCENARIOS}::test_a_worker_that_is_told_to_end_ends_in_time_although_a_node_does_not_hear_it",
            "tests/process/test_worker_processes.py::test_sigterm_lets_every_child_drain_and_hand_back",
        ),
    ),
    Scenario(
        "memory or disk is full, a file is locked, or its writers die in the middle of a commit",
        "a verb is refused whole or done whole, and the file stays sound",
        (
            f"{FAULTS}::test_a_full_redis_takes_nothing_new_and_lets_what_runs_complete",
            "tests/conformance/test_sqlite_file.py::"
            "test_a_disk_that_is_full_in_the_middle_of_a_tick_refuses_whole_verbs_and_harms_nothing",
            "tests/conformance/test_sqlite_file.py::test_a_store_that_stays_locked_is_unavailable_after_a_while",
            "tests/conformance/test_sqlite_file.py::test_a_failing_verb_harms_no_neighbour_of_its_tick",
            "tests/process/test_store_processes.py::"
            "test_a_file_whose_writers_are_killed_while_they_move_the_log_into_it_is_whole",
        ),
    ),
)

BESIDE: Final = (
    STORM,
    "tests/conformance/test_redis_leaks.py::test_of_executions_that_are_gone_nothing_stays_for_ever",
    f"{SCENARIOS}::test_a_clock_that_is_set_takes_no_execution_from_a_worker_that_lives",
)
"""Tests of everything at once, and of what no scenario names."""
