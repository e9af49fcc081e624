"""A process that compiles flows written in Python and plays them: one JSON request a line, one JSON answer a line.

Runs under any Python that has a package named plaita, ours or the published one; it uses only what both document.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

logging.disable(logging.CRITICAL)


def serve() -> None:
    from plaita import FlowExecutionException
    from plaita.dsl.codeflow import flow_from_source

    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any] = {}
        try:
            answer["value"] = flow_from_source(request["source"]).run(request["input"])
        except FlowExecutionException as e:
            answer["error"] = {"class": type(e).__name__, "code": e.code}
        except (ValueError, RuntimeError, TypeError, LookupError, NameError, SyntaxError) as e:
            answer["error"] = {"class": type(e).__name__, "text": str(e)}
        print(json.dumps(answer, default=repr), flush=True)


if __name__ == "__main__":
    serve()
