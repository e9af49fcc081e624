"""Stores of earlier releases: what is suspended in them is restored and finished."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from plaita.backends.sqlite import SqliteBackend
from plaita.base.clock import SystemClock
from plaita.control import looking
from plaita.core.imports import import_nodes
from tools.golden import EXPECTED, STORE, act, children_of, worker_of

HERE = Path(__file__).parent
LEASE_MS = 500
"""Short, so that a call in flight is taken over soon after the store was opened."""
PATIENCE_S = 15
EXPECTATIONS = [
    pytest.param(path.parent, name, wanted, id=f"{path.parent.name}-{name}")
    for path in sorted(HERE.glob(f"*/{EXPECTED}"))
    for name, wanted in json.loads(path.read_text(encoding="utf-8")).items()
]


@pytest.mark.parametrize(("folder", "name", "wanted"), EXPECTATIONS)
async def test_an_execution_of_an_old_store_is_finished(
    folder: Path, name: str, wanted: dict[str, Any], tmp_path: Path
) -> None:  # fmt: skip
    import_nodes(str(HERE / "nodes.py"))
    shutil.copy(folder / STORE, tmp_path / STORE)
    store = SqliteBackend(tmp_path / STORE, lease_ms=LEASE_MS)
    stop = asyncio.Event()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
        group.create_task(worker_of(store, {"GOLDEN_WELL": "yes"}, SystemClock()).run(stop))
        for step in wanted.get("after", []):
            await act(store, name, step, SystemClock())
        shape = await ended(store, name)
        children = [await ended(store, child) for child in await children_of(store, name)]
        stop.set()
    assert shape["status"] == "completed", shape
    assert shape["output"] == wanted["output"]
    assert [child["output"] for child in children] == wanted.get("child_outputs", [])
    assert await store.audit() == []
    await store.close()


async def ended(store: SqliteBackend, execution: str) -> dict[str, Any]:
    """The execution once it has ended."""
    while True:
        shape = await looking.inspect(store, execution)
        if shape["end_time"] is not None:
            return shape
        await store.hint(20)


def test_every_golden_store_is_one_small_file() -> None:
    for path in HERE.glob(f"*/{STORE}"):
        assert path.stat().st_size < 200_000
        assert sorted(p.name for p in path.parent.iterdir()) == sorted([STORE, EXPECTED])
