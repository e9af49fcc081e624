"""Why is it not moving? From facts about an execution to reasons and what can be done, in this order."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from plaita.base.json import Json, decode
from plaita.base.moment import iso
from plaita.control.looking import run_of
from plaita.control.shapes import Shape, task_shape, wait_kind, ways_to_decide
from plaita.ports.backend import Backend
from plaita.ports.inbox import DeadLetter
from plaita.ports.processes import Process
from plaita.ports.queries import RunView, WaitView
from plaita.ports.tasks import Task
from plaita.ports.values import TERMINAL

LETTERS_MAX = 1_000
PATIENCE_MS = 2_000
"""How long something may be due before it counts as left alone, although a live process would take it."""

Command = tuple[str, ...]
"""Words of a command, without ``plaita`` and the store."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. ``code`` is stable, ``text`` for people, ``since_ms`` and ``until_ms`` where there are such times."""

    code: str
    text: str
    since_ms: int | None = None
    until_ms: int | None = None
    do: tuple[Command, ...] = ()

    def as_json(self) -> Shape:
        """``{"code", "text", "since", "until", "do"}``."""
        return {
            "code": self.code,
            "text": self.text,
            "since": iso(self.since_ms),
            "until": iso(self.until_ms),
            "do": [shlex.join(("plaita", *words)) for words in self.do],
        }


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of an execution. ``processes`` are alive; ``letters`` are refused messages that name it.

    ``tasks`` are those of its open waits.
    """

    run: RunView
    waits: tuple[WaitView, ...]
    processes: tuple[Process, ...]
    letters: tuple[DeadLetter, ...]
    now_ms: int
    tasks: tuple[Task, ...] = ()


async def explain(store: Backend, execution_id: str) -> tuple[Facts, list[Reason]]:
    """The facts of now and what they mean. Raises ``NotFound``."""
    run = await run_of(store, execution_id)
    letters, _ = await store.dead_letters(limit=LETTERS_MAX)
    named = tuple(letter for letter in letters if _names(letter, run.run_id))
    waits = await store.waits(run.run_id)
    tasks = [await store.task(wait.task_id) for wait in waits if wait.task_id is not None]
    found = tuple(task for task in tasks if task is not None)
    facts = Facts(run, tuple(waits), tuple(await store.living()), named, await store.now_ms(), found)
    return facts, reasons(facts)


def _names(letter: DeadLetter, run_id: str) -> bool:
    try:
        body = decode(letter.message.body)
    except ValueError:
        return False
    return isinstance(body, dict) and body.get("execution_id") == run_id


def takes(process: Process, run: RunView) -> bool:
    """Would this process claim the execution?"""
    if run.queue not in process.queues:
        return False
    return process.only is None or process.only == run.run_id or run.run_id.startswith(f"{process.only}.")


def reasons(facts: Facts) -> list[Reason]:
    """Every reason, the one that matters most first."""
    found = [_ended(facts.run)] if facts.run.status in TERMINAL else [*_live(facts)]
    return [*found, *(_letter(letter) for letter in facts.letters)]


def _ended(run: RunView) -> Reason:
    match run.status:
        case "completed":
            return Reason(
                "completed", "it has ended with an output", until_ms=run.ended_ms, do=(("inspect", run.run_id),)
            )
        case "cancelled":
            return Reason("cancelled", "it was cancelled", until_ms=run.ended_ms, do=(("logs", run.run_id),))
    error: Json = {} if run.error is None else decode(run.error)
    path = "/".join(map(str, error.get("path") or ()))
    where = f" at {path}" if path else ""
    text = f"it failed{where}: {error.get('message')} ({error.get('kind')}, code {error.get('code')})"
    again = () if not run.closure else (("retry", run.run_id),)
    return Reason("failed", text, until_ms=run.ended_ms, do=(*again, ("logs", run.run_id)))


def _live(facts: Facts) -> Iterator[Reason]:
    run = facts.run
    if run.cancel:
        yield Reason("cancel_requested", "somebody asked to cancel it; whoever holds it ends it at the next step")
    if run.blocked_reason:
        yield _blocked(facts)
    elif run.token is not None:
        yield _held(facts)
        return
    elif run.retry_ms is not None and run.retry_ms > facts.now_ms:
        yield Reason(
            "backing_off", "a node failed and is tried again", until_ms=run.retry_ms, do=(("logs", run.run_id),)
        )
    yield from (_wait(facts, wait) for wait in facts.waits)
    if not run.blocked_reason and not facts.waits:
        yield from _idle(facts)
    elif run.due_ms is not None and run.due_ms <= facts.now_ms:
        yield _due(facts)


def _blocked(facts: Facts) -> Reason:
    run = facts.run
    text = f"nobody can move it: {run.blocked_reason}"
    if run.due_ms is None:
        return Reason("blocked", text, do=(("retry", run.run_id), ("cancel", run.run_id)))
    do: tuple[Command, ...] = (("worker", "--import", "FILE.py"), ("cancel", run.run_id))
    return Reason("blocked", f"{text}; its log (flow_unloadable) names what is missing", do=do)


def _held(facts: Facts) -> Reason:
    run = facts.run
    holder = run.token.nonce.partition(".")[0] if run.token is not None else ""
    process = next((p for p in facts.processes if p.holder == holder), None)
    watch: tuple[Command, ...] = (("logs", run.run_id, "--follow"),)
    if process is not None:
        text = f"process {process.pid} is moving it"
        return Reason("held", text, until_ms=run.due_ms, do=watch)
    if run.due_ms is not None and run.due_ms <= facts.now_ms:
        return Reason("held_by_dead", "the process that held it is gone; the next one that looks takes it over",
                      since_ms=run.due_ms, do=(("wait", run.run_id),))  # fmt: skip
    return Reason("held_elsewhere", "a process holds it that is not alive on this machine; its lease runs out",
                  until_ms=run.due_ms, do=(("wait", run.run_id),))  # fmt: skip


def _wait(facts: Facts, wait: WaitView) -> Reason:
    run, now_ms, kind = facts.run, facts.now_ms, wait_kind(wait)
    ways: dict[str, tuple[str, tuple[Command, ...]]] = {
        "approval": _approval(facts, wait),
        "event": (_event(wait), (("event", "publish", wait.event_type, *_key(wait), "--data", "{}"),)),
        "delay": ("its time", (("wait", run.run_id),)),
        "child": ("a child execution", (("ps",),)),
    }
    what, do = ways.get(kind, ("an answer", (("resume", run.run_id, "--wait", wait.address, "--data", "{}"),)))
    late = wait.deadline_ms is not None and wait.deadline_ms <= now_ms
    more = "; its time is over, and the next process that looks goes on with that" if late else ""
    return Reason(f"waits_for_{kind}", f"{wait.address} waits for {what}{more}", wait.since_ms, wait.deadline_ms, do)


def _approval(facts: Facts, wait: WaitView) -> tuple[str, tuple[Command, ...]]:
    task = next((task for task in facts.tasks if task.task_id == wait.task_id), None)
    if task is None:
        return "an approval", (("inbox",),)
    return f"an approval, task {task.task_id}", tuple(ways_to_decide(task_shape(task)))


def _event(wait: WaitView) -> str:
    return f"the event {wait.event_type}" + ("" if wait.key is None else f" with key {wait.key!r}")


def _key(wait: WaitView) -> Command:
    return () if wait.key is None else ("--key", wait.key)


def _idle(facts: Facts) -> Iterator[Reason]:
    """Nothing holds it and it waits for nobody: for its time, a slot, or a process."""
    run, now = facts.run, facts.now_ms
    if run.status == "queued" and run.not_before_ms is not None and run.not_before_ms > now:
        yield Reason("not_before", "it is not to begin yet", until_ms=run.not_before_ms, do=(("cancel", run.run_id),))
    elif run.due_ms is None:
        yield Reason("queued_for_slot", f"tenant {run.tenant!r} runs as many executions as it may; it is next in line")
    elif run.due_ms <= now:
        yield _due(facts)


def _due(facts: Facts) -> Reason:
    """It could move now. Who would?"""
    run = facts.run
    able = [p for p in facts.processes if takes(p, run)]
    since = run.due_ms
    if not able:
        others = sorted({q for p in facts.processes for q in p.queues})
        there = f"; live processes look at {', '.join(others)}" if others else "; no process looks at this store"
        text = f"nobody looks at the queue {run.queue!r}{there}"
        return Reason("no_worker", text, since, do=(("worker", "--queues", run.queue), ("wait", run.run_id)))
    if since is not None and facts.now_ms - since < PATIENCE_MS:
        return Reason("due", f"process {able[0].pid} is about to take it", since)
    text = f"process {able[0].pid} looks at its queue and does not take it: it may be full, or lack a node type"
    return Reason("left_alone", text, since, do=(("doctor",), ("wait", run.run_id)))


def _letter(letter: DeadLetter) -> Reason:
    text = f"a message for it was refused ({letter.reason}): {letter.detail}"
    return Reason("refused_message", text, since_ms=letter.died_ms, do=(("dlq", "show", letter.letter_id),))
