"""Who drives executions: worker processes, and programs that drive one execution."""

from __future__ import annotations

from collections import Counter
from typing import Final

from plaita.base.moment import iso
from plaita.control.shapes import Shape
from plaita.ports.backend import Backend
from plaita.ports.processes import Process

PAGE: Final = 1_000


async def list_workers(store: Backend) -> Shape:
    """``{"items": [{"holder", "instance", "host", "pid", "state", "queues", "only", "running", "concurrency", "since",
    "last_heartbeat", "version"}, …], "next": null}``, in the order in which they came.

    ``running`` are the executions the store says it holds. ``instance`` is null for a program that drives executions
    beside its own work, ``only`` the execution that a process is bound to, or null.
    """
    await store.bury_dead()
    held, living = await held_by(store), await store.living()
    return {"items": [_shape(process, held[process.holder]) for process in living], "next": None}


async def held_by(store: Backend) -> Counter[str]:
    """How many executions each holder has; holders that no longer live are among them."""
    found: Counter[str] = Counter()
    cursor = ""
    while True:
        views, cursor = await store.runs(status="running", limit=PAGE, cursor=cursor)
        found.update(view.token.nonce.rpartition(".")[0] for view in views if view.token is not None)
        if not cursor:
            return found


def _shape(process: Process, running: int) -> Shape:
    facts = process.facts
    return {
        "holder": process.holder,
        "instance": facts.instance or None,
        "host": facts.host or None,
        "pid": process.pid,
        "state": facts.state,
        "queues": list(process.queues),
        "only": process.only,
        "running": running,
        "concurrency": facts.concurrency or None,
        "since": iso(process.started_ms),
        "last_heartbeat": iso(facts.beat_ms or process.started_ms),
        "version": facts.version or None,
    }
