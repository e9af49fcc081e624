"""A picture as text: one line a node, what is inside it indented below."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.core.drawing.picture import Box, Picture

COLUMN_MAX = 60
"""A longer id stands out of its column: it must not widen every line."""


def as_text(picture: Picture) -> str:
    """Lines of ``id  type  -> where it leads``."""
    return "\n".join([picture.title or "flow", *_lines(picture, "")])


def _lines(picture: Picture, indent: str) -> Iterator[str]:
    wide = min(max((len(box.node_id) for box in picture.boxes), default=0), COLUMN_MAX)
    kinds = max((len(box.kind) for box in picture.boxes), default=0)
    for i, box in enumerate(picture.boxes):
        last = i == len(picture.boxes) - 1
        stem, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        line = f"{indent}{stem}{box.node_id:{wide}}  {box.kind:{kinds}}  {_leads(box)}"
        # A line break in an id would look like another node.
        yield line.replace("\r", "\\r").replace("\n", "\\n").rstrip()
        for name, inner in box.inside:
            if name:
                yield f"{indent}{below}{name}:"
            yield from _lines(inner, indent + below)


def _leads(box: Box) -> str:
    if box.kind == "end":
        return ""
    ways = ", ".join(f"{arrow.label}: {arrow.target}" if arrow.label else arrow.target for arrow in box.arrows)
    more = f"  ({box.title})" if box.title else ""
    return f"-> {ways}{more}" if ways else f"leads nowhere{more}"
