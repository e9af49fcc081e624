"""A picture as SVG: self-contained, light and dark, every text escaped."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from plaita.core.drawing.layout import CHAR, LINE, PAD, TITLE, Layout, Placed, lay_out
from plaita.core.drawing.picture import Picture

MARGIN = 24.0
STYLE = """
  .box { fill: #ffffff; stroke: #64748b; stroke-width: 1.2 }
  .host { fill: #f8fafc; stroke: #94a3b8; stroke-width: 1.2; stroke-dasharray: 5 3 }
  .round { fill: #e2e8f0 } .choice { fill: #fef9c3; stroke: #a16207 } .wait { fill: #dbeafe; stroke: #1d4ed8 }
  .arrow { fill: none; stroke: #64748b; stroke-width: 1.3 } .back { stroke-dasharray: 4 3 }
  .head { fill: #64748b } text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #0f172a }
  .kind { font-size: 11px; fill: #64748b } .label { font-size: 11px; fill: #475569 }
  .ground { fill: #ffffff }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0f172a } .box { fill: #1e293b; stroke: #94a3b8 } .host { fill: #111c33; stroke: #64748b }
    .round { fill: #334155 } .choice { fill: #422006; stroke: #facc15 } .wait { fill: #172554; stroke: #60a5fa }
    text { fill: #f1f5f9 } .kind { fill: #94a3b8 } .label { fill: #cbd5e1 } .arrow { stroke: #94a3b8 }
    .head { fill: #94a3b8 }
  }
""".rstrip()
_CLASSES = {"start": "box round", "end": "box round", "if": "box choice", "switch": "box choice", "case": "box choice"}


def as_svg(picture: Picture) -> str:
    """The whole document."""
    layout = lay_out(picture)
    width, height = layout.width + 2 * MARGIN + 24, layout.height + 2 * MARGIN
    title = escape(picture.title or "flow")
    names = ", ".join(placed.box.node_id for placed in layout.boxes.values())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{title}</title>',
            f'<desc id="desc">{escape(f"A flow of {len(layout.boxes)} nodes: {names}")}</desc>',
            f"<style>{STYLE}\n</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            f'<rect class="ground" width="{width:.0f}" height="{height:.0f}"/>',
            *_level(layout, MARGIN, MARGIN),
            "</svg>",
            "",
        ]
    )


def _level(layout: Layout, left: float, top: float) -> Iterator[str]:
    for placed in layout.boxes.values():
        yield from _box(placed, left, top)
    for placed in layout.boxes.values():
        for arrow in placed.box.arrows:
            target = layout.boxes.get(arrow.target)
            if target is not None:
                is_back = (placed.box.node_id, arrow.target) in layout.back
                yield from _arrow(placed, target, (left, top, left + layout.width), arrow.label, is_back=is_back)


def _box(placed: Placed, left: float, top: float) -> Iterator[str]:
    box, x, y = placed.box, left + placed.x, top + placed.y
    kind = "host" if placed.inside else "box wait" if box.waits else _CLASSES.get(box.kind, "box")
    radius = placed.height / 2 if "round" in kind else 7
    yield (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{placed.width:.1f}" height="{placed.height:.1f}" '
        f'rx="{radius:.1f}"/>'
    )
    if placed.inside:
        yield _text(x + PAD, y + LINE, box.node_id, "")
        yield _text(x + PAD + len(box.node_id) * CHAR + 10, y + LINE, box.title or box.kind, "kind")
    else:
        middle = x + placed.width / 2
        yield _text(middle, y + 20, box.node_id, "", anchor="middle")
        yield _text(middle, y + 36, box.title or box.kind, "kind", anchor="middle")
    for name, inner, dx, dy in placed.inside:
        if name:
            yield _text(x + dx, y + dy - TITLE / 2, name, "label")
        yield from _level(inner, x + dx, y + dy)


def _arrow(
    source: Placed, target: Placed, frame: tuple[float, float, float], label: str, *, is_back: bool
) -> Iterator[str]:
    left, top, right = frame
    x1, y1 = left + source.x + source.width / 2, top + source.y + source.height
    x2, y2 = left + target.x + target.width / 2, top + target.y
    if is_back:
        side = right + 16
        x1, y1 = left + source.x + source.width, top + source.y + source.height / 2
        x2, y2 = left + target.x + target.width, top + target.y + target.height / 2
        path = f"M{x1:.1f} {y1:.1f} C{side:.1f} {y1:.1f} {side:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        at = (side - 4, (y1 + y2) / 2)
    else:
        bend = max(18.0, (y2 - y1) / 2)
        path = f"M{x1:.1f} {y1:.1f} C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"
        at = (x1 * 0.5 + x2 * 0.5 + (6 if x2 >= x1 else -6), y1 * 0.6 + y2 * 0.4 - 4)
    yield f'<path class="arrow{" back" if is_back else ""}" d="{path}" marker-end="url(#head)"/>'
    if label:
        yield _text(at[0], at[1], label, "label", anchor="end" if x2 < x1 and not is_back else "")


def _text(x: float, y: float, text: str, kind: str, anchor: str = "") -> str:
    how = f' text-anchor="{anchor}"' if anchor else ""
    cls = f' class="{kind}"' if kind else ""
    shown = "".join(c if c.isprintable() else "·" for c in text)
    return f'<text x="{x:.1f}" y="{y:.1f}"{cls}{how}>{escape(shown)}</text>'
