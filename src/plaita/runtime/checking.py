"""Is the store healthy, and does everything in it move? What ``plaita doctor`` says."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from plaita.app import strange_variables
from plaita.base.clock import SystemClock
from plaita.control.crew import held_by
from plaita.control.shapes import Shape
from plaita.ports.backend import Backend, Finding
from plaita.ports.processes import Process
from plaita.ports.queries import RunView
from plaita.runtime.driving import PAGE, is_taken
from plaita.settings import Settings

SKEW_MS: Final = 1_000
NAMED_MAX: Final = 5
LATE_S: Final = 60
"""A message of a producer that waits longer than that is worth a look."""


def finding_shape(finding: Finding) -> Shape:
    """As JSON."""
    return {
        "check": finding.name, "status": finding.status, "message": finding.message, "hint": finding.hint or None,
    }  # fmt: skip


async def check(store: Backend, settings: Settings) -> list[Finding]:
    """Every check, in the order an operator reads them."""
    opens, examined = Finding("store", "ok", f"{store.name} opens and answers"), await store.examine()
    if any(finding.name == "keys" for finding in examined):
        # What follows reads those keys.
        return [opens, *examined]
    await store.bury_dead()
    living = await store.living()
    return [
        opens,
        *examined,
        await _clock(store),
        await _audit(store),
        _processes(living),
        *_names(living),
        *_agreement(living),
        *await _claims(store, living),
        *await _executions(store),
        *await _messages(store, settings),
        *_variables(),
    ]


async def _clock(store: Backend) -> Finding:
    skew = abs(await store.now_ms() - SystemClock().now_ms())
    if skew <= SKEW_MS:
        return Finding("clock", "ok", "the store and this machine agree on the time")
    return Finding("clock", "warning", f"the clock of the store differs by {skew / 1000:g} s", "synchronise the clocks")


async def _audit(store: Backend) -> Finding:
    """A store that is at work is read while it changes: what differs once and then not was no difference."""
    found = await store.audit()
    if found:
        again = set(await store.audit())
        found = [issue for issue in found if issue in again]
    if not found:
        return Finding("consistency", "ok", "the indexes agree with the executions")
    text = "; ".join(found[:NAMED_MAX])
    told = f"{len(found)} differences: {text}"
    return Finding("consistency", "failed", told, "keep a copy of the store and report it")


def _processes(living: Sequence[Process]) -> Finding:
    if not living:
        return Finding("processes", "ok", "no process drives executions now")
    words = [f"{p.facts.instance or p.pid} ({p.only or ', '.join(p.queues)})" for p in living]
    count = "1 process drives" if len(living) == 1 else f"{len(living)} processes drive"
    return Finding("processes", "ok", f"{count} executions: {'; '.join(words)}")


def _names(living: Sequence[Process]) -> Iterator[Finding]:
    """A name is that of one process: its record in the registry, and who obeys what is sent to it."""
    named = Counter(process.facts.instance for process in living if process.facts.instance)
    for name, count in sorted(named.items()):
        if count > 1:
            told = f"{count} processes are called {name}: a command for one of them reaches them all"
            yield Finding("processes", "warning", told, "give each a PLAITA_INSTANCE_ID of its own, or none")


def _agreement(living: Sequence[Process]) -> Iterator[Finding]:
    """Processes of one store work under the same settings."""
    said: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for process in living:
        for name, value in process.facts.setup.items():
            said[name][str(value)].append(process.facts.instance)
    for name, values in sorted(said.items()):
        if len(values) > 1:
            words = [f"{value} ({', '.join(sorted(who)[:NAMED_MAX])})" for value, who in sorted(values.items())]
            told = f"the workers do not agree on {name}: {'; '.join(words)}"
            yield Finding("agreement", "warning", told, "start them with the same settings and the same version")


async def _claims(store: Backend, living: Sequence[Process]) -> list[Finding]:
    """Executions held by nobody who is there: their leases end by themselves, and then somebody takes them."""
    known = {process.holder for process in living}
    lost = {holder: count for holder, count in (await held_by(store)).items() if holder not in known}
    if not lost:
        return [Finding("claims", "ok", "every execution that is held is held by a process that lives")]
    told = f"{sum(lost.values())} executions are held by {len(lost)} processes that are not there"
    again = f"their leases end within {store.lease_ms / 1000:g} s and a worker takes them; if not, look here again"
    return [Finding("claims", "warning", told, again)]


async def _executions(store: Backend) -> list[Finding]:
    checks = []
    for status in ("queued", "running", "suspended"):
        views, _ = await store.runs(status=status, limit=PAGE)
        checks += await _stuck(store, status, views)
        blocked = [v for v in views if v.blocked_reason]
        checks += [
            Finding("blocked", "warning", f"{v.run_id}: {v.blocked_reason}", f"plaita explain {v.run_id}")
            for v in blocked[:NAMED_MAX]
        ]
    return checks or [Finding("executions", "ok", "none is stuck")]


async def _stuck(store: Backend, status: str, views: list[RunView]) -> list[Finding]:
    """Executions with something to do now that no live process takes."""
    now, stuck = await store.now_ms(), list[RunView]()
    for view in views:
        is_due = view.due_ms is not None and view.due_ms <= now
        if is_due and not view.blocked_reason and not await is_taken(store, view):
            stuck.append(view)
    return [
        Finding(
            "executions",
            "warning",
            f"{view.run_id} ({view.flow_id}) is {status} with something to do, and no process takes it",
            " or ".join(
                shlex.join(("plaita", *words)) for words in (("wait", view.run_id), ("worker", "--queues", view.queue))
            ),
        )
        for view in stuck[:NAMED_MAX]
    ]


async def _messages(store: Backend, settings: Settings) -> list[Finding]:
    """What producers sent: accepted soon, or a dead letter that somebody looks at."""
    counts, now_ms, found = await store.counts(), await store.now_ms(), list[Finding]()
    age_s = 0 if counts.inbox_since_ms is None else (now_ms - counts.inbox_since_ms) // 1000
    waiting = f"{counts.inbox} messages of producers wait, the oldest for {age_s} s"
    if counts.inbox and age_s > LATE_S:
        taken = f", {counts.pending} of them were taken and not finished" if counts.pending else ""
        again = f"plaita worker; what a dead one took is taken again after {settings.store.claim_min_idle_ms // 1000} s"
        found.append(Finding("messages", "warning", waiting + taken, again))
    else:
        found.append(Finding("messages", "ok", waiting if counts.inbox else "no message of a producer waits"))
    if counts.dead_letters:
        told = f"{counts.dead_letters} dead letters: messages that could not be carried out"
        found.append(Finding("dead letters", "warning", told, "plaita dlq ls shows them with the reason of each"))
    return found


def _variables() -> list[Finding]:
    return [
        Finding("settings", "warning", f"the variable {name} means nothing here", hint)
        for name, hint in strange_variables().items()
    ]
