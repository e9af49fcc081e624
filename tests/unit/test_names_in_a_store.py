"""Whatever a store is asked for by name is Unicode, and numbers fit: the refusal names the part."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plaita import Flow, Runtime
from plaita.base.errors import Conflict, InputError
from tests.support.flows import chain

LONE = "\udcff"
FLOW = Flow.model_validate(chain(flow_id="f", output="done"))
ASKED: dict[str, Callable[[Runtime], Any]] = {
    "business_key": lambda rt: rt.start(FLOW, business_key=LONE),
    "tag": lambda rt: rt.start(FLOW, tags=[LONE]),
    "queue": lambda rt: rt.start(FLOW, queue=LONE),
    "priority": lambda rt: rt.start(FLOW, priority=10**30),
    "tag: is text": lambda rt: rt.start(FLOW, tags=[5]),
    "priority: is a whole number": lambda rt: rt.start(FLOW, priority="high"),
    "event_type: is text": lambda rt: rt.publish_event(5, {}),  # type: ignore[arg-type]
    "limit": lambda rt: rt.executions(limit=-1),
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
    with Runtime.open(url) as rt, pytest.raises(InputError, match=name):
        ASKED[name](rt)


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
