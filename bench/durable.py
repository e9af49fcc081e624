"""Durable runs on SQLite: executions and effectful steps a second, latency of a lone step, memory of suspended runs.

The floor of a step is a transaction of the same rows on the same file, prepared and without any logic.
"""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import statistics
import tempfile
import time
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from bench.nodes import Touch
from plaita import Flow
from plaita.app import worker_options
from plaita.backends.sqlite import SqliteBackend
from plaita.control.starting import StartOptions, start_flow
from plaita.engine.delta import take_delta
from plaita.engine.machine import Conditions, advance, start
from plaita.server.worker import Worker
from plaita.settings import Settings

IN_FLIGHT = 100
FIVE_RUNS = 1_000
STEPS, STEP_RUNS = 50, 100
LONE_STEPS = 1_600
SYNC: tuple[Literal["FULL", "NORMAL"], ...] = ("FULL", "NORMAL")


def effects(count: int) -> Flow:
    """start -> count effects -> end."""
    nodes: list[dict[str, Any]] = [{"type": "start", "id": "s", "next": "n1"}]
    for i in range(1, count + 1):
        nodes.append({"type": "touch", "id": f"n{i}", "next": f"n{i + 1}" if i < count else "e"})
    nodes.append({"type": "end", "id": "e", "output": f"$NODE.n{count}"})
    return Flow.model_validate({"flow_id": f"effects{count}", "nodes": nodes})


def pure_five() -> Flow:
    """Five nodes, no effect."""
    from bench.flows import chain

    return Flow.model_validate(chain(3))


async def _drive(path: Path, sync: Literal["FULL", "NORMAL"], flow: Flow, runs: int, in_flight: int) -> float:
    """Seconds from the first claim until all runs have ended or wait."""
    store = SqliteBackend(path, synchronous=sync)
    for i in range(runs):
        await start_flow(store, flow, {"x": 0}, StartOptions(execution_id=f"r{i}"))
    options = replace(worker_options(Settings()), concurrency=in_flight)
    worker = Worker(store, options, renewal_opener=lambda: SqliteBackend(path, synchronous=sync))
    stop = asyncio.Event()
    started = time.perf_counter()
    working = asyncio.create_task(worker.run(stop))
    while True:
        await worker.changed(1_000)
        if worker.running == 0:
            left, _ = await store.runs(status="queued", limit=1)
            running, _ = await store.runs(status="running", limit=1)
            if not left and not running:
                break
    elapsed = time.perf_counter() - started
    stop.set()
    await working
    failed, _ = await store.runs(status="error", limit=1)
    assert not failed
    await store.close()
    return elapsed


def _measure(sync: Literal["FULL", "NORMAL"], flow: Flow, runs: int, in_flight: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_drive(Path(folder) / "bench.db", sync, flow, runs, in_flight))


def _alone(sync: Literal["FULL", "NORMAL"]) -> tuple[float, float]:
    """Seconds from effect to effect of one execution, p50: while the write-ahead log grows, and once it is reused."""
    Touch.times.clear()
    _measure(sync, effects(LONE_STEPS), 1, 1)
    steps = [after - before for before, after in pairwise(Touch.times)]
    return statistics.median(steps[: LONE_STEPS // 4]), statistics.median(steps[-LONE_STEPS // 4 :])


def _floor(sync: str, steps: int, group: int) -> float:
    """Bare transactions: a header update, two frame rows and two history rows a step, ``group`` steps a commit."""
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA synchronous={sync}")
        db.execute("CREATE TABLE run (id INTEGER PRIMARY KEY, seq INTEGER, due INTEGER, last TEXT)")
        db.execute("CREATE TABLE frame (id INTEGER, key TEXT, value BLOB, PRIMARY KEY (id, key)) WITHOUT ROWID")
        db.execute("CREATE TABLE history (id INTEGER, seq INTEGER, data BLOB, PRIMARY KEY (id, seq)) WITHOUT ROWID")
        db.executemany("INSERT INTO run VALUES (?, 0, 0, '')", [(i,) for i in range(group)])
        value = b'[null,null,null,"n17","c","n16",null,0,[null,null,null,null],"@n17#1",[1,0.5]]'
        started = time.perf_counter()
        for step in range(steps // group):
            db.execute("BEGIN IMMEDIATE")
            for i in range(group):
                db.execute("UPDATE run SET seq=?, due=?, last=? WHERE id=? AND seq=?", (step + 1, step, "d", i, step))
                db.execute("INSERT OR REPLACE INTO frame VALUES (?, 'f', ?)", (i, value))
                db.execute("INSERT OR REPLACE INTO frame VALUES (?, ?, ?)", (i, f"n{step}", value))
                db.execute("INSERT INTO history VALUES (?, ?, ?)", (i, 2 * step, value))
                db.execute("INSERT INTO history VALUES (?, ?, ?)", (i, 2 * step + 1, value))
            db.execute("COMMIT")
        elapsed = time.perf_counter() - started
        db.close()
        return elapsed


def _suspended_bytes(count: int) -> tuple[float, float]:
    """Bytes a waiting execution takes: in the store, and in the memory of a process that holds one."""
    nodes = [
        {"type": "start", "id": "s", "next": "w"},
        {"type": "event", "id": "w", "event_type": "go", "next": "e"},
        {"type": "end", "id": "e"},
    ]
    flow = Flow.model_validate({"flow_id": "waits", "nodes": nodes})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        asyncio.run(_drive(path, "NORMAL", flow, count, IN_FLIGHT))
        db = sqlite3.connect(path)
        db.execute("VACUUM")
        stored = path.stat().st_size / count
        db.close()
    tracemalloc.start()
    held = [start(flow.program, Conditions(f"r{i}"), {}, now_ms=0) for i in range(count)]
    for machine in held:
        advance(machine, [], now_ms=0)
        take_delta(machine)
    kept = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    return stored, kept


def run(rounds: int = 9) -> list[str]:
    """The lines of the report."""
    lines = [f"durable on SQLite, history on (median of {rounds}, interleaved)"]
    for sync in SYNC:
        seconds: dict[str, list[float]] = {"five": [], "steps": [], "bare": [], "first": [], "later": [], "lone": []}
        for _ in range(rounds):
            seconds["five"].append(_measure(sync, pure_five(), FIVE_RUNS, IN_FLIGHT))
            seconds["steps"].append(_measure(sync, effects(STEPS), STEP_RUNS, IN_FLIGHT))
            seconds["bare"].append(_floor(sync, STEPS * STEP_RUNS, IN_FLIGHT))
            first, later = _alone(sync)
            seconds["first"].append(first)
            seconds["later"].append(later)
            seconds["lone"].append(_floor(sync, LONE_STEPS, 1) / LONE_STEPS)
        s = {name: statistics.median(values) for name, values in seconds.items()}
        total = STEPS * STEP_RUNS
        lines += [
            f"  {sync:6} five-node executions, {IN_FLIGHT} in flight: {FIVE_RUNS / s['five']:8.0f} /s",
            f"  {sync:6} effectful steps,      {IN_FLIGHT} in flight: {total / s['steps']:8.0f} /s   "
            f"bare transactions {total / s['bare']:8.0f} /s   {s['steps'] / s['bare']:4.1f}x the floor",
            f"  {sync:6} one execution alone: {1e6 * s['later']:6.0f} us a step, p50 "
            f"({1e6 * s['first']:.0f} while the log of a new store grows)   floor {1e6 * s['lone']:6.0f} us",
        ]
    stored, kept = _suspended_bytes(2_000)
    lines.append(
        f"  a suspended execution: {stored:.0f} bytes in the store, {kept:.0f} in memory while a process holds it"
    )
    lines.append(f"  RSS of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return lines
