"""Flows written as Python functions come later."""

from __future__ import annotations

from plaita.base.absent import FRONT_ENDS, absent

__getattr__ = absent(
    "plaita.dsl.codeflow", compile_source=FRONT_ENDS, flow=FRONT_ENDS, childflow=FRONT_ENDS, flow_from_source=FRONT_ENDS
)
