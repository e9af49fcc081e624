"""Every documented node in its smallest form, and every documented field in every spelling."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from plaita.base.errors import FlowLoadError
from plaita.core.executor import FlowExecution
from plaita.core.flow import Flow
from plaita.settings import Settings, use_settings

FLOWS = Path(__file__).parents[1] / "flows"
START, END, *NODES = json.loads((FLOWS / "minimal-nodes.json").read_text(encoding="utf-8"))
FIELDS: dict[str, dict[str, list[str]]] = json.loads((FLOWS / "node-fields.json").read_text(encoding="utf-8"))
BY_TYPE: dict[str, dict[str, Any]] = {node["type"]: node for node in (START, END, *NODES)}
GIVEN = {"n": 1, "l": [1, 2]}
BODY = {"nodes": [{"type": "start", "id": "a", "next": "b"}, {"type": "end", "id": "b", "output": "other"}]}
RESULTS: dict[str, Any] = {
    "assignment": 1, "if": "e", "switch": "e", "case": "e", "child": 1, "reference": "other", "loop": 2, "map": [1, 2],
    "filter": [1, 2], "find": 1, "reduce": 3, "while": 1, "parallel": {"p": 1}, "mock": {"k": 1}, "code": 1,
    "calculate": 3, "redis": {"dry_run": True, "skipped": "redis", "command": "GET"},
    "http": {"dry_run": True, "skipped": "http", "method": "GET", "url": "http://127.0.0.1:9/"},
}  # fmt: skip
TYPED = {
    "name": "N", "desc": "D", "output": 1, "timeout": "5000", "source_line": 3, "subscription_timeout": 5,
    "timeout_handler": {"strategy": "continue"}, "error_handler": {"strategy": "continue"}, "event_filter": {"a": 1},
    "output_type": {"dataType": "any"}, "upstream_output": [{"upstream": "s", "value": 1}], "input": {"a": 1},
    "language": "python", "sandbox_backend": "subprocess", "item_type": {"dataType": "any"}, "max_concurrent": 2,
    "condition": {"field": 1, "operator": "eq", "value": 1}, "flow_version": "1", "addressing": {}, "delegate": {},
    "sasl_mechanism": "PLAIN", "partition": 0, "error": {"code": 1, "message": "no"}, "auth_token": "env:TOKEN",
    "child_flow": BODY, "redis_password": "env:PASSWORD", "sasl_password": "env:PASSWORD", "query": {"q": 1},
    "headers": {"x": "y"},
}  # fmt: skip
"""A value for each field that needs a certain one and is neither in the smallest node nor has a literal default."""


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    use_settings(Settings())
    yield
    use_settings(None)


def load(node: dict[str, Any], **header: Any) -> Flow:
    """The node between a start and an end; a flow it refers to is found."""
    nodes = [START, node, {**END, "output": "$NODE.n"}]
    if node["type"] == "start":
        nodes = [{**node, "next": "e"}, END]
    elif node["type"] == "end":
        nodes = [{**START, "next": "e"}, node]
    return Flow.model_validate(
        {"nodes": nodes, **header}, resolver=lambda flow_id, version: {"flow_id": "other", **BODY}
    )


def complete(flow: Flow) -> Any:
    """The result of the node: nothing is sent, waits are answered by an event."""
    step = FlowExecution().run_distributed(flow, GIVEN)
    while not step["is_end"]:
        given: dict[str, Any] = {}
        if step["is_suspend"]:
            given = {"resume_type": "event", "resume_data": {"subscription_id": step["result"]["subscription_id"]}}
        step = FlowExecution().run_distributed(flow, saved_context=json.loads(json.dumps(step["context"])), **given)
    return step["result"]


@pytest.mark.parametrize("node", NODES, ids=lambda node: node["type"])
def test_the_smallest_node_loads_without_a_word_and_runs_to_the_end(node: dict[str, Any]) -> None:
    flow = load(node, globalContext={"dry_run": True})
    found = complete(flow)
    assert flow.issues == ()
    assert found == RESULTS[node["type"]] if node["type"] in RESULTS else found["status"] == "completed"


def spellings(field: str, alias: str) -> list[str]:
    documented = re.findall(r"'(\w+)'", alias) if alias.startswith("AliasChoices") else [alias] if alias else []
    return sorted({field, to_camel(field), *documented})


def keys_of(field: str) -> list[str]:
    """The keys that the smallest nodes use for a field."""
    return [field, to_camel(field), *(["expression"] if field == "call" else [])]


def value_of(node_type: str, field: str, default: str | None) -> Any:
    """What the smallest node says, a value of the type that is needed, or the default."""
    for key in keys_of(field):
        if key in BY_TYPE[node_type]:
            return BY_TYPE[node_type][key]
    if field in TYPED:
        return TYPED[field]
    value = ast.literal_eval(default or "None")
    return "text" if value is None else value


def spelled() -> Iterator[Any]:
    for node_type, fields in FIELDS.items():
        for field, (_, default, alias) in fields.items():
            for key in spellings(field, alias):
                yield pytest.param(node_type, field, key, default, id=f"{node_type}.{key}")


@pytest.mark.parametrize(("node_type", "field", "key", "default"), list(spelled()))
def test_every_documented_field_is_known_in_every_spelling(
    node_type: str, field: str, key: str, default: str | None
) -> None:
    node = {k: v for k, v in BY_TYPE[node_type].items() if k not in keys_of(field)}
    flow = load({**node, key: value_of(node_type, field, default)})
    assert [i for i in flow.issues if i.path.endswith(f".{key}")] == []


def test_every_documented_type_is_there() -> None:
    assert {node["type"] for node in NODES} | {"start", "end"} == FIELDS.keys()


@pytest.mark.parametrize(("node_type", "field"), [(t, f) for t in sorted(FIELDS) for f in FIELDS[t]])
def test_a_key_that_only_looks_like_a_field_is_an_error(node_type: str, field: str) -> None:
    wrong = f"{field[0].upper()}{to_camel(field)[1:]}"
    with pytest.raises(FlowLoadError, match="misspelled_key"):
        load({**BY_TYPE[node_type], wrong: None})
