"""The planted bugs of the protocol, where each is planted in the shipped code, and what catches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.sim.planting import Edit

V = "plaita.backends.verbs."
W = "plaita.server.worker."
By = Literal["world", "lockstep", "conformance"]


@dataclass(frozen=True)
class Bug:
    """``by``: a simulated world, walks that compare the stores with the model, or a contract of children or filters.

    ``contract`` names that contract.
    """

    name: str
    edits: tuple[Edit, ...]
    by: By = "world"
    contract: str = ""


def bug(name: str, where: str, old: str, new: str, by: By = "world", contract: str = "") -> Bug:
    return Bug(name, (Edit(where, old, new),), by, contract)


WAITS = (
    bug(
        "close_no_cas",
        f"{V}settle:settle",
        "if not _may_close(rows, run, closing, Reading(step.ack, accepted)):",
        "if not _may_close(rows, run, closing, Reading(step.ack, accepted)) and rows is None:",
    ),
    bug("park_ignores_box", f"{V}settle:_go_on", "if not run.unread:", "if True:"),
    bug(
        "park_before_arm",
        f"{V}settle:settle",
        "    return _go_on(rows, run, step)",
        """\
    armed = {arm.wait_id for arm in step.arms}
    if isinstance(step.next, Park) and run.unread and all(m.wait_id in armed for m in rows.waits.mailbox(run)):
        unread, run.unread = run.unread, 0
        answer = _go_on(rows, run, step)
        run.unread = unread
        return answer
    return _go_on(rows, run, step)""",
    ),
    bug(
        "end_ignores_unread",
        f"{V}settle:settle",
        "_with_cuts(rows, run, step) if ends and run.armed else step.closes",
        "step.closes",
    ),
    bug("end_keeps_waits", f"{V}finish:finish", "if run.armed:", "if False:"),
    bug("wake_overwrites", f"{V}wake:_open", 'if wait.state != "open":', 'if wait.state == "closed":'),
    bug("wake_not_due", f"{V}match:post", "runnable(rows, run, RESUME)", "pass"),
    bug(
        "wake_resets_lease",
        f"{V}quota:runnable",
        "if run.nonce is not None or run.blocked:\n        return",
        "if run.nonce is not None or run.blocked:\n        run.due = rows.now\n        return",
    ),
    bug("wait_id_reused", "plaita.engine.steps:wait", "#{frame.visit(cn)}", "#1"),
)

CANCELS = (
    bug(
        "cancel_keeps_claim",
        f"{V}finish:finish",
        "run.status, run.nonce, run.due, run.ended = ending.status, None, None, rows.now",
        "run.status, run.due, run.ended = ending.status, None, rows.now",
    ),
    bug(
        "cancel_keeps_slot",
        f"{V}finish:finish",
        "free(rows, run)",
        "free(rows, run) if ending.status != 'cancelled' else None",
    ),
    bug("cancel_leaves_waits", f"{V}cancel:cancel", "if run.armed else ():", "if rows is None else ():"),
    bug("claim_ignores_cancel", f"{V}claim:_take", "if run.cancel:", "if False:"),
    bug("settle_ignores_cancel", f"{V}settle:settle", "if run.cancel:", "if False:"),
)

RECOMPUTE = Edit(
    f"{W}attempt:Attempt._move",
    "answer = await self._write(step)",
    """answer = None
            while answer is None:
                try:
                    answer = await self.deps.store.settle(step)
                except Unavailable:
                    await asyncio.sleep(0.02)
                    news = self._unread.take(self._calls.carry())
                    again = advance(machine, news, now_ms=self._time.now(), dice=roll())
                    effects.closed += again.closed
                    effects.opened |= again.opened
                    effects.calls |= again.calls
                    effects.ended = again.ended or effects.ended
                    fresh = compose(machine, effects, self._commit(effects, progress=True))
                    step = replace(fresh, delta={**step.delta, **fresh.delta})
            if isinstance(answer, Mismatch):
                self.deps.telemetry.emit(told.SETTLE_REFUSED, run_id=self.header.run_id, answer="mismatch")""",
)
"""On an unknown outcome the holder decides anew under the same number."""

FENCES = (
    bug(
        "dup_no_token",
        f"{V}settle:_repeated",
        "        or run.last_nonce != token.nonce\n        or run.last_generation != token.generation\n",
        "",
    ),
    Bug(
        "dup_no_digest+recompute_on_unknown",
        (
            RECOMPUTE,
            Edit(f"{V}settle:_repeated", "if run.last_digest != step.digest:", "if False:"),
        ),
    ),
    Bug("recompute_on_unknown", (RECOMPUTE,)),
    bug("no_token_check", f"{V}settle:_fenced", "run.held_under(step.token) and ", ""),
    bug("no_seq_check", f"{V}settle:_fenced", " and step.seq == run.seq + 1", ""),
    bug("seq_ge", f"{V}settle:_fenced", "step.seq == run.seq + 1", "step.seq > run.seq", by="lockstep"),
    bug("nonce_per_process", f"{W}intake:Intake._claim", 'f"{self._holder}.{new_id()}"', 'f"{self._holder}.0"'),
    bug(
        "claim_ignores_lease",
        "plaita.backends.memory.runs:MemoryRuns.due",
        "if at_ms <= self.now",
        "if at_ms <= self.now or self._tables.runs[rid].nonce is not None",
    ),
    bug(
        "renew_takes_back",
        f"{V}claim:renew",
        "if run is None or not run.held_under(token):",
        """if run is not None and run.nonce is not None:
            run.nonce, run.generation = token.nonce, token.generation
        else:""",
    ),
    Bug(
        "lease_from_reply",
        (
            Edit(
                f"{W}attempt:Attempt.__init__",
                "LocalLease(sent + claim.lease_ms)",
                "LocalLease(deps.clock.elapsed_ms() + claim.lease_ms)",
            ),
        ),
    ),
    bug("no_local_check", f"{W}attempt:Attempt._begin_allowed", "if self.lease.valid(self.deps.clock):", "if True:"),
    bug(
        "hand_back_keeps_token",
        f"{V}settle:_go_on",
        "run.nonce, run.due, run.tries = None, rows.now, max(0, run.tries - 1)",
        "run.due, run.tries = rows.now, max(0, run.tries - 1)",
    ),
    bug("gen_dies_with_row", f"{V}submit:submit", "grave.generation if grave is not None else 0", "0"),
    bug("delete_live", f"{V}delete:delete", "if run.status not in TERMINAL:", "if False:"),
    bug(
        "dedup_any_payload", f"{V}submit:submit", "if rows.record.start(run).start.digest != start.digest:", "if False:"
    ),
)

CALLS = (
    bug(
        "effect_before_settle",
        f"{W}attempt:Attempt._move",
        "self._timeline.advanced(machine, effects)",
        """self._timeline.advanced(machine, effects)
            self._calls.allow(effects.calls.values())
            self._begin_allowed()""",
    ),
    Bug(
        "begin_while_settling",
        (
            Edit(
                f"{W}attempt:Attempt._move",
                "answer = await self._write(step)",
                """writing = asyncio.ensure_future(self._write(step))
            await asyncio.wait([writing], timeout=0.03)
            if not writing.done():
                self._calls.allow(effects.calls.values())
                self._begin_allowed()
            answer = await writing""",
            ),
            Edit(
                f"{W}attempt:Attempt._accepted",
                "self._calls.allow(effects.calls.values())",
                "self._calls.allow(c for c in effects.calls.values() if c.id not in self._calls._tasks)",
            ),
        ),
    ),
    bug(
        "delta_key_dropped",
        f"{V}settle:settle",
        "rows.record.put_frames(run, step.delta)",
        "rows.record.put_frames(run, dict(list(step.delta.items())[1:] if len(step.delta) > 2 else step.delta))",
    ),
    bug("stale_arguments", "plaita.core.calls:CallScope.__init__", "call.issued_ms", "frame.run.now_ms"),
    bug(
        "key_with_generation",
        f"{W}attempt:Attempt.__init__",
        "claim.header.incarnation, self._timeline",
        'f"{claim.header.incarnation}.{claim.token.generation}", self._timeline',
    ),
    bug(
        "key_without_incarnation",
        f"{W}attempt:Attempt.__init__",
        "claim.header.incarnation, self._timeline",
        "claim.header.run_id, self._timeline",
    ),
    bug("retry_count_lost", "plaita.engine.delta:_write", "        frame.attempt,\n", "        1,\n"),
    bug(
        "backoff_not_due",
        f"{V}settle:_go_on",
        "run.due, run.retry = due_ms, retry_ms",
        "run.due, run.retry = (None if run.status == 'running' else due_ms), retry_ms",
    ),
)

EVENTS = (
    bug("event_consumed_twice", f"{V}match:match", "rows.waits.consume(run, number)", "pass"),
    bug("publish_twice_two_numbers", f"{V}publish:publish", "known = rows.events.find(event_id)", "known = None"),
    bug("uncorrelated_sees_old", f"{V}settle:_arm", "number if arm.key is None else run.born", "run.born"),
    bug("arm_ignores_log", f"{V}settle:_arm", "    match(rows, run, wait)", "    pass"),
    bug(
        "close_ignores_log",
        f"{V}settle:_may_close",
        "    match(rows, run, wait, reading.accepted)\n",
        "",
        by="lockstep",
    ),
    bug(
        "fanout_cursor_lost",
        f"{V}outbox:_carry_on",
        "rows.ledger.move(entry.number, cursor)",
        "rows.ledger.pop(entry.number)",
    ),
    bug("refused_no_rematch", f"{V}match:withdraw", "            match(rows, run, other)", "            pass"),
    bug(
        "judged_out_of_order",
        f"{V}match:match",
        "(wait.by_filter and awaits_verdict(rows, run, wait, number, accepted))",
        "False",
        by="lockstep",
    ),
    bug(
        "taken_no_rematch",
        f"{V}settle:_read_mailbox",
        "            match(rows, run, wait)",
        "            pass",
        "conformance",
        "test_when_a_filter_takes_an_event_the_others_judge_the_next",
    ),
)

CHILDREN = (
    bug("spawn_by_holder", f"{V}settle:_spawn", "rows.ledger.push(entry)", "pass"),
    bug(
        "child_cancel_silent",
        f"{V}finish:finish",
        "if parent is not None:",
        "if parent is not None and ending.status != 'cancelled':",
        by="lockstep",
    ),
    bug(
        "no_cancel_to_children",
        f"{V}finish:close",
        'rows.ledger.push(OutRow(0, "cancel", RunId(wait.child)))',
        "pass",
        by="lockstep",
    ),
    bug("child_id_without_incarnation", f"{W}detached:_spawn", "{header.incarnation}", ""),
    bug(
        "outbox_ignores_incarnation",
        f"{V}outbox:_waiting",
        "run.incarnation != entry.incarnation or ",
        "",
        "conformance",
        "test_another_incarnation_of_the_parent_is_not_told",
    ),
    bug(
        "tombstoned_child_silent",
        f"{V}outbox:_spawn",
        "_tell_parent(rows, entry, child_answer(start.run_id, refusal))",
        "pass",
        "conformance",
        "test_a_child_that_may_not_start_is_answered_for",
    ),
)

BUDGETS = (
    bug("park_keeps_slot", f"{V}settle:_give_back", "free(rows, run)", "pass"),
    bug("free_no_promote", f"{V}quota:free", "promote(rows, run.tenant)", "pass"),
    bug(
        "resume_over_cap", f"{V}quota:runnable", "if run.slot or has_room", "if run.slot or kind == RESUME or has_room"
    ),
    bug("timer_over_cap", f"{V}claim:_take", "if not run.slot and not has_room(rows, run.tenant):", "if False:"),
    bug(
        "no_crash_budget",
        f"{V}claim:_take",
        "if run.tries >= limits.tries_max or run.lost + takeover > limits.lost_max:",
        "if False:",
    ),
    bug("tries_reset_by_claim", f"{V}claim:_take", "run.tries += 1", "run.tries = 1"),
    bug(
        "any_settle_resets", f"{V}settle:settle", "if step.progress or isinstance(step.next, Park | Block):", "if True:"
    ),
    bug(
        "release_uncounted",
        f"{V}claim:release",
        "run.due = rows.now",
        "run.nonce, run.tries, run.due = None, 0, rows.now",
    ),
    bug("no_grace", f"{V}claim:claim", "takeovers = contact(rows) <= rows.now", "takeovers = contact(rows) >= 0"),
)

MESSAGES = (
    bug("age_gate_on_live", f"{V}accept:_carry_out", "if not is_live and age_ms", "if age_ms"),
    bug(
        "dead_letter_of_live",
        f"{V}accept:_aimed",
        "return Resumed(wake(rows, run_id, wait_id, data, ACTOR))",
        """got = wake(rows, run_id, wait_id, data, ACTOR)
            return Resumed(got) if hasattr(got, "run_id") else refused("no_run", "it came too late")""",
    ),
    bug(
        "ack_before_effect",
        f"{V}accept:_accept",
        "outcome = _carry_out(rows, message)",
        "outcome = CancelAccepted(None)",
    ),
)

BUGS = (*WAITS, *CANCELS, *FENCES, *CALLS, *EVENTS, *CHILDREN, *BUDGETS, *MESSAGES)

CAUGHT: dict[str, tuple[str, tuple[int, ...]]] = {
    "close_no_cas": ("I3", (0, 2)),
    "park_ignores_box": ("raised", (27, 81)),
    "park_before_arm": ("raised", (81, 92)),
    "end_ignores_unread": ("I2", (89, 99)),
    "end_keeps_waits": ("I6", (5, 4)),
    "wake_overwrites": ("I3", (2, 6)),
    "wake_not_due": ("audit", (0, 1)),
    "wake_resets_lease": ("I4", (0, 1)),
    "wait_id_reused": ("raised", (1, 7)),
    "cancel_keeps_claim": ("I4", (0, 1)),
    "cancel_keeps_slot": ("I6", (4,)),
    "cancel_leaves_waits": ("I13", (23, 9)),
    "claim_ignores_cancel": ("I13", (14, 29)),
    "settle_ignores_cancel": ("I13", (46, 51)),
    "dup_no_token": ("I7", (13, 43)),
    "dup_no_digest+recompute_on_unknown": ("raised", (49, 108)),
    "recompute_on_unknown": ("I7", (5, 2)),
    "no_token_check": ("I1", (15, 67)),
    "no_seq_check": ("I5", (41, 43)),
    "nonce_per_process": ("I2", (0, 1)),
    "claim_ignores_lease": ("audit", (0, 1)),
    "renew_takes_back": ("I5", (19, 15)),
    "lease_from_reply": ("I1", (0, 1)),
    "no_local_check": ("I1", (15, 19)),
    "hand_back_keeps_token": ("I4", (55, 19)),
    "gen_dies_with_row": ("I5", (0, 1)),
    "delete_live": ("I6", (2, 5)),
    "dedup_any_payload": ("I20", (0, 1)),
    "effect_before_settle": ("R11", (0, 1)),
    "begin_while_settling": ("R11", (2,)),
    "delta_key_dropped": ("I7", (0, 1)),
    "stale_arguments": ("I19", (0, 5)),
    "key_with_generation": ("I19", (0, 1)),
    "key_without_incarnation": ("I19", (0, 1)),
    "retry_count_lost": ("I18", (0, 1)),
    "backoff_not_due": ("audit", (1, 2)),
    "event_consumed_twice": ("I8", (3, 5)),
    "publish_twice_two_numbers": ("I9", (0, 1)),
    "uncorrelated_sees_old": ("I8", (35, 3)),
    "arm_ignores_log": ("audit", (12, 8)),
    "fanout_cursor_lost": ("audit", (45, 30)),
    "refused_no_rematch": ("audit", (98, 104)),
    "spawn_by_holder": ("L2", (5, 6)),
    "child_id_without_incarnation": ("I12", (10, 12)),
    "park_keeps_slot": ("I15", (0, 1)),
    "free_no_promote": ("audit", (0, 1)),
    "resume_over_cap": ("audit", (0, 1)),
    "timer_over_cap": ("audit", (0, 2)),
    "no_crash_budget": ("I16", (14, 15)),
    "tries_reset_by_claim": ("I16", (0, 2)),
    "any_settle_resets": ("I16", (0, 1)),
    "release_uncounted": ("I16", (3, 5)),
    "no_grace": ("I17", (0, 8)),
    "age_gate_on_live": ("I11", (4, 5)),
    "dead_letter_of_live": ("I11", (3, 6)),
    "ack_before_effect": ("I11", (0, 1)),
}
"""The rule that each bug breaks first in the worlds of these seeds.

``audit``: the store's own auditor; ``raised``: a verb or a worker refuses to go on.
"""

MET = {"judged_out_of_order": 18, "close_ignores_log": 17}
"""Seeds of the walks that meet a bug which few walks meet; they are gone first."""

NOT_PLANTED = {
    "token_without_incarnation": "a generation is never given twice while the store keeps its past; the model, which "
    "can rewind its store, catches it",
}
