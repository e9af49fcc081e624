"""A process that runs flows on demand: one JSON request a line, one JSON answer a line.

Runs under any Python that has a package named plaita, ours or the published one; it uses only what both document.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

logging.disable(logging.CRITICAL)


def serve() -> None:
    from plaita import Flow

    loaded: dict[str, Any] = {}
    evaluate = _evaluator()
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        if request["do"] == "load":
            text = request["text"]
            started = time.perf_counter()
            loaded[request["name"]] = Flow.from_string(text)
            answer["seconds"] = time.perf_counter() - started
        elif request["do"] == "run":
            flow, value = loaded[request["name"]], request["input"]
            started = time.perf_counter()
            for _ in range(request["times"]):
                answer["output"] = flow.run(value)
            answer["seconds"] = (time.perf_counter() - started) / request["times"]
        elif request["do"] == "evaluate":
            run, times = evaluate(request["expression"], request["input"]), range(request["times"])
            started = time.perf_counter()
            for _ in times:
                answer["output"] = run()
            answer["seconds"] = (time.perf_counter() - started) / request["times"]
        print(json.dumps(answer), flush=True)


def _evaluator() -> Any:
    """Expression and input to a function of no arguments that evaluates once."""
    if sys.argv[1] == "ours":
        from plaita.core.expression import ExpressionEvaluator

        return lambda expression, value: ExpressionEvaluator().prepared(expression, {"$INPUT": value})
    from plaita.node.decide import evaluate

    return lambda expression, value: lambda: evaluate(expression, {"$INPUT": value, "$NODE": {}, "$GLOBAL": {}}, "$")


if __name__ == "__main__":
    serve()
