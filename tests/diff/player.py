"""A process that plays flows: one JSON request a line, one JSON answer a line, the order of nodes with it.

Runs under any Python that has a package named plaita, ours or the published one; it uses only what both document.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

logging.disable(logging.CRITICAL)


def serve() -> None:
    from plaita import Flow, FlowCallback, FlowExecution, FlowExecutionException

    class Order(FlowCallback):
        def __init__(self) -> None:
            self.ids: list[str] = []

        def on_node_start(self, flow: Any, node: Any, **kwargs: Any) -> None:
            self.ids.append(node.id)

    for line in sys.stdin:
        request = json.loads(line)
        order, answer = Order(), {}
        try:
            flow = Flow.model_validate(request["flow"])
            answer["value"] = FlowExecution(callback_handlers=[order]).execute(flow, request["input"])
        except FlowExecutionException as e:
            answer["error"] = {
                "class": type(e).__name__,
                "code": e.code,
                "type": str(getattr(e.error_type, "value", e.error_type)),
            }
        except (ValueError, RuntimeError, TypeError, LookupError, NameError) as e:
            answer["error"] = {"class": type(e).__name__, "text": str(e)}
        answer["order"] = order.ids
        print(json.dumps(answer, default=repr), flush=True)


if __name__ == "__main__":
    serve()
