"""One example for each node type: a flow, its input, and what comes out. A test runs them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple


class Example(NamedTuple):
    """``nodes`` stand after a start node ``s`` that leads to the first one. ``waits``: the flow waits at ``n``.

    ``dry``: nothing is sent, as nobody listens where it would go.
    """

    nodes: list[dict[str, Any]]
    value: dict[str, Any]
    output: Any = None
    waits: bool = False
    dry: bool = False


def _flow(output: str) -> dict[str, Any]:
    return {"nodes": [{"id": "s", "type": "start", "next": "e"}, {"id": "e", "type": "end", "output": output}]}


def _end(output: Any = "$NODE.n", node_id: str = "e") -> dict[str, Any]:
    return {"id": node_id, "type": "end", "output": output}


def _one(node: dict[str, Any], value: dict[str, Any], output: Any = None, *, waits: bool = False) -> Example:
    return Example([{"id": "n", **node, "next": "e"}, _end()], value, output, waits)


_NUMBERS: Final = {"numbers": [1, 2, 3, 4]}
_SMALL_OR_LARGE: Final = [_end("small", "small"), _end("large", "large")]

EXAMPLES: Final[dict[str, Example]] = {
    "approval": _one(
        {
            "type": "approval",
            "approvalTitle": "Pay {% $INPUT.amount %}?",
            "approvers": ["ann", "bob"],
            "approvalStrategy": "all",
        },
        {"amount": 480},
        waits=True,
    ),
    "assignment": _one(
        {"type": "assignment", "output": {"total": "$INPUT.price * $INPUT.count"}},
        {"price": 3, "count": 4},
        {"total": 12},
    ),
    "calculate": _one(
        {
            "type": "calculate",
            "expression": {
                "function_name": "sub",
                "params": {
                    "left": "$INPUT.price",
                    "right": {"function_name": "multiply", "params": {"left": "$INPUT.rebate", "right": 2}},
                },
            },
        },
        {"price": 10, "rebate": 3},
        4,
    ),
    "case": Example(
        [
            {
                "id": "n",
                "type": "case",
                "target": "$INPUT.size",
                "cases": [{"id": "small", "value": "S"}],
                "default": "large",
            },
            *_SMALL_OR_LARGE,
        ],
        {"size": "S"},
        "small",
    ),
    "child": _one(
        {"type": "child", "input": {"n": "$INPUT.amount"}, "childFlow": _flow("$INPUT.n + 1")}, {"amount": 4}, 5
    ),
    "code": _one(
        {
            "type": "code",
            "code": "import statistics\n\ndef run(numbers):\n    return statistics.median(numbers)\n",
            "input": "$INPUT.numbers",
        },
        _NUMBERS,
        2.5,
    ),
    "delay": _one({"type": "delay", "delaySeconds": "$INPUT.days", "delayUnit": "days"}, {"days": 3}, waits=True),
    "end": Example([{"id": "e", "type": "end", "output": "Hello {% $INPUT.name %}"}], {"name": "Ann"}, "Hello Ann"),
    "event": _one(
        {
            "type": "event",
            "eventType": "order.paid",
            "correlation": "$INPUT.order",
            "eventFilter": {"currency": "EUR"},
            "subscriptionTimeout": 86400,
        },
        {"order": "A17"},
        waits=True,
    ),
    "filter": _one(
        {"type": "filter", "collection": "$INPUT.numbers", "childFlow": _flow("$INPUT.item > 2")}, _NUMBERS, [3, 4]
    ),
    "find": _one({"type": "find", "collection": "$INPUT.numbers", "childFlow": _flow("$INPUT.item > 2")}, _NUMBERS, 3),
    "http": Example(
        [
            {
                "id": "n",
                "type": "http",
                "url": "https://api.example.org/orders/{% $INPUT.order %}",
                "method": "PATCH",
                "body": {"paid": "$INPUT.amount"},
                "headers": {"X-Request": "$EXECUTION_ID"},
                "failOn": ["4xx", "5xx"],
                "errorHandler": {"retryTimes": 3},
                "next": "e",
            },
            _end("$NODE.n.url"),
        ],
        {"order": "A17", "amount": 480},
        "https://api.example.org/orders/A17",
        dry=True,
    ),
    "http_callback": _one(
        {
            "type": "http_callback",
            "callbackPath": "/paid/{% $INPUT.order %}",
            "authToken": "env:PAYMENT_TOKEN",
            "callbackTimeoutMinutes": 30,
        },
        {"order": "A17"},
        waits=True,
    ),
    "if": Example(
        [
            {
                "id": "n",
                "type": "if",
                "condition": {"field": "$INPUT.amount", "operator": "gt", "value": 100},
                "next": "large",
                "elseNext": "small",
            },
            *_SMALL_OR_LARGE,
        ],
        {"amount": 120},
        "large",
    ),
    "kafka_queue": _one(
        {"type": "kafka_queue", "bootstrapServers": "kafka:9092", "topic": "orders", "groupId": "shop"}, {}, waits=True
    ),
    "loop": _one(
        {
            "type": "loop",
            "collection": "$INPUT.numbers",
            "childFlow": _flow("$INPUT.item * 10"),
            "condition": "$LOOP-RESULT < 30",
        },
        _NUMBERS,
        30,
    ),
    "map": _one(
        {"type": "map", "collection": "$INPUT.numbers", "childFlow": _flow("$INPUT.item * $INPUT.index")},
        _NUMBERS,
        [0, 2, 6, 12],
    ),
    "mock": _one({"type": "mock", "value": {"price": "$5"}}, {}, {"price": "$5"}),
    "parallel": _one(
        {
            "type": "parallel",
            "branches": [
                {"name": "double", "flow": _flow("$INPUT.n * 2")},
                {"name": "square", "flow": _flow("$INPUT.n * $INPUT.n")},
            ],
        },
        {"n": 5},
        {"double": 10, "square": 25},
    ),
    "redis": Example(
        [
            {
                "id": "n",
                "type": "redis",
                "target": "redis://localhost:6379/0",
                "command": "set",
                "arguments": ["order:{% $INPUT.order %}", "paid", "EX", 3600],
                "next": "e",
            },
            _end("$NODE.n.command"),
        ],
        {"order": "A17"},
        "SET",
        dry=True,
    ),
    "redis_queue": _one(
        {"type": "redis_queue", "queueName": "jobs:{% $INPUT.shop %}", "redisPassword": "env:REDIS_PASSWORD"},
        {"shop": "berlin"},
        waits=True,
    ),
    "reference": _one(
        {"type": "reference", "flowId": "tax", "input": {"n": "$INPUT.amount"}, "childFlow": _flow("$INPUT.n * 0.2")},
        {"amount": 50},
        10.0,
    ),
    "reduce": _one(
        {
            "type": "reduce",
            "collection": "$INPUT.numbers",
            "initial": 0,
            "childFlow": _flow("$INPUT.first + $INPUT.second"),
        },
        _NUMBERS,
        10,
    ),
    "start": Example([_end("$INPUT.name")], {"name": "Ann"}, "Ann"),
    "switch": Example(
        [
            {
                "id": "n",
                "type": "switch",
                "branches": [
                    {"next": "large", "condition": "$INPUT.amount > 100"},
                    {"next": "small", "isDefault": True},
                ],
            },
            *_SMALL_OR_LARGE,
        ],
        {"amount": 20},
        "small",
    ),
    "while": _one(
        {
            "type": "while",
            "condition": "$LOOP-INDEX < 3",
            "childFlow": _flow("$F.add($INPUT.item or 0, $INPUT.index)"),
        },
        {},
        3,
    ),
}


def flow_of(example: Example) -> dict[str, Any]:
    """The whole flow."""
    nodes = [{"id": "s", "type": "start", "next": example.nodes[0]["id"]}, *example.nodes]
    return {"globalContext": {"dry_run": True}, "nodes": nodes} if example.dry else {"nodes": nodes}
