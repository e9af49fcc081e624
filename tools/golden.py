"""Golden stores: ``python tools/golden.py`` writes ``tests/golden/<version>/`` with an execution in every state.

Every later release must restore what is in there and finish it; ``tests/golden/test_golden.py`` proves it. The clock of
a golden store stands in the past, so that everything timed is due when it is read.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import yaml

from plaita.backends.sqlite import SqliteBackend
from plaita.base.clock import Clock, SystemClock
from plaita.control import acting, looking
from plaita.control.starting import StartOptions, start_flow
from plaita.core.flow import Flow
from plaita.core.imports import import_nodes
from plaita.ports.backend import Backend
from plaita.server.worker import Surroundings, Worker, WorkerOptions

GOLDEN: Final = Path(__file__).parents[1] / "tests" / "golden"
STORE, EXPECTED = "store.db", "expected.json"
START_MS: Final = 1_735_689_600_000
HOUR_MS: Final = 3_600_000
BYTES_MAX: Final = 200_000
PATIENCE_S: Final = 20
PAGE_BYTES: Final = 1024
"""Most pages of a small store are nearly empty."""

Step = Mapping[str, Any]
Scenario = Mapping[str, Any]


class PastClock:
    """Runs like the machine's clock, from a fixed day on."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._began = self._clock.elapsed_ms()

    def now_ms(self) -> int:
        return START_MS + int(self._clock.elapsed_ms() - self._began)

    def elapsed_ms(self) -> float:
        return self._clock.elapsed_ms()


def worker_of(store: Backend, env: Mapping[str, str], clock: Clock) -> Worker:
    """A worker that lives on this loop."""
    return Worker(store, WorkerOptions(env=env, renew_ms=200, poll_ms=50), Surroundings(clock))


async def act(store: Backend, execution: str, step: Step, clock: Clock) -> None:
    """What somebody outside does: vote, resume, publish an event, retry."""
    match step:
        case {"vote": address, "by": actor, "approved": approved}:
            waits = await waits_of(store, execution, [address])
            await acting.decide(store, waits[address]["task_id"], acting.Verdict(actor, approved), clock)
        case {"resume": address, "data": data}:
            await waits_of(store, execution, [address])
            await acting.resume(store, execution, address, data, "golden")
        case {"event": event_type, "data": data}:
            await acting.publish_event(store, event_type, data, step.get("key"))
        case {"retry": True}:
            await acting.retry(store, execution)
        case _:
            raise ValueError(f"no such step: {step}")


async def waits_of(store: Backend, execution: str, addresses: list[str]) -> dict[str, Any]:
    """The open waits by address, once all of these are among them."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            waits = {wait["node"]: wait for wait in (await looking.inspect(store, execution))["waits"]}
            if waits.keys() >= set(addresses):
                return waits
            await store.hint(20)


async def reach(store: Backend, execution: str, wanted: Scenario) -> None:
    """Wait until an execution is in the state that ``until`` describes."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not await _is_reached(store, execution, wanted):
                await store.hint(20)
    except TimeoutError:
        raise SystemExit(f"{execution} is no {wanted}: {await looking.inspect(store, execution)}") from None


async def _is_reached(store: Backend, execution: str, wanted: Scenario) -> bool:
    shape = await looking.inspect(store, execution)
    entries = (await looking.history(store, execution))["items"]
    calls = [e["node"] for e in entries if e["event"] == "node_start"]
    return (
        sorted(wait["node"] for wait in shape["waits"]) == sorted(wanted.get("waits", []))
        and shape["status"] == wanted.get("status", shape["status"])
        and ("retry_at" in shape) == wanted.get("retry", False)
        and set(calls) >= set(wanted.get("calls", []))
        and len(await children_of(store, execution)) == wanted.get("children", 0)
    )


async def children_of(store: Backend, execution: str) -> list[str]:
    """Executions that this one has started and that wait or have ended."""
    views, _ = await store.runs(limit=1000)
    return [v.run_id for v in views if v.run_id.startswith(f"{execution}.") and v.status not in ("queued", "running")]


async def write(path: Path, scenarios: Mapping[str, Scenario]) -> None:
    """Bring every scenario into its state and copy the store while its worker still holds what it holds."""
    clock = PastClock()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteBackend(Path(folder) / STORE, clock)
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(worker_of(store, {}, clock).run(stop))
            for name, scenario in scenarios.items():
                later = clock.now_ms() + HOUR_MS if scenario.get("delayed") else None
                flow = Flow.model_validate({"flow_id": name, **scenario["flow"]})
                options = StartOptions(execution_id=name, not_before_ms=later)
                await start_flow(store, flow, scenario.get("input", {}), options)
                if any("event" in step for step in scenario.get("before", [])):
                    await reach(store, name, scenario["until"])
                for step in scenario.get("before", []):
                    await act(store, name, step, clock)
            for name, scenario in scenarios.items():
                await reach(store, name, scenario["until"])
            _copy(Path(folder) / STORE, path)
            for name in scenarios:
                await acting.cancel(store, name, "golden")
            stop.set()
        await store.close()


def _copy(source: Path, target: Path) -> None:
    """One small file without a log beside it."""
    target.unlink(missing_ok=True)
    db = sqlite3.connect(source)
    db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
    db.execute("VACUUM INTO ?", (str(target),))
    db.close()
    db = sqlite3.connect(target)
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()


def main() -> None:
    """Write the store of this version and what must come out of it."""
    import_nodes(str(GOLDEN / "nodes.py"))
    scenarios: dict[str, Scenario] = yaml.safe_load((GOLDEN / "scenarios.yaml").read_text(encoding="utf-8"))
    folder = GOLDEN / version("plaita")
    folder.mkdir(exist_ok=True)
    asyncio.run(write(folder / STORE, scenarios))
    kept = ("after", "output", "child_outputs")
    expected = {name: {key: s[key] for key in kept if key in s} for name, s in scenarios.items()}
    (folder / EXPECTED).write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    size = (folder / STORE).stat().st_size
    if size > BYTES_MAX:
        raise SystemExit(f"{folder / STORE} has {size} bytes, more than {BYTES_MAX}")
    print(f"{folder / STORE}: {len(scenarios)} executions, {size} bytes")


if __name__ == "__main__":
    main()
