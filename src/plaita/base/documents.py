"""Objects that stand for a document: whoever reads such documents takes the objects too."""

from __future__ import annotations

from typing import Any


class Documented:
    """Base of models that may be given where a document is read."""

    __slots__ = ()

    def document(self) -> Any:
        """The document this object stands for: JSON."""
        raise NotImplementedError


def as_written(value: Any) -> Any:
    """The document of an object that stands for one; any other value as it is."""
    return value.document() if isinstance(value, Documented) else value
