"""The pages for authors of flows and nodes: every field is described, every example does what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from plaita.base.errors import WaitNotPossible
from plaita.control.flow_files import read_flow_file
from plaita.core.flow import Flow
from plaita.engine.conditions import OPERATORS
from plaita.engine.expression import BUILTIN_FUNCTIONS
from plaita.engine.expression.operators import OPERATIONS
from plaita.engine.types import TYPE_NAMES
from plaita.node.basic import BASE_FIELDS, Node
from plaita.node.handlers import RecoverableErrorHandler, Retry
from plaita.node.registry import get_default_registry
from tests.support.flows import registry
from tools import node_words as words
from tools.expression_page import OPERATOR_WORDS, case_of
from tools.node_examples import EXAMPLES, flow_of
from tools.node_page import CLASSES, PARTS, own_fields
from tools.reference_pages import REFERENCE

GUIDE = REFERENCE.parent / "guide" / "custom-nodes.md"
NODES_PAGE = (REFERENCE / "nodes.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CLASSES)
def test_every_field_of_a_type_is_described_and_nothing_else(name: str) -> None:
    assert own_fields(CLASSES[name]).keys() == words.FIELDS[name].keys()


MODELS: dict[str, tuple[type[BaseModel], dict[str, words.Word]]] = {
    "every node": (Node, words.COMMON),
    "a handler": (RecoverableErrorHandler, words.HANDLER),
    "retry": (Retry, words.RETRY),
    "a flow": (Flow, words.FLOW_FIELDS),
    **{f"{PARTS[name][0]} of {name}": (PARTS[name][1], words.PARTS[name]) for name in words.PARTS},
}


@pytest.mark.parametrize(("model", "described"), MODELS.values(), ids=list(MODELS))
def test_every_field_of_a_part_is_described_and_nothing_else(
    model: type[BaseModel], described: dict[str, words.Word]
) -> None:
    assert model.model_fields.keys() == described.keys()


def test_every_type_operator_and_type_name_is_described() -> None:
    assert words.FIELDS.keys() == EXAMPLES.keys() == CLASSES.keys()
    assert words.PARTS.keys() == PARTS.keys()
    assert words.OPERATOR_WORDS.keys() == set(OPERATORS)
    assert words.TYPE_WORDS.keys() == set(TYPE_NAMES)
    assert words.COMMON.keys() == BASE_FIELDS | {"output"}


def test_every_operator_of_the_grammar_is_described() -> None:
    told = " ".join(OPERATOR_WORDS).replace("not in", "not_in").replace("_", " ")
    assert all(f" {operator} " in f" {told} " for operator in OPERATIONS)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_type_does_what_the_page_says(name: str) -> None:
    example = EXAMPLES[name]
    flow = Flow.model_validate(flow_of(example), registry=registry())
    assert flow.issues == ()
    assert name in {node.node_type for node in flow.nodes}
    assert flow.may_wait() == (("n",) if example.waits else ())
    if example.waits:
        with pytest.raises(WaitNotPossible):
            flow.run(example.value)
    else:
        assert flow.run(example.value) == example.output


def test_every_example_on_the_page_is_one_that_is_run() -> None:
    shown = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", NODES_PAGE, re.DOTALL)]
    assert shown == [flow_of(EXAMPLES[name]) for name in CLASSES]


def test_every_function_is_on_the_page() -> None:
    text = (REFERENCE / "expressions.md").read_text(encoding="utf-8")
    assert len(BUILTIN_FUNCTIONS) == 73
    assert all(f"`{name}`" in text for name in BUILTIN_FUNCTIONS)


def test_an_example_that_is_no_case_of_the_suite_is_refused() -> None:
    with pytest.raises(LookupError):
        case_of("$INPUT.nobody.tries.this")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_node_of_the_guide_works_and_keeps_its_promises(capsys: pytest.CaptureFixture[str]) -> None:
    [code] = blocks("python")
    names: dict[str, Any] = {"__name__": "guide"}
    exec(compile(code, str(GUIDE), "exec"), names)
    assert "'receipt': 'ann-12.5 EUR'" in capsys.readouterr().out
    [key] = names["Bank"].paid
    assert key.endswith("@pay#1")
    assert names["Bank"].pay("ann", 1250, key) is False, "the same request again pays nothing"


def test_the_settings_of_the_guide_load_with_the_node_of_the_guide(tmp_path: Path) -> None:
    [code] = blocks("python")
    node_yaml, header = blocks("yaml")
    (tmp_path / "payment.py").write_text(code, encoding="utf-8")
    end = {"id": "end", "type": "end", "output": "$NODE.pay"}
    nodes = [{"id": "start", "type": "start", "next": "pay"}, *yaml.safe_load(node_yaml), end]
    path = tmp_path / "invoice.json"
    path.write_text(json.dumps({**yaml.safe_load(header), "nodes": nodes}), encoding="utf-8")
    try:
        file = read_flow_file(path)
        assert file.flow.issues == ()
        assert file.flow.run(to="ann", amount=1) == {"to": "ann", "amount": 1}
        assert file.flow.run(to="ann", amount="much") == {"paid": False}, "a type error is not retried"
    finally:
        get_default_registry().unregister("payment")
