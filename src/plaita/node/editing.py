"""Noticing that a node or a flow was changed after it was made, so that what was compiled of it is made anew."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, PrivateAttr

_process = [0]


def edits_in_process() -> int:
    """How many fields of nodes and flows have been assigned so far: when it stands still, nothing has changed."""
    return _process[0]


class Editable(BaseModel):
    """A model that knows when one of its fields was assigned; an assigned value is validated as a given one is."""

    _edited: int = PrivateAttr(default=0)

    @property
    def edited(self) -> int:
        """The number of the last assignment to a field of this object, counted over the process; 0 for none."""
        return self._edited

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in type(self).model_fields:
            _process[0] += 1
            self._edited = _process[0]
