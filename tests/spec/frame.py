"""A scope for expressions without a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from plaita.base.json import Json
from plaita.engine.expression import ABSENT


@dataclass(slots=True)
class RunFacts:
    """29 February 2024, 12:34:56 UTC."""

    execution_id: str = "run-1"
    now_ms: int = 1_709_210_096_000
    timezone: str | None = None


@dataclass(slots=True)
class Frame:
    """Plain values where the machine has its frames."""

    input: Json = ABSENT
    nodes: dict[str, Json] = field(default_factory=dict)
    parent: Frame | None = None
    globals: dict[str, Json] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    flow_id: str | None = "flow-1"
    last_id: str | None = None
    branch: Json = None
    extra: dict[str, Json] | None = None
    run: RunFacts = field(default_factory=RunFacts)
