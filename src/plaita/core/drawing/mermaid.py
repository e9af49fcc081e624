"""A picture as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator

from plaita.core.drawing.picture import Box, Picture

_SHAPES = {"start": ("([", "])"), "end": ("([", "])"), "if": ("{", "}"), "switch": ("{", "}"), "case": ("{", "}")}
_WAITING = ("[/", "/]")
_ESCAPED = str.maketrans({c: f"#{ord(c)};" for c in '"#<>&;`[]{}()|\\/'} | {"\n": " ", "\r": " "})


def as_mermaid(picture: Picture) -> str:
    """``flowchart TD``; every text is escaped, so any id can be drawn."""
    return "\n".join(["flowchart TD", *_level(picture, "n", "    ")]) + "\n"


def _level(picture: Picture, prefix: str, indent: str) -> Iterator[str]:
    names = {box.node_id: f"{prefix}{i}" for i, box in enumerate(picture.boxes)}
    for box in picture.boxes:
        yield from _box(box, names[box.node_id], indent)
    for box in picture.boxes:
        for arrow in box.arrows:
            if arrow.target in names:
                label = f'|"{_text(arrow.label)}"|' if arrow.label else ""
                yield f"{indent}{names[box.node_id]} -->{label} {names[arrow.target]}"


def _box(box: Box, name: str, indent: str) -> Iterator[str]:
    label = _text(box.node_id if box.kind in ("start", "end") else f"{box.node_id}: {box.kind}")
    if not box.inside:
        before, behind = _WAITING if box.waits else _SHAPES.get(box.kind, ("[", "]"))
        yield f'{indent}{name}{before}"{label}"{behind}'
        return
    yield f'{indent}subgraph {name} ["{label}"]'
    for i, (key, inner) in enumerate(box.inside):
        if key:
            yield f'{indent}    subgraph {name}b{i} ["{_text(key)}"]'
            yield from _level(inner, f"{name}b{i}x", indent + "        ")
            yield f"{indent}    end"
        else:
            yield from _level(inner, f"{name}b{i}x", indent + "    ")
    yield f"{indent}end"


def _text(text: str) -> str:
    return text.translate(_ESCAPED)
