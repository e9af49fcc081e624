"""Whatever a store is asked for by name is Unicode, and numbers fit: the refusal names the part."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plaita import Flow, Runtime
from plaita.base.errors import Conflict, InputError
from plaita.core.context import ExecutionContext
from plaita.event.memory import InMemoryEventSubscriptionStorage
from plaita.ports.backend import Backend
from tests.support.flows import chain

LONE = "\udcff"
FLOW = Flow.model_validate(chain(flow_id="f", output="done"))
ASKED: dict[str, Callable[[Runtime], Any]] = {
    "business_key": lambda rt: rt.start(FLOW, business_key=LONE),
    "tags": lambda rt: rt.start(FLOW, tags=[LONE]),
    "tags: is a list of texts, not 'abc'": lambda rt: rt.start(FLOW, tags="abc"),
    "tags: is a list of texts, not None": lambda rt: rt.start(FLOW, tags=None),
    "tags: is a list of texts, not {'a': 1}": lambda rt: rt.start(FLOW, tags={"a": 1}),
    "imports: is a list of texts, not 'abc'": lambda rt: rt.start(FLOW, imports="abc"),
    "execution_id: is text, not int": lambda rt: rt.start(FLOW, execution_id=5),
    "not_before_ms: '5'": lambda rt: rt.start(FLOW, not_before_ms="5"),
    "not_before_ms: 1000000": lambda rt: rt.start(FLOW, not_before_ms=10**30),
    "queue": lambda rt: rt.start(FLOW, queue=LONE),
    "queue: 'a,b'": lambda rt: rt.start(FLOW, queue="a,b"),
    "queue: ''": lambda rt: rt.start(FLOW, queue=""),
    "queue: ' a'": lambda rt: rt.start(FLOW, queue=" a"),
    "queue: '-a'": lambda rt: rt.start(FLOW, queue="-a"),
    r"queue: 'a\nb'": lambda rt: rt.start(FLOW, queue="a\nb"),
    "priority": lambda rt: rt.start(FLOW, priority=10**30),
    "tags: is text": lambda rt: rt.start(FLOW, tags=[5]),
    "priority: 'high'": lambda rt: rt.start(FLOW, priority="high"),
    "event_type: is text": lambda rt: rt.publish_event(5, {}),  # type: ignore[arg-type]
    "limit": lambda rt: rt.executions(limit=-1),
    "limit: '1'": lambda rt: rt.executions(limit="1"),
    "limit: 1000000": lambda rt: rt.executions(limit=10**30),
    "cursor: is text": lambda rt: rt.executions(cursor=None),
    "days": lambda rt: rt.prune(10**30),
    "days: -5 ": lambda rt: rt.prune(-5),
    "flow_id": lambda rt: rt.start(LONE),
    "execution_id": lambda rt: rt.execution(LONE).inspect(),
    "event_type": lambda rt: rt.publish_event(LONE, {}),
    "actor": lambda rt: rt.inbox(LONE),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_no_store_can_hold_is_refused_by_name(name: str, kind: str, tmp_path: Path) -> None:
    url = "memory:" if kind == "memory" else f"sqlite:///{tmp_path / 's.db'}"
    with Runtime.open(url) as rt, pytest.raises(InputError, match=re.escape(name)):
        ASKED[name](rt)


async def test_one_text_is_no_list_of_tags_for_the_asynchronous_twin_either() -> None:
    async with await Runtime.aopen("memory:") as rt:
        with pytest.raises(InputError, match="tags: is a list of texts"):
            await rt.astart(FLOW, tags="abc")
        assert (await (await rt.astart(FLOW, tags=["abc"])).ainspect())["tags"] == ["abc"]


async def test_lists_of_names_are_no_text_anywhere() -> None:
    with pytest.raises(InputError, match="expose_env: is a list of texts"):
        ExecutionContext(expose_env="HOME")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="event_ids: is a list of texts"):
        await InMemoryEventSubscriptionStorage().batch_mark_processed("s", "e1")


def test_one_of_many_copies_to_the_same_place_is_made_and_the_others_are_refused(tmp_path: Path) -> None:
    async def copies(backend: Backend) -> list[BaseException | None]:
        many = (backend.backup(tmp_path / "copy.db", replace=False) for _ in range(5))
        return await asyncio.gather(*many, return_exceptions=True)

    with Runtime.open(f"sqlite:///{tmp_path / 's.db'}") as rt:
        rt.publish(FLOW)
        answers = rt.ask(copies)
    assert [type(answer) for answer in answers if answer is not None] == [Conflict] * 4
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.db"]


def test_a_copy_replaces_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    link = tmp_path / "copy.db"
    link.symlink_to(tmp_path / "nowhere")
    with Runtime.open(f"sqlite:///{tmp_path / 's.db'}") as rt, pytest.raises(Conflict, match="exists"):
        rt.ask(lambda backend: backend.backup(link, replace=False))
    assert link.is_symlink()


def test_a_copy_never_takes_the_place_of_the_store_it_is_of(tmp_path: Path) -> None:
    store, link = tmp_path / "s.db", tmp_path / "link.db"
    link.symlink_to(store)
    with Runtime.open(f"sqlite:///{store}") as rt:
        rt.publish(FLOW)
        before = store.stat().st_ino
        for target in (store, link):
            with pytest.raises(Conflict, match="is the store itself"):
                rt.backup(target)
    assert store.stat().st_ino == before


def test_a_copy_never_takes_the_place_of_another_store_in_use(tmp_path: Path) -> None:
    with (
        Runtime.open(f"sqlite:///{tmp_path / 'one.db'}") as one,
        Runtime.open(f"sqlite:///{tmp_path / 'two.db'}") as two,
    ):
        for rt in (one, two):
            rt.publish(FLOW)
        with pytest.raises(Conflict, match="a store in use"):
            one.backup(tmp_path / "two.db")


def test_a_copy_replaces_regular_files_only(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with Runtime.open(f"sqlite:///{tmp_path / 's.db'}") as rt:
        rt.publish(FLOW)
        for target in (tmp_path / "pipe", tmp_path):
            with pytest.raises(Conflict, match="no regular file"):
                rt.backup(target)
    assert (tmp_path / "pipe").is_fifo()


def test_a_copy_is_for_its_owner_alone(tmp_path: Path) -> None:
    with Runtime.open(f"sqlite:///{tmp_path / 's.db'}") as rt:
        rt.publish(FLOW)
        rt.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
