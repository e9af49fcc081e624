"""The planted bugs of the protocol, where each is planted in the shipped code, and what catches it.

``seeds``: worlds that show it, tried first. ``check``: how the violation begins that must be reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.sim.planting import Edit

V = "plaita.backends.verbs."
W = "plaita.server.worker."
By = Literal["world", "lockstep"]


@dataclass(frozen=True)
class Bug:
    """``by``: a simulated world, or the walks that compare the stores with the model."""

    name: str
    edits: tuple[Edit, ...]
    seeds: tuple[int, ...] = ()
    by: By = "world"


def bug(name: str, where: str, old: str, new: str, *seeds: int, by: By = "world") -> Bug:
    return Bug(name, (Edit(where, old, new),), seeds, by)


WAITS = (
    bug("close_no_cas", f"{V}settle:settle", "if not _may_close(rows, run, closing, step.ack):",
        "if not _may_close(rows, run, closing, step.ack) and rows is None:"),
    bug("park_ignores_box", f"{V}settle:_go_on", "if not run.unread:", "if True:"),
    bug("park_before_arm", f"{V}settle:settle", "    return _go_on(rows, run, step)", """\
    armed = {arm.wait_id for arm in step.arms}
    if isinstance(step.next, Park) and run.unread and all(m.wait_id in armed for m in rows.waits.mailbox(run)):
        unread, run.unread = run.unread, 0
        answer = _go_on(rows, run, step)
        run.unread = unread
        return answer
    return _go_on(rows, run, step)"""),
    bug("end_ignores_unread", f"{V}settle:settle", "_with_cuts(rows, run, step) if ends and run.armed else step.closes",
        "step.closes"),
    bug("end_keeps_waits", f"{V}finish:finish", "if run.armed:", "if False:"),
    bug("wake_overwrites", f"{V}wake:answer", 'if wait.state != "open":', 'if wait.state == "closed":'),
    bug("wake_not_due", f"{V}match:_post", "runnable(rows, run, RESUME)", "pass"),
    bug("wake_resets_lease", f"{V}quota:runnable", "if run.nonce is not None or run.blocked:\n        return",
        "if run.nonce is not None or run.blocked:\n        run.due = rows.now\n        return"),
    bug("wait_id_reused", "plaita.engine.steps:wait", "#{frame.visit(cn)}", "#1"),
)  # fmt: skip

CANCELS = (
    bug("cancel_keeps_claim", f"{V}finish:finish", "run.status, run.nonce, run.due, run.ended = ending.status, None, None, rows.now",
        "run.status, run.due, run.ended = ending.status, None, rows.now"),
    bug("cancel_keeps_slot", f"{V}finish:finish", "free(rows, run)", "free(rows, run) if ending.status != 'cancelled' else None"),
    bug("cancel_leaves_waits", f"{V}cancel:cancel", "if run.armed else ():", "if rows is None else ():"),
    bug("claim_ignores_cancel", f"{V}claim:_take", "if run.cancel:", "if False:"),
    bug("settle_ignores_cancel", f"{V}settle:settle", "if run.cancel:", "if False:"),
)  # fmt: skip

RECOMPUTE = Edit(
    f"{W}attempt:Attempt._move",
    "answer = await self._write(step)",
    """answer = None
            while answer is None:
                try:
                    answer = await self.deps.store.settle(step)
                except Unavailable:
                    await asyncio.sleep(0.02)
                    again = advance(machine, self._take_news(), now_ms=self._time.now(), dice=roll())
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
    bug("dup_no_token", f"{V}settle:_repeated",
        "        or run.last_nonce != token.nonce\n        or run.last_generation != token.generation\n", ""),
    Bug("dup_no_digest+recompute_on_unknown", (
        RECOMPUTE, Edit(f"{V}settle:_repeated", "if run.last_digest != step.digest:", "if False:"),
    )),
    Bug("recompute_on_unknown", (RECOMPUTE,)),
    bug("no_token_check", f"{V}settle:_fenced", "run.held_under(step.token) and ", ""),
    bug("no_seq_check", f"{V}settle:_fenced", " and step.seq == run.seq + 1", ""),
    bug("seq_ge", f"{V}settle:_fenced", "step.seq == run.seq + 1", "step.seq > run.seq", by="lockstep"),
    bug("nonce_per_process", f"{W}worker:Worker._claim", 'f"{self.holder}.{new_id()}"', 'f"{self.holder}.0"'),
    bug("claim_ignores_lease", "plaita.backends.memory.runs:MemoryRuns.due", "if at_ms <= self._now",
        "if at_ms <= self._now or self._tables.runs[rid].nonce is not None"),
    bug("renew_takes_back", f"{V}claim:renew", "if run is None or not run.held_under(token):", """if run is not None and run.nonce is not None:
            run.nonce, run.generation = token.nonce, token.generation
        else:"""),
    Bug("lease_from_reply", (
        Edit(f"{W}attempt:Attempt.__init__", "LocalLease(sent + claim.lease_ms)",
             "LocalLease(deps.clock.elapsed_ms() + claim.lease_ms)"),
    )),
    bug("no_local_check", f"{W}attempt:Attempt._begin_allowed", "if self.lease.valid(self.deps.clock):", "if True:"),
    bug("hand_back_keeps_token", f"{V}settle:_go_on", "run.nonce, run.due, run.tries = None, rows.now, max(0, run.tries - 1)",
        "run.due, run.tries = rows.now, max(0, run.tries - 1)"),
    bug("gen_dies_with_row", f"{V}submit:submit", "grave.generation if grave is not None else 0", "0"),
    bug("delete_live", f"{V}delete:delete", "if run.status not in TERMINAL:", "if False:"),
    bug("dedup_any_payload", f"{V}submit:submit", "if rows.record.start(run).start.digest != start.digest:", "if False:"),
)  # fmt: skip

CALLS = (
    bug("effect_before_settle", f"{W}attempt:Attempt._move", "self._timeline.advanced(machine, effects)", """self._timeline.advanced(machine, effects)
            self._calls.allow(effects.calls.values())
            self._begin_allowed()"""),
    Bug("begin_while_settling", (
        Edit(f"{W}attempt:Attempt._move",
             "answer = await self._write(step)", """writing = asyncio.ensure_future(self._write(step))
            await asyncio.wait([writing], timeout=0.03)
            if not writing.done():
                self._calls.allow(effects.calls.values())
                self._begin_allowed()
            answer = await writing"""),
        Edit(f"{W}attempt:Attempt._accepted", "self._calls.allow(effects.calls.values())",
             "self._calls.allow(c for c in effects.calls.values() if c.id not in self._calls._tasks)"),
    )),
    bug("delta_key_dropped", f"{V}settle:settle", "rows.record.put_frames(run, step.delta)",
        "rows.record.put_frames(run, dict(list(step.delta.items())[1:] if len(step.delta) > 2 else step.delta))"),
    bug("stale_arguments", "plaita.core.calls:CallScope.__init__", "call.issued_ms", "frame.run.now_ms"),
    bug("key_with_generation", f"{W}attempt:Attempt.__init__", "claim.header.incarnation, self._timeline",
        'f"{claim.header.incarnation}.{claim.token.generation}", self._timeline'),
    bug("key_without_incarnation", f"{W}attempt:Attempt.__init__", "claim.header.incarnation, self._timeline",
        "claim.header.run_id, self._timeline"),
    bug("retry_count_lost", "plaita.engine.delta:_write", "            frame.attempt,\n", "            1,\n"),
    bug("backoff_not_due", f"{V}settle:_go_on", "run.due, run.retry = due_ms, retry_ms",
        "run.due, run.retry = (None if run.status == 'running' else due_ms), retry_ms"),
)  # fmt: skip

EVENTS = (
    bug("event_consumed_twice", f"{V}match:match", "rows.waits.consume(run, number)", "pass"),
    bug("publish_twice_two_numbers", f"{V}publish:publish", "known = rows.events.find(event_id)", "known = None"),
    bug("uncorrelated_sees_old", f"{V}settle:_arm", "number if arm.key is None else run.born", "run.born"),
    bug("arm_ignores_log", f"{V}settle:_arm", "    match(rows, run, wait)", "    pass"),
    bug("close_ignores_log", f"{V}settle:_may_close", "    match(rows, run, wait)\n", ""),
    bug("fanout_cursor_lost", f"{V}outbox:_carry_on", "rows.ledger.move(entry.number, cursor)",
        "rows.ledger.pop(entry.number)"),
    bug("refused_no_rematch", f"{V}match:withdraw", "            match(rows, run, other)", "            pass"),
)  # fmt: skip

CHILDREN = (
    bug("spawn_by_holder", f"{V}settle:_spawn", "rows.ledger.push(entry)", "pass"),
    bug("child_cancel_silent", f"{V}finish:finish", "if parent is not None:",
        "if parent is not None and ending.status != 'cancelled':", by="lockstep"),
    bug("no_cancel_to_children", f"{V}finish:close", 'rows.ledger.push(OutRow(0, "cancel", RunId(wait.child)))', "pass",
        by="lockstep"),
    bug("child_id_without_incarnation", f"{W}detached:_spawn", "{header.incarnation}", ""),
    bug("outbox_ignores_incarnation", f"{V}outbox:_waiting", "run.incarnation != entry.incarnation or ", "",
        by="lockstep"),
    bug("tombstoned_child_silent", f"{V}outbox:_spawn",
        "_tell_parent(rows, entry, child_answer(start.run_id, refusal))", "pass", by="lockstep"),
)  # fmt: skip

BUDGETS = (
    bug("park_keeps_slot", f"{V}settle:_give_back", "free(rows, run)", "pass"),
    bug("free_no_promote", f"{V}quota:free", "promote(rows, run.tenant)", "pass"),
    bug("resume_over_cap", f"{V}quota:runnable", "if run.slot or has_room", "if run.slot or kind == RESUME or has_room"),
    bug("timer_over_cap", f"{V}claim:_take", "if not run.slot and not has_room(rows, run.tenant):", "if False:"),
    bug("no_crash_budget", f"{V}claim:_take", "if run.tries >= limits.tries_max or run.lost + takeover > limits.lost_max:",
        "if False:"),
    bug("tries_reset_by_claim", f"{V}claim:_take", "run.tries += 1", "run.tries = 1"),
    bug("any_settle_resets", f"{V}settle:settle", "if step.progress or isinstance(step.next, Park | Block):", "if True:"),
    bug("release_uncounted", f"{V}claim:release", "run.due = rows.now", "run.nonce, run.tries, run.due = None, 0, rows.now"),
    bug("no_grace", f"{V}claim:claim", "takeovers = contact(rows) <= rows.now", "takeovers = contact(rows) >= 0"),
)  # fmt: skip

MESSAGES = (
    bug("age_gate_on_live", f"{V}accept:_carry_out", "if not is_live and age_ms", "if age_ms"),
    bug("dead_letter_of_live", f"{V}accept:_carry_out", "return Resumed(wake(rows, run_id, wait_id, data, ACTOR))", """got = wake(rows, run_id, wait_id, data, ACTOR)
            return Resumed(got) if hasattr(got, "run_id") else refused("no_run", "it came too late")"""),
    bug("ack_before_effect", f"{V}accept:_accept", "outcome = _carry_out(rows, message)", "outcome = CancelAccepted(None)"),
)  # fmt: skip

BUGS = (*WAITS, *CANCELS, *FENCES, *CALLS, *EVENTS, *CHILDREN, *BUDGETS, *MESSAGES)

NOT_PLANTED = {
    "token_without_incarnation": "a generation is never given twice while the store keeps its past; the model, which "
    "can rewind its store, catches it",
}
