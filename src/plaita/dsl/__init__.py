"""The Python front ends come later; a flow is written as JSON, as YAML, or as ``Flow(nodes=[…])``."""

from __future__ import annotations

from plaita.base.absent import FRONT_ENDS, absent

__getattr__ = absent("plaita.dsl", build=FRONT_ENDS, build_flow=FRONT_ENDS, FlowBuilder=FRONT_ENDS, linear=FRONT_ENDS)
