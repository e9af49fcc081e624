"""Real worker processes on one Redis, and a load of executions whose effects can be counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plaita import Flow
from plaita.node.registry import get_default_registry
from plaita.ports.backend import Backend
from plaita.ports.queries import RunView
from plaita.runtime import Runtime
from plaita.runtime.runtime import Execution
from tests.servers import RedisServer
from tests.support.fleet import Fleet, Line, chain_of, lines_of, wait_until
from tests.support.outside import Append, Deaf, Grip

LEASE_S = 3.0
KEPT = ("--appendonly", "yes", "--appendfsync", "always")
OVER = ("completed", "error", "cancelled")


@dataclass
class RedisFleet(Fleet):
    """Workers on the Redis at ``url``."""

    url: str = ""
    lease_s: float = 10.0

    @property
    def store(self) -> str:
        return self.url

    @property
    def environ(self) -> dict[str, str]:
        return {
            **super().environ,
            "PLAITA_LEASE_TTL_SECONDS": str(self.lease_s),
            "PLAITA_LEASE_RENEW_SECONDS": str(0.3 * self.lease_s),
        }

    def start_workers(self, count: int, **streams: Any) -> list[int]:
        """Start them, and wait until each has announced itself."""
        pids = [self.start_worker(**streams) for _ in range(count)]
        with self.runtime() as runtime:
            wait_until(lambda: {p.pid for p in runtime.ask(lambda s: s.living())} >= set(pids), "the workers are there")
        return pids


def load_of(
    runtime: Runtime, folder: Path, count: int, nodes: int, seconds: float = 0.0, node_type: str = "append"
) -> list[Execution]:
    """``count`` executions of ``nodes`` effects each, all of them written to ``folder/effects``."""
    for cls in (Append, Grip, Deaf):
        get_default_registry().register(cls)
    shape = chain_of(nodes, folder / "effects")
    for node in shape["nodes"]:
        if node["type"] == "append":
            node.update(type=node_type, seconds=seconds)
    flow = Flow.model_validate({"flow_id": "load", **shape})
    return [runtime.start(flow) for _ in range(count)]


def effects(folder: Path) -> list[Line]:
    return lines_of(folder / "effects")


def all_completed(runtime: Runtime, executions: list[Execution], patience_s: float = 25.0) -> list[RunView]:
    """Wait for the end of all; what each of them is then."""

    async def look(store: Backend) -> list[RunView]:
        return [view for e in executions if (view := await store.run(e.id)) is not None]

    def ended() -> list[RunView] | None:
        views = runtime.ask(look)
        return views if all(view.status in OVER for view in views) else None

    views: list[RunView] = wait_until(ended, "every execution ends", patience_s)
    assert Counter(view.status for view in views) == {"completed": len(executions)}
    return views


def histories_are_single(executions: list[Execution]) -> None:
    """Each fact of an execution stands once in its history; only a process taking it is told each time."""
    for execution in executions:
        entries: list[dict[str, Any]] = execution.history()
        facts = Counter(
            tuple(str(e.get(name)) for name in ("event", "node", "path", "key", "attempt", "nodes"))
            for e in entries
            if e["event"] != "claimed"
        )
        assert max(facts.values()) == 1, [fact for fact, count in facts.items() if count > 1]


@contextmanager
def fleet_on(server: RedisServer, folder: Path, workers: int, concurrency: int = 8) -> Iterator[RedisFleet]:
    """Workers that are there; stopped at the end."""
    fleet = RedisFleet(folder, ("--concurrency", str(concurrency)), url=server.url, lease_s=LEASE_S)
    fleet.start_workers(workers)
    try:
        yield fleet
    finally:
        fleet.stop()


def lost_of(views: list[RunView]) -> int:
    """How often one of them was taken over."""
    return sum(view.lost for view in views)


def doubled(folder: Path) -> list[str]:
    """Keys of effects that were had more than once."""
    return [key for key, count in Counter(line.key for line in effects(folder)).items() if count > 1]


def await_effects(folder: Path, count: int) -> None:
    wait_until(lambda: len(effects(folder)) >= count, f"{count} effects")


def settled(runtime: Runtime, executions: list[Execution], folder: Path, nodes: int) -> list[RunView]:
    """All of them completed, each effect was had, and each fact is told once."""
    views = all_completed(runtime, executions)
    histories_are_single(executions)
    assert len({line.key for line in effects(folder)}) == len(executions) * nodes
    assert runtime.ask(lambda store: store.audit()) == []
    return views
