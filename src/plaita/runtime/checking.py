"""Is the store healthy, and does everything in it move? What ``plaita doctor`` says."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from plaita.app import strange_variables
from plaita.base.clock import SystemClock
from plaita.control.shapes import Shape
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.runtime.driving import PAGE, is_taken
from plaita.settings import Settings

SKEW_MS = 1_000
NAMED_MAX = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, how it is, and what to do."""

    name: str
    status: Literal["ok", "warning", "failed"]
    message: str
    hint: str = ""

    def shape(self) -> Shape:
        """As JSON."""
        return {"check": self.name, "status": self.status, "message": self.message, "hint": self.hint or None}


async def check(store: Backend, settings: Settings) -> list[Check]:
    """Every check, in the order an operator reads them."""
    await store.bury_dead()
    return [
        Check("store", "ok", f"{store.name} opens and answers"),
        *await _durability(store, settings),
        await _clock(store),
        await _audit(store),
        await _processes(store),
        *await _executions(store),
        *_variables(),
    ]


async def _durability(store: Backend, settings: Settings) -> list[Check]:
    if risks := await store.risks():
        return [Check("durability", "warning", risk.message, risk.hint) for risk in risks]
    if not store.name.startswith("sqlite:"):
        return [Check("durability", "ok", "an accepted commit survives the death of any process")]
    if settings.store.sqlite_synchronous == "FULL":
        return [Check("durability", "ok", "an accepted commit survives a power cut")]
    return [
        Check(
            "durability",
            "warning",
            "an accepted commit survives the death of any process, not a power cut",
            "PLAITA_SQLITE_SYNCHRONOUS=FULL",
        )
    ]


async def _clock(store: Backend) -> Check:
    skew = abs(await store.now_ms() - SystemClock().now_ms())
    if skew <= SKEW_MS:
        return Check("clock", "ok", "the store and this machine agree on the time")
    return Check("clock", "warning", f"the clock of the store differs by {skew / 1000:g} s", "synchronise the clocks")


async def _audit(store: Backend) -> Check:
    found = await store.audit()
    if not found:
        return Check("consistency", "ok", "the indexes agree with the executions")
    text = "; ".join(found[:NAMED_MAX])
    return Check("consistency", "failed", f"{len(found)} differences: {text}", "keep a copy of the store and report it")


async def _processes(store: Backend) -> Check:
    living = await store.living()
    if not living:
        return Check("processes", "ok", "no process drives executions now")
    words = [f"{p.pid} ({p.only or ', '.join(p.queues)})" for p in living]
    return Check("processes", "ok", f"{len(living)} drive executions: {'; '.join(words)}")


async def _executions(store: Backend) -> list[Check]:
    checks = []
    for status in ("queued", "running", "suspended"):
        views, _ = await store.runs(status=status, limit=PAGE)
        checks += await _stuck(store, status, views)
        blocked = [v for v in views if v.blocked_reason]
        checks += [Check("blocked", "warning", f"{v.run_id}: {v.blocked_reason}") for v in blocked[:NAMED_MAX]]
    return checks or [Check("executions", "ok", "none is stuck")]


async def _stuck(store: Backend, status: str, views: list[RunView]) -> list[Check]:
    """Executions with something to do now that no live process takes."""
    now, stuck = await store.now_ms(), list[RunView]()
    for view in views:
        is_due = view.due_ms is not None and view.due_ms <= now
        if is_due and not view.blocked_reason and not await is_taken(store, view):
            stuck.append(view)
    return [
        Check(
            "executions",
            "warning",
            f"{view.run_id} ({view.flow_id}) is {status} with something to do, and no process takes it",
            f"{shlex.join(('plaita', 'wait', view.run_id))}, or plaita worker",
        )
        for view in stuck[:NAMED_MAX]
    ]


def _variables() -> list[Check]:
    return [
        Check("settings", "warning", f"the variable {name} means nothing here", hint)
        for name, hint in strange_variables().items()
    ]
