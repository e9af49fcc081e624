"""Telling what happens inside an ``advance``, node by node, as it happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from plaita.engine.frames import Frame
    from plaita.engine.program import CNode

Told: TypeAlias = Literal["begin", "finish", "abort", "start", "end", "answered", "fail", "retry", "resume"]

Trace: TypeAlias = "Callable[[Told, Frame, CNode | None, Any], None]"
"""Told inline; must not raise and must not touch the run. Kind, frame, node, value:

- ``begin``, ``finish``, ``abort``: a flow in ``frame`` begins with its input, ends with its output, or with a failure;
- ``start``: a node is entered (a retried host once more);
- ``end``: a pure node or a host has its result; ``answered``: a node that stopped its frame has (a call, a wait, one
  whose handler gave a value);
- ``fail``: a node failed for good; ``retry``: it failed and is tried again; the value is the failure;
- ``resume``: a wait is over; the value is the answer.
"""
