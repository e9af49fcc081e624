"""A documented context, ``{"$INPUT": …, "$NODE": …}``, as the scope of an evaluation outside of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plaita.base.json import Json
from plaita.engine.expression.paths import ROOTS
from plaita.engine.expression.scope import ABSENT, FixedFacts, Names

CONTEXT_ROOTS: Final = tuple(root for root in ROOTS if root != "FLOW")
"""Roots that a documented context has; ``FLOW`` is another spelling of ``FLOW_ID``."""


@dataclass(slots=True)
class ContextScope:
    """A documented context as a scope."""

    input: Json
    nodes: dict[str, Json]
    parent: ContextScope | None
    globals: dict[str, Json]
    env: Mapping[str, str]
    flow_id: str | None
    last_id: str | None
    branch: Json
    extra: dict[str, Json] | None
    run: FixedFacts = field(compare=False)

    @property
    def names(self) -> Names:
        """What an expression may name in it."""
        return Names((frozenset(self.nodes),), frozenset(self.extra or ()))


def scope_of(context: Mapping[str, Json], now_ms: int) -> ContextScope:
    """The scope of an admitted context; keys may do without their ``$``."""
    roots = {key.removeprefix("$"): value for key, value in context.items()}
    parent = roots.get("PARENT")
    return ContextScope(
        input=roots.get("INPUT", ABSENT),
        nodes=roots.get("NODE") or {},
        parent=scope_of(parent, now_ms) if parent else None,
        globals=roots.get("GLOBAL") or {},
        env=roots.get("ENV") or {},
        flow_id=roots.get("FLOW_ID"),
        last_id=roots.get("LAST_NODE"),
        branch=roots.get("BRANCH"),
        extra={key: value for key, value in roots.items() if key not in CONTEXT_ROOTS},
        run=FixedFacts(roots.get("EXECUTION_ID") or "", now_ms),
    )
