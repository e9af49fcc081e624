"""Flows as pictures: every node and arrow is there, and no text breaks out of its place."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from plaita.core.drawing import as_mermaid, as_svg, as_text, picture_of
from plaita.core.drawing.layout import lay_out
from plaita.core.flow import Flow
from tests.support.flows import chain, event, flow_of, outside, parallel

SVG = "{http://www.w3.org/2000/svg}"
DECISION: dict[str, Any] = {
    "nodes": [
        {"id": "s", "type": "start", "next": "i"},
        {"id": "i", "type": "if", "condition": "$INPUT.x", "next": "a", "elseNext": "e"},
        {"id": "a", "type": "switch", "branches": [{"name": "again", "condition": "$INPUT.y", "next": "i"},
                                                   {"name": "out", "next": "e", "isDefault": True}]},
        {"id": "e", "type": "end"},
    ]
}  # fmt: skip
ODD = ["a b", 'say "hi"', "<script>alert(1)</script>", "é李🙂", "x]]>", "line\nbreak", "#;|`", "\u202eevil", "&amp;"]


def picture(document: dict[str, Any]) -> Any:
    return picture_of(flow_of(document))


def test_a_walk_from_the_start_gives_the_order_and_branches_their_names() -> None:
    assert as_text(picture({**DECISION, "flow_id": "decision"})).splitlines() == [
        "decision",
        "├─ s  start   -> i",
        "├─ i  if      -> yes: a, no: e",
        "├─ a  switch  -> again: i, out: e",
        "└─ e  end",
    ]


def test_what_is_inside_a_node_stands_below_it() -> None:
    text = as_text(picture(chain(parallel({"left": chain(outside()), "right": chain(event("w"))}))))
    assert [line.strip("│ ") for line in text.splitlines() if line.endswith(":")] == ["left:", "right:"]
    assert re.search(r"│ +├─ w +event +-> end", text)


def test_a_node_that_nothing_leads_to_is_drawn_too() -> None:
    lost = {"id": "lost", "type": "assignment", "output": 1, "next": "end"}
    assert "lost" in as_text(picture({"nodes": [*chain()["nodes"], lost]}))


@pytest.mark.parametrize("node_id", ODD)
def test_odd_ids_stay_text_in_every_format(node_id: str) -> None:
    found = picture(chain(outside(node_id), output=1, flow_id=node_id))
    svg = ElementTree.fromstring(as_svg(found))
    shown = "".join(c if c.isprintable() else "·" for c in node_id)
    assert shown in {text.text for text in svg.iter(f"{SVG}text")}
    assert not list(svg.iter(f"{SVG}script"))
    for line in as_mermaid(found).splitlines()[1:]:
        assert re.fullmatch(r' +n\d+[(\[{/]+"[^"<>\n]*"[)\]}/]+| +n\d+ -->(\|"[^"\n]*"\|)? n\d+', line), line


def test_a_mermaid_chart_has_each_node_and_arrow_once() -> None:
    text = as_mermaid(picture(DECISION))
    assert text.startswith("flowchart TD\n")
    assert text.count("-->") == 5
    assert '-->|"yes"|' in text and '{"i: if"}' in text


def test_boxes_of_a_level_do_not_overlap_and_stay_inside() -> None:
    rows = {"id": "m", "type": "map", "collection": [1], "childFlow": chain(outside("a"), outside("b"))}
    for layout in (lay_out(picture(DECISION)), lay_out(picture(chain(rows, outside("long name of a node"))))):
        boxes = list(layout.boxes.values())
        for i, one in enumerate(boxes):
            assert one.x >= -0.01 and one.x + one.width <= layout.width + 0.01
            for other in boxes[i + 1 :]:
                apart = one.x + one.width <= other.x or other.x + other.width <= one.x
                assert apart or one.y + one.height <= other.y or other.y + other.height <= one.y


def test_a_cycle_is_drawn_with_an_arrow_back() -> None:
    svg = as_svg(picture(DECISION))
    assert svg.count('class="arrow back"') == 1


def test_large_and_deep_flows_are_drawn() -> None:
    long = chain(*({"id": f"n{i}", "type": "assignment", "output": i} for i in range(1_000)))
    assert as_svg(picture(long)).count("<rect") == 1_003
    deep = chain(outside())
    for i in range(40):
        deep = chain({"id": f"c{i}", "type": "child", "childFlow": deep})
    for draw in (as_text, as_mermaid, as_svg):
        assert "call" in draw(picture(deep))


def test_an_accessible_picture_names_what_it_shows() -> None:
    svg = ElementTree.fromstring(as_svg(picture_of(Flow.model_validate({**DECISION, "flow_id": "decision"}))))
    [title], [desc] = list(svg.iter(f"{SVG}title")), list(svg.iter(f"{SVG}desc"))
    assert title.text == "decision"
    assert desc.text is not None and "4 nodes" in desc.text


def test_one_long_id_does_not_widen_every_line() -> None:
    nodes = [{"id": f"n{i}", "type": "mock"} for i in range(200)]
    assert len(as_text(picture(chain({"id": "x" * 100_000, "type": "mock"}, *nodes)))) < 400_000


def test_a_line_break_in_an_id_makes_no_line_of_its_own() -> None:
    text = as_text(picture(chain({"id": "line\nbreak", "type": "mock"})))
    assert len(text.splitlines()) == 4
