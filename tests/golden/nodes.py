"""The custom node of the golden stores."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Literal

from plaita import Node


class Shaky(Node):
    """Succeeds once ``well`` evaluates to something; until then it fails, for good or not, or never comes back."""

    node_type: ClassVar[str] = "golden_shaky"
    well: Any = None
    mood: Literal["fails", "fails_for_good", "hangs"] = "fails"

    async def arun(self, execution: Any) -> dict[str, Any]:
        if execution.evaluate(self.well):
            return {"node": self.id, "well": True}
        match self.mood:
            case "fails":
                raise ConnectionError("not yet")
            case "fails_for_good":
                raise ValueError("not like this")
            case _:
                await asyncio.Event().wait()
        raise AssertionError("nobody sets that event")
