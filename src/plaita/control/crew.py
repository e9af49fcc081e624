"""Who drives executions: worker processes, and programs that drive one execution."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Final

from plaita.base.moment import iso
from plaita.control.explaining import takes
from plaita.control.shapes import Shape
from plaita.ports.backend import Backend
from plaita.ports.processes import Process
from plaita.ports.queries import RunView
from plaita.ports.values import RunId

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


async def unmoved(store: Backend, shapes: Sequence[Shape]) -> set[str]:
    """Those of some executions that are said to run and that no live process moves or would take."""
    running = [shape["execution_id"] for shape in shapes if shape["status"] == "running"]
    views = [await store.run(RunId(execution_id)) for execution_id in running]
    return {v.run_id for v in views if v is not None and not await is_moved(store, v)}


async def is_moved(store: Backend, view: RunView) -> bool:
    """Does a live process hold an execution, or one beside this one take it?"""
    living = await store.living()
    holder = None if view.token is None else view.token.nonce.rpartition(".")[0]
    me = os.getpid()
    return any(p.holder == holder or (p.pid != me and takes(p, view)) for p in living)


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
