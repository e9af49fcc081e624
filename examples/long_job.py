"""A flow written in Python: ten slow steps that survive the death of their process.

    plaita run examples/long_job.py -i steps=10 -i seconds=1

Kill it at any instant (``kill -9``); ``plaita run --continue ID`` goes on where it was. ``long_job.log`` has one line a
performed step: a step that was finished never runs again, the one that was cut may stand there twice, with one key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from plaita import Flow, Node


class Work(Node):
    """Works for ``seconds`` and appends a line to ``log``. Result: the number of the step."""

    node_type: ClassVar[str] = "work"
    node_name: ClassVar[str] = "Work"

    step: Any
    seconds: Any = 1
    log: str = "long_job.log"

    def execute(self, execution: Any) -> int:
        step = int(execution.evaluate(self.step))
        with Path(execution.evaluate(self.log)).open("a", encoding="utf-8") as log:
            log.write(f"{step} {execution.idempotency_key}\n")
        # Returns at once when nobody waits for the result any more.
        execution.cancel_event.wait(float(execution.evaluate(self.seconds)))
        return step


EACH_STEP = Flow(
    nodes=[
        {"id": "begin", "type": "start", "next": "work"},
        Work(id="work", step="$( $INPUT.index + 1 )", seconds="$INPUT.seconds", log="$INPUT.log", next="done"),
        {"id": "done", "type": "end", "output": "$NODE.work"},
    ]
)

flow = Flow(
    flow_id="long_job",
    version="1",
    desc="Slow steps, one after the other",
    input_type={
        "type": "object",
        "properties": {
            "steps": {"type": "integer", "default": 10},
            "seconds": {"type": "number", "default": 1},
            "log": {"type": "string", "default": "long_job.log"},
        },
    },
    nodes=[
        {"id": "start", "type": "start", "next": "steps"},
        {
            "id": "steps",
            "type": "while",
            "condition": "$( $LOOP-INDEX < $INPUT.steps )",
            "childFlow": EACH_STEP,
            "next": "end",
        },
        {"id": "end", "type": "end", "output": {"steps": "$NODE.steps"}},
    ],
)
