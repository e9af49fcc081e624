"""The planted bugs of the protocol that touch a function of Redis, and some of what messages ask: where each is
planted, and the walk that shows it.

The product has no switches for this: the text of a file is changed for the length of a block, and the library made of
it has another name than the shipped one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from plaita.backends.redis.scripts import sources
from plaita.testing.conformance import (
    ChildContract,
    EventContract,
    FilterContract,
    NeededContract,
    RunCells,
    UnusedContract,
)


@dataclass(frozen=True)
class ScriptBug:
    """In the file ``lua/FILE.lua`` the text ``old``, which is there once, becomes ``new``."""

    name: str
    file: str
    old: str
    new: str


@contextmanager
def planted_in_script(bug: ScriptBug) -> Iterator[None]:
    """Make the edit, and take it back."""
    files = sources()
    shipped = files[bug.file]
    assert shipped.text.count(bug.old) == 1, f"{bug.file}.lua has {shipped.text.count(bug.old)} times: {bug.old}"
    files[bug.file] = replace(shipped, text=shipped.text.replace(bug.old, bug.new))
    try:
        yield
    finally:
        files[bug.file] = shipped


SCRIPT_BUGS = (
    ScriptBug(
        "close_no_cas",
        "settling",
        "if not may_close(run, closing, step.ack, accepted) then",
        "if not may_close(run, closing, step.ack, accepted) and false then",
    ),
    ScriptBug(
        "park_ignores_box", "settling", "step.kind == 'park' and run.unread == 0 then", "step.kind == 'park' then"
    ),
    ScriptBug(
        "park_before_arm",
        "settling",
        "  for _, arm in ipairs(step.arms) do arm_wait(run, arm) end",
        """  local unread = run.unread
  for _, arm in ipairs(step.arms) do arm_wait(run, arm) end
  if step.kind == 'park' and unread == 0 then
    give_back(run)
    return {'settled', {step.seq, 0, 0, now, {}}}
  end""",
    ),
    ScriptBug(
        "end_ignores_unread",
        "settling",
        "local closes = step.kind == 'end' and with_cuts(run, step) or step.closes",
        "local closes = step.closes",
    ),
    ScriptBug(
        "end_keeps_waits",
        "finish",
        "    close(run, wait, wait.state == 'open' and {kind = 'cancel'} or false)",
        "    if wait.state ~= 'open' then close(run, wait, false) end",
    ),
    ScriptBug("wake_overwrites", "answering", "if wait.state ~= 'open' then", "if wait.state == 'closed' then"),
    ScriptBug("wake_not_due", "match", "  runnable(run, RESUME)\nend", "end"),
    ScriptBug(
        "wake_resets_lease",
        "quota",
        "if run.nonce or run.blocked then return end",
        "if run.nonce or run.blocked then run.due = now return end",
    ),
    ScriptBug(
        "cancel_keeps_claim",
        "finish",
        "run.status, run.nonce, run.due, run.ended = ending.status, false, false, now",
        "run.status, run.due, run.ended = ending.status, false, now",
    ),
    ScriptBug(
        "cancel_keeps_slot",
        "finish",
        "  free(run)\n",
        "  if ending.status ~= 'cancelled' then free(run) end\n",
    ),
    ScriptBug(
        "cancel_leaves_waits", "cancelling", "if wait.state == 'open' then close(", "if wait.state == '' then close("
    ),
    ScriptBug("claim_ignores_cancel", "claim", "if run.cancel or take_flag(run) then", "if false then"),
    ScriptBug("settle_ignores_cancel", "settling", "  if run.cancel then\n", "  if false then\n"),
    ScriptBug(
        "dup_no_token",
        "settling",
        "step.seq == run.seq and run.last_nonce == step.nonce and run.last_generation == step.generation\n",
        "step.seq == run.seq\n",
    ),
    ScriptBug("dup_no_digest", "settling", "if run.last_digest ~= step.digest then", "if false then"),
    ScriptBug(
        "no_token_check",
        "settling",
        "if held_under(run, step.nonce, step.generation, step.incarnation) and run.status == 'running'\n    and",
        "if run.status == 'running'\n    and",
    ),
    ScriptBug("no_seq_check", "settling", "    and step.seq == run.seq + 1 then", "    then"),
    ScriptBug("seq_ge", "settling", "step.seq == run.seq + 1", "step.seq >= run.seq + 1"),
    ScriptBug("claim_ignores_lease", "claim", "place, '-inf', now, 'LIMIT'", "place, '-inf', '+inf', 'LIMIT'"),
    ScriptBug(
        "renew_takes_back",
        "renew",
        "local held = run and held_under(",
        "local held = run and run.nonce or run and held_under(",
    ),
    ScriptBug(
        "hand_back_keeps_token", "settling", "run.nonce, run.due, run.tries = false, now,", "run.due, run.tries = now,"
    ),
    ScriptBug("gen_dies_with_row", "rows", "generation = tonumber(grave or 0)", "generation = 0"),
    ScriptBug("delete_live", "delete", "if not TERMINAL[run.status] then", "if false then"),
    ScriptBug("dedup_any_payload", "starting", "if run.digest ~= kept_digest(digest) then", "if false then"),
    ScriptBug("delta_key_dropped", "framing", "for i = 1, #put, 2 do", "for i = 3, #put, 2 do"),
    ScriptBug(
        "backoff_not_due",
        "settling",
        "run.due, run.retry = tonumber(step.a) or false,",
        "run.due, run.retry = run.status == 'suspended' and tonumber(step.a) or false,",
    ),
    ScriptBug("event_consumed_twice", "match", "  consume(run, number, 1)\n", ""),
    ScriptBug("publish_twice_two_numbers", "publishing", "  if known then\n", "  if false then\n"),
    ScriptBug("uncorrelated_sees_old", "settling", "low = arm.key and run.born or number", "low = run.born"),
    ScriptBug(
        "arm_ignores_log",
        "settling",
        "  if arm.task then open_task(run, arm) end\n  match(run, wait)\n",
        "  if arm.task then open_task(run, arm) end\n",
    ),
    ScriptBug(
        "close_ignores_log",
        "settling",
        "  match(run, wait, accepted)\n  return wait.state == 'open'",
        "  return wait.state == 'open'",
    ),
    ScriptBug("fanout_cursor_lost", "outbox", "    if cursor then\n", "    if false then\n"),
    ScriptBug(
        "refused_no_rematch",
        "match",
        "if other ~= wait or refused then match(run, other) end",
        "if other == nil then return end",
    ),
    ScriptBug(
        "judged_out_of_order",
        "match",
        "if wait.by_filter and awaits_verdict(run, wait, number, accepted or NONE) then",
        "if false then",
    ),
    ScriptBug("taken_no_rematch", "settling", "  if next(accepted) then\n", "  if false then\n"),
    ScriptBug("spawn_by_holder", "settling", "  push_out({'spawn', run.id", "  tostring({'spawn', run.id"),
    ScriptBug(
        "child_cancel_silent", "finish", "  if parent then\n", "  if parent and ending.status ~= 'cancelled' then\n"
    ),
    ScriptBug("no_cancel_to_children", "finish", "if UNANSWERED[by.kind] and wait.child then", "if false then"),
    ScriptBug(
        "outbox_ignores_incarnation",
        "outbox",
        "if not run or run.incarnation ~= incarnation or run.armed == 0",
        "if not run or run.armed == 0",
    ),
    ScriptBug(
        "tombstoned_child_silent", "outbox", "    if not run then tell_parent(", "    if false then tell_parent("
    ),
    ScriptBug(
        "park_keeps_slot",
        "settling",
        "  run.status = waiting and 'suspended' or 'running'\n  free(run)\n",
        "  run.status = waiting and 'suspended' or 'running'\n",
    ),
    ScriptBug(
        "free_no_promote", "quota", "    dequeue(run)\n  end\n  promote(run.tenant)\n", "    dequeue(run)\n  end\n"
    ),
    ScriptBug(
        "resume_over_cap",
        "quota",
        "if run.slot or has_room(run.tenant) then",
        "if run.slot or kind == RESUME or has_room(run.tenant) then",
    ),
    ScriptBug("timer_over_cap", "claim", "if not run.slot and not has_room(run.tenant) then", "if false then"),
    ScriptBug(
        "no_crash_budget",
        "claim",
        "if run.tries >= LIMITS.tries_max or run.lost + takeover > LIMITS.lost_max then",
        "if false then",
    ),
    ScriptBug("tries_reset_by_claim", "claim", "run.tries = run.tries + 1", "run.tries = 1"),
    ScriptBug(
        "any_settle_resets",
        "settling",
        "if step.progress or step.kind == 'park' or step.kind == 'block' then run.tries = 0 end",
        "run.tries = 0",
    ),
    ScriptBug("release_uncounted", "release", "  run.due = now\n", "  run.nonce, run.tries, run.due = false, 0, now\n"),
    ScriptBug("age_gate_on_live", "accept", "local refusal = not live and gate()", "local refusal = gate()"),
    ScriptBug(
        "dead_letter_of_live",
        "accept",
        "  return {'resumed', answer(run, args.wait, args.data, {kind",
        """  if args.wait ~= '' and not find_open(run, args.wait) then return refused('no_run') end
  return {'resumed', answer(run, args.wait, args.data, {kind""",
    ),
    ScriptBug("ack_before_effect", "accept", "local outcome = carry_out()", "local outcome = {'passed', 'acked'}"),
    ScriptBug(
        "elapse_answered",
        "answering",
        "local function elapse(run, wait_id)\n  local wait, refusal = find_open(run, wait_id)\n",
        """local function elapse(run, wait_id)
  local wait, refusal = find_open(run, wait_id)
  if refusal and refusal[1] == 'already_resolved' then wait = find_wait(run, wait_id) end
""",
    ),
    ScriptBug(
        "elapse_resolves",
        "answering",
        "post(run, 'timeout', wait, 'null', 0)",
        "resolve(run, wait, {kind = 'timeout'}, 'null')",
    ),
    ScriptBug(
        "elapse_of_another",
        "answering",
        "post(run, 'timeout', wait, 'null', 0)",
        "post(run, 'timeout', live_waits(run)[1], 'null', 0)",
    ),
    ScriptBug("kind_goes_with_the_first", "starts", "-1) == 0 then", "-1) >= 0 then"),
    ScriptBug("kind_outlives_the_last", "burying", "  let_go_kind(run.kind)\n", ""),
    ScriptBug(
        "promise_keeps_no_kind",
        "settling",
        "local kind = keep_kind(cjson.decode(child.facts))",
        "local kind = false",
    ),
    ScriptBug("promise_keeps_its_kind", "outbox", "  if at[9] then let_go_kind(at[9]) end\n", ""),
    ScriptBug("start_is_no_use", "starts", "  use_closure(facts.closure)\n", ""),
    ScriptBug("storing_is_no_use", "put_closure", "'GT', now", "'NX', now"),
    ScriptBug("started_undefined", "starting", "if start.closure and redis", "if false and redis"),
    ScriptBug("replaced_at_once", "publish_flow", "if replaced then use_closure(", "if false then use_closure("),
    ScriptBug("deferred_undecided", "deferring", "  match(run, find_wait(run, live_ids(run)[1]))\n", ""),
    ScriptBug(
        "deferred_until_claimed",
        "rows",
        "  if run.status == 'suspended' and not run.nonce then DEFERRED",
        "  if args.nonce and not run.nonce then DEFERRED",
    ),
    ScriptBug("deferred_for_ever", "rows", "    put_member(deferred_key(), run.id, false)\n", ""),
    ScriptBug("deferred_not_due", "deferring", "DEFERRED.add(notes.coming, due_key", "DEFERRED.add({}, due_key"),
    ScriptBug("deferred_listens", "deferring", "  if not wait[AT.wait.by_filter] then", "  if false then"),
    ScriptBug("deferred_filter_is_deaf", "deferring", "  if not wait[AT.wait.by_filter] then", "  if true then"),
    ScriptBug("deferred_of_another_time", "deferring", "  now, stamp = run.was.due, false\n", ""),
    ScriptBug("deferred_twice", "publishing", "not deferred[at[1]] and not DEFERRED.note(", "not DEFERRED.note("),
    ScriptBug("no_grace", "claim", "local takeovers = contact() <= now", "local takeovers = contact() >= 0"),
)

WALKS: dict[str, tuple[int | None, int, bool, int]] = {
    "cancel_leaves_waits": (1, 0, True, 1),
    "age_gate_on_live": (None, 0, True, 0),
    "dead_letter_of_live": (None, 0, True, 1),
    "ack_before_effect": (None, 0, True, 0),
    "close_no_cas": (None, 0, True, 0),
    "park_ignores_box": (None, 0, True, 0),
    "park_before_arm": (None, 0, True, 0),
    "end_ignores_unread": (1, 2, True, 0),
    "end_keeps_waits": (None, 2, True, 4),
    "wake_overwrites": (None, 0, True, 1),
    "wake_not_due": (None, 0, True, 0),
    "wake_resets_lease": (None, 0, True, 0),
    "cancel_keeps_claim": (1, 0, True, 0),
    "cancel_keeps_slot": (None, 0, True, 1),
    "settle_ignores_cancel": (1, 2, True, 1),
    "dup_no_token": (1, 0, True, 0),
    "dup_no_digest": (None, 0, True, 0),
    "no_token_check": (None, 0, True, 0),
    "no_seq_check": (None, 0, True, 0),
    "seq_ge": (None, 0, True, 0),
    "claim_ignores_lease": (None, 0, True, 0),
    "renew_takes_back": (None, 0, True, 1),
    "hand_back_keeps_token": (None, 0, True, 0),
    "gen_dies_with_row": (2, 0, False, 0),
    "delete_live": (None, 0, True, 0),
    "dedup_any_payload": (None, 2, True, 0),
    "backoff_not_due": (None, 0, True, 1),
    "event_consumed_twice": (None, 0, True, 0),
    "publish_twice_two_numbers": (None, 0, True, 0),
    "uncorrelated_sees_old": (None, 0, True, 0),
    "arm_ignores_log": (None, 0, True, 0),
    "close_ignores_log": (None, 0, False, 17),
    "refused_no_rematch": (1, 0, True, 1),
    "spawn_by_holder": (None, 0, True, 0),
    "child_cancel_silent": (1, 0, True, 0),
    "no_cancel_to_children": (None, 2, True, 0),
    "park_keeps_slot": (None, 0, True, 0),
    "free_no_promote": (1, 0, True, 0),
    "resume_over_cap": (1, 0, True, 0),
    "timer_over_cap": (2, 0, True, 11),
    "no_crash_budget": (1, 0, True, 0),
    "tries_reset_by_claim": (None, 0, True, 0),
    "any_settle_resets": (None, 0, True, 0),
    "release_uncounted": (None, 0, True, 0),
    "no_grace": (1, 2, True, 0),
    "elapse_answered": (None, 0, True, 1),
    "elapse_resolves": (None, 0, True, 0),
    "elapse_of_another": (None, 0, True, 0),
}
"""Cap, grace, whether ids of deleted runs stay taken, and seed of a walk on which Redis leaves the model's way."""

CROWDS = {
    "deferred_undecided": 0,
    "deferred_until_claimed": 0,
    "deferred_for_ever": 1,
    "deferred_not_due": 0,
    "deferred_listens": 0,
    "deferred_filter_is_deaf": 0,
}
"""Seeds of walks with many who wait for one event."""

WORLDS = {"delta_key_dropped": 0}
"""Seeds of worlds whose auditor sees it."""

CONTRACTS = {
    "claim_ignores_cancel": (
        RunCells,
        "test_each_verb_answers_as_the_table_says_in_each_state",
        ("claim", "held_over_cancelled"),
    ),
    "outbox_ignores_incarnation": (ChildContract, "test_another_incarnation_of_the_parent_is_not_told", ()),
    "tombstoned_child_silent": (ChildContract, "test_a_child_that_may_not_start_is_answered_for", ()),
    "judged_out_of_order": (
        FilterContract,
        "test_every_filter_judges_every_event_whoever_refuses_first",
        (),
    ),
    "taken_no_rematch": (FilterContract, "test_when_a_filter_takes_an_event_the_others_judge_the_next", ()),
    "kind_goes_with_the_first": (NeededContract, "test_one_of_two_runs_keeps_it_alone", ()),
    "kind_outlives_the_last": (NeededContract, "test_one_of_two_runs_keeps_it_alone", ()),
    "promise_keeps_no_kind": (
        NeededContract,
        "test_a_child_that_is_promised_keeps_it_after_its_parent_is_gone",
        (),
    ),
    "promise_keeps_its_kind": (NeededContract, "test_a_child_that_may_not_start_keeps_nothing", ()),
    "start_is_no_use": (UnusedContract, "test_a_start_without_storing_it_makes_it_young_again", ()),
    "started_undefined": (UnusedContract, "test_a_start_brings_its_definition", ()),
    "storing_is_no_use": (UnusedContract, "test_one_that_is_stored_again_is_young_again", ()),
    "replaced_at_once": (
        UnusedContract,
        "test_whoever_looked_a_version_up_may_still_start_it_after_another_took_its_place",
        (),
    ),
    "deferred_of_another_time": (EventContract, "test_what_a_later_chunk_reached_is_shown_as_of_then", ()),
    "deferred_twice": (
        EventContract,
        "test_a_later_event_does_not_set_back_what_an_earlier_one_made_due",
        (),
    ),
    "fanout_cursor_lost": (EventContract, "test_a_fan_out_beyond_the_first_chunk_is_carried_on_by_claims", ()),
}
"""Tests of the conformance suite that fail, with their parameters."""

NOT_IN_SCRIPTS = {
    "wait_id_reused": "the engine names waits",
    "recompute_on_unknown": "the worker decides",
    "dup_no_digest+recompute_on_unknown": "its half in the functions is dup_no_digest",
    "nonce_per_process": "the worker makes nonces",
    "token_without_incarnation": "only a store that forgets gives a generation twice",
    "lease_from_reply": "the worker counts its lease",
    "no_local_check": "the worker counts its lease",
    "effect_before_settle": "the worker performs effects",
    "begin_while_settling": "the worker performs effects",
    "stale_arguments": "the worker evaluates arguments",
    "key_with_generation": "the worker makes keys",
    "key_without_incarnation": "the worker makes keys",
    "retry_count_lost": "the engine writes frames",
    "child_id_without_incarnation": "the worker names children",
}
"""Planted bugs of the protocol that no function of Redis can have."""
