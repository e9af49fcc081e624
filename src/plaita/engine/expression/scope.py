"""What an expression can see: the seam between the compiler and the machine's frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from plaita.base.json import Json
from plaita.base.record import record


class Absent:
    """The type of ``ABSENT``. Not a JSON value, so it cannot be confused with one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()
"""Nothing was given, not even null."""


class Facts(Protocol):
    """What is true for the whole run. ``now_ms`` is constant within one advance; ``timezone`` ``None`` means UTC."""

    @property
    def execution_id(self) -> str: ...
    @property
    def now_ms(self) -> int: ...
    @property
    def timezone(self) -> str | None: ...


@record
class FixedFacts:
    """Facts that stay as they were said, outside of a run or for one call."""

    execution_id: str
    now_ms: int
    timezone: str | None = None


class Scope(Protocol):
    """One frame as its expressions see it. Attributes only: reading one must cost nothing.

    ``input`` is ``ABSENT`` when the frame was given none: then the whole root is the parent's. ``extra`` holds
    further roots by name without the prefix. ``parent`` is the lexical parent, ``None`` in the root flow.
    """

    @property
    def input(self) -> Json: ...
    @property
    def nodes(self) -> dict[str, Json]: ...
    @property
    def parent(self) -> Scope | None: ...
    @property
    def globals(self) -> dict[str, Json]: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def flow_id(self) -> str | None: ...
    @property
    def last_id(self) -> str | None: ...
    @property
    def branch(self) -> Json: ...
    @property
    def extra(self) -> dict[str, Json] | None: ...
    @property
    def run(self) -> Facts: ...


@dataclass(frozen=True, slots=True)
class Names:
    """What the compiler knows at load.

    ``declared``: the node ids of this flow, then of each lexically enclosing flow. ``extra_roots``: roots that nodes
    provide. ``open_roots``: some node provides roots it does not declare, so an unknown one is only a warning.
    """

    declared: tuple[frozenset[str], ...]
    extra_roots: frozenset[str] = frozenset()
    open_roots: bool = False

    def depth_of(self, node_id: str) -> int:
        """How many frames up the nearest flow is that declares the id; -1 when none does."""
        for depth, ids in enumerate(self.declared):
            if node_id in ids:
                return depth
        return -1
