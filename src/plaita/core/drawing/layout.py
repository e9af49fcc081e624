"""Where the boxes of a picture stand: ranks from the start down, what is inside a box laid out first.

Ranks are longest paths (Sugiyama's method: cycles are broken at the arrow that closes them, crossings are reduced by
sweeps of barycentres).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from plaita.core.drawing.picture import Box, Picture

CHAR, LINE = 7.4, 18.0
PAD, GAP_X, GAP_Y, TITLE = 14.0, 28.0, 46.0, 26.0
MIN_WIDTH, HEIGHT = 84.0, 46.0
SWEEPS = 4


@dataclass(slots=True)
class Placed:
    """A box with its place in the coordinates of its level, and the levels inside it in its own."""

    box: Box
    width: float
    height: float
    x: float = 0.0
    y: float = 0.0
    inside: list[tuple[str, Layout, float, float]] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """One level: its boxes by id, its size, and the arrows that lead back up."""

    boxes: dict[str, Placed]
    width: float
    height: float
    back: set[tuple[str, str]]


def lay_out(picture: Picture) -> Layout:
    """Place everything."""
    placed = {box.node_id: _sized(box) for box in picture.boxes}
    back = _closing(picture)
    ranks = _ranked(picture, back)
    _untangle(picture, ranks)
    width, top = 0.0, 0.0
    for rank in ranks:
        x = 0.0
        for node_id in rank:
            placed[node_id].x, placed[node_id].y = x, top
            x += placed[node_id].width + GAP_X
        width = max(width, x - GAP_X)
        top += max((placed[node_id].height for node_id in rank), default=0.0) + GAP_Y
    for rank in ranks:
        _centre([placed[node_id] for node_id in rank], width)
    return Layout(placed, max(width, MIN_WIDTH), max(0.0, top - GAP_Y), back)


def _sized(box: Box) -> Placed:
    text = max(len(box.node_id), len(box.kind) + 2, len(box.title)) * CHAR + 2 * PAD
    if not box.inside:
        return Placed(box, max(MIN_WIDTH, text), HEIGHT)
    x, tallest = PAD, 0.0
    inside = []
    for name, inner in box.inside:
        layout = lay_out(inner)
        title = TITLE if name else 0.0
        inside.append((name, layout, x, TITLE + LINE + title))
        x += max(layout.width, len(name) * CHAR) + GAP_X
        tallest = max(tallest, layout.height + title)
    return Placed(box, max(text, x - GAP_X + PAD), TITLE + LINE + tallest + PAD, inside=inside)


def _closing(picture: Picture) -> set[tuple[str, str]]:
    """Arrows against the order of the walk close a cycle."""
    place = {box.node_id: i for i, box in enumerate(picture.boxes)}
    return {
        (box.node_id, arrow.target)
        for box in picture.boxes
        for arrow in box.arrows
        if arrow.target in place and place[arrow.target] <= place[box.node_id]
    }


def _ranked(picture: Picture, back: set[tuple[str, str]]) -> list[list[str]]:
    rank = {box.node_id: 0 for box in picture.boxes}
    for box in picture.boxes:
        for arrow in box.arrows:
            if arrow.target in rank and (box.node_id, arrow.target) not in back:
                rank[arrow.target] = max(rank[arrow.target], rank[box.node_id] + 1)
    ranks: list[list[str]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for node_id, at in rank.items():
        ranks[at].append(node_id)
    return ranks


def _untangle(picture: Picture, ranks: list[list[str]]) -> None:
    """Order each rank by the middle of its neighbours, down and up again."""
    above: dict[str, list[str]] = {box.node_id: [] for box in picture.boxes}
    for box in picture.boxes:
        for arrow in box.arrows:
            if arrow.target in above:
                above[arrow.target].append(box.node_id)
    below = {box.node_id: [a.target for a in box.arrows if a.target in above] for box in picture.boxes}
    for sweep in range(SWEEPS):
        order = ranks if sweep % 2 == 0 else list(reversed(ranks))
        neighbours = above if sweep % 2 == 0 else below
        for fixed, moved in pairwise(order):
            place = {node_id: i for i, node_id in enumerate(fixed)}
            keys = {n: _middle([place[o] for o in neighbours[n] if o in place], i) for i, n in enumerate(moved)}
            moved.sort(key=keys.__getitem__)


def _middle(places: list[int], otherwise: int) -> float:
    return sum(places) / len(places) if places else float(otherwise)


def _centre(rank: list[Placed], width: float) -> None:
    used = sum(p.width for p in rank) + GAP_X * (len(rank) - 1)
    for placed in rank:
        placed.x += (width - used) / 2
