"""A custom node: tells a person something, once, by a line in an outbox file beside the working directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from plaita import Node

OUTBOX = Path("outbox.jsonl")


class Notify(Node):
    """Writes ``text`` for ``to``; both may be expressions. Result: what was written.

    The process may die between the writing and the commit; then the node runs again, with the same idempotency key.
    A message whose key is in the outbox already is not written twice.
    """

    node_type: ClassVar[str] = "notify"
    node_name: ClassVar[str] = "Notify"

    to: str
    text: str

    def execute(self, execution: Any) -> dict[str, str]:
        message = {
            "key": execution.idempotency_key,
            "to": execution.evaluate(self.to),
            "text": execution.evaluate(self.text),
        }
        if not any(json.loads(line)["key"] == message["key"] for line in _lines()):
            with OUTBOX.open("a", encoding="utf-8") as outbox:
                outbox.write(json.dumps(message) + "\n")
        return {"to": message["to"], "text": message["text"]}


def _lines() -> list[str]:
    return OUTBOX.read_text(encoding="utf-8").splitlines() if OUTBOX.exists() else []
