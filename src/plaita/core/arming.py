"""A wait of the machine as one of the store."""

from __future__ import annotations

from collections.abc import Mapping

from plaita.base.json import Json, encode
from plaita.engine.effects import Opened
from plaita.ports.runs import Arm
from plaita.ports.tasks import TaskSpec
from plaita.ports.values import WaitId


def arm_of(opened: Opened) -> Arm:
    """What the store is to arm."""
    spec = opened.spec
    return Arm(
        WaitId(opened.id),
        spec.kind,
        opened.node_id,
        opened.address,
        spec.event_type,
        spec.key,
        spec.by_filter,
        spec.reuse,
        opened.deadline_ms,
        None if spec.task is None else _task(spec.task),
        encode(spec.pending["event_filter"]) if spec.by_filter else b"",
    )


def _task(task: Mapping[str, Json]) -> TaskSpec:
    return TaskSpec(
        task["title"],
        task["content"],
        tuple(task["approvers"]),
        task["strategy"],
        tuple(task["form"]),
        task["allow_comments"],
        task["require_comments"],
    )
