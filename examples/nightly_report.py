"""A report over the sales of a day, with two custom nodes: one that reads, one that publishes exactly once.

    plaita run examples/nightly_report.py -i sales=examples/sales.csv

``report.md`` is written in the working directory. Run it every night under the id of the day, and a day that was
reported is not reported again:

    plaita start examples/nightly_report.py -i sales=examples/sales.csv --id report-2026-05-04
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, ClassVar

from plaita import Flow, Node

Row = dict[str, Any]


class ReadSales(Node):
    """The rows of a CSV file: ``[{"region", "item", "amount"}, …]``."""

    node_type: ClassVar[str] = "read_sales"
    node_name: ClassVar[str] = "Read sales"

    path: str

    def execute(self, execution: Any) -> list[Row]:
        path = Path(execution.evaluate(self.path))
        with path.open(encoding="utf-8", newline="") as file:
            return [{**row, "amount": float(row["amount"])} for row in csv.DictReader(file)]


class PublishReport(Node):
    """Writes ``text`` to ``path`` as a whole or not at all. Result: the path.

    Writing the same report again changes nothing, so it does not matter that the node may run twice when its process
    dies at the wrong moment.
    """

    node_type: ClassVar[str] = "publish_report"
    node_name: ClassVar[str] = "Publish report"

    path: str
    text: str

    def execute(self, execution: Any) -> str:
        path = Path(execution.evaluate(self.path))
        draft = path.with_suffix(".draft")
        draft.write_text(execution.evaluate(self.text), encoding="utf-8")
        draft.replace(path)
        return str(path)


OF_ONE_REGION = Flow(
    nodes=[
        {"id": "begin", "type": "start", "next": "own"},
        {
            "id": "own",
            "type": "filter",
            "collection": "$PARENT.NODE.sales",
            "childFlow": {
                "nodes": [
                    {"id": "s", "type": "start", "next": "e"},
                    {"id": "e", "type": "end", "output": "$( $INPUT.item.region == $PARENT.INPUT.item )"},
                ]
            },
            "next": "sum",
        },
        {
            "id": "sum",
            "type": "reduce",
            "collection": "$NODE.own",
            "initial": 0,
            "childFlow": {
                "nodes": [
                    {"id": "s", "type": "start", "next": "e"},
                    {"id": "e", "type": "end", "output": "$( $INPUT.first + $INPUT.second.amount )"},
                ]
            },
            "next": "line",
        },
        {
            "id": "line",
            "type": "end",
            "output": "| {% $INPUT.item %} | {% $F.len($NODE.own) %} | {% $F.round($NODE.sum, 2) %} |",
        },
    ]
)

HEAD = "# Sales\n\n| region | sales | euros |\n|---|---|---|\n"

flow = Flow(
    flow_id="nightly_report",
    version="1",
    desc="Sales by region",
    input_type={
        "type": "object",
        "properties": {
            "sales": {"type": "string", "default": "examples/sales.csv"},
            "report": {"type": "string", "default": "report.md"},
            "regions": {"type": "array", "items": {"type": "string"}, "default": ["north", "south"]},
        },
    },
    nodes=[
        {"id": "start", "type": "start", "next": "sales"},
        ReadSales(
            id="sales",
            path="$INPUT.sales",
            next="lines",
            error_handler={"retry": {"attempts": 3, "base": 1000}},
        ),
        {"id": "lines", "type": "map", "collection": "$INPUT.regions", "childFlow": OF_ONE_REGION, "next": "publish"},
        PublishReport(
            id="publish",
            path="$INPUT.report",
            text=HEAD + "{% $F.join($NODE.lines, $GLOBAL.newline) %}{% $GLOBAL.newline %}",
            next="end",
        ),
        {"id": "end", "type": "end", "output": {"report": "$NODE.publish", "regions": "$F.len($NODE.lines)"}},
    ],
    global_context={"newline": "\n"},
)
