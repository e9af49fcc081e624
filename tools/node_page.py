"""The reference page of nodes: every type, its fields, an example; and what all of them share."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Mapping
from typing import Any, Final, Literal, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from plaita.core.flow import Flow
from plaita.engine.conditions import OPERATORS
from plaita.engine.types import PROPERTY_KEYS, TYPE_NAMES
from plaita.node.basic import Node
from plaita.node.concurrent import ParallelBranch
from plaita.node.decide import Branch, Choice
from plaita.node.handlers import RecoverableErrorHandler, Retry
from plaita.node.registry import BUILT_IN, NodeRegistry
from tools import node_words as words
from tools.node_examples import EXAMPLES, Example, flow_of
from tools.node_words import Word
from tools.page_parts import page, table

PARTS: Final[dict[str, tuple[str, type[BaseModel]]]] = {
    "switch": ("branches", Branch),
    "case": ("cases", Choice),
    "parallel": ("branches", ParallelBranch),
}
KINDS: Final = {str: "text", bool: "true or false", int: "integer", float: "number", list: "list", dict: "object"}
CLASSES: Final = {name: NodeRegistry().get(name) or Node for name in sorted(BUILT_IN)}
INTRO: Final = (
    "A node is an object with a `type`. Every field answers to its snake_case and its camelCase name. A field that "
    "takes an expression is one when it begins with `$`, and a template when it holds `{% … %}`: see "
    "[Expressions](expressions.md). Custom types: see [Custom nodes](../guide/custom-nodes.md)."
)


def node_page(notice: str) -> str:
    """The whole page."""
    parts = [notice, "# Nodes", INTRO, ", ".join(f"[`{name}`](#{name})" for name in CLASSES) + "."]
    for name, cls in CLASSES.items():
        parts += _type(name, cls)
    parts += ["## Fields of every node", _fields(Node, words.COMMON)]
    return page([*parts, *_handlers(), *_conditions(), *_types(), *_flow()])


def own_fields(cls: type[Node]) -> dict[str, FieldInfo]:
    """What a type adds to the fields of every node, or changes: ``output`` only where it is read."""
    fields = {n: i for n, i in cls.model_fields.items() if n not in Node.model_fields}
    if "output" in words.FIELDS[cls.node_type]:
        fields["output"] = cls.model_fields["output"]
    if cls.model_fields["next"].default is not None:
        fields["next"] = cls.model_fields["next"]
    return fields


def _type(name: str, cls: type[Node]) -> list[str]:
    parts = [f"## {name}", inspect.cleandoc(cls.__doc__ or "").replace("``", "`")]
    fields = own_fields(cls)
    if fields:
        parts.append(_rows(fields, words.FIELDS[name]))
    if name in PARTS:
        field, model = PARTS[name]
        parts += [f"Each of `{field}`:", _fields(model, words.PARTS[name])]
    return [*parts, *_example(EXAMPLES[name])]


def _example(example: Example) -> list[str]:
    flow = flow_of(example)
    nodes = ",\n".join(f"  {json.dumps(node, ensure_ascii=False)}" for node in flow.pop("nodes"))
    header = "".join(f"{json.dumps(key)}: {json.dumps(value)}, " for key, value in flow.items())
    given = json.dumps(example.value, ensure_ascii=False)
    what = "it waits at `n`" if example.waits else f"the output is `{json.dumps(example.output, ensure_ascii=False)}`"
    return [f'```json\n{{{header}"nodes": [\n{nodes}\n]}}\n```', f"With the input `{given}` {what}."]


def _fields(model: type[BaseModel], meanings: Mapping[str, Word]) -> str:
    return _rows(dict(model.model_fields), meanings)


def _rows(fields: Mapping[str, FieldInfo], meanings: Mapping[str, Word]) -> str:
    order = [name for name in meanings if name in fields]
    rows = [_row(name, fields[name], meanings[name]) for name in [*order, *(fields.keys() - meanings.keys())]]
    return table("field", "type", "default", "meaning", rows=rows)


def _row(name: str, info: FieldInfo, word: Word) -> tuple[str, ...]:
    alias = info.validation_alias
    spellings = [str(c) for c in alias.choices] if isinstance(alias, AliasChoices) else [name]
    kind = word.kind or kind_in_words(info.annotation)
    return ", ".join(f"`{s}`" for s in dict.fromkeys((name, *spellings))), kind, _default(info), word.meaning


def kind_in_words(annotation: Any) -> str:
    """A type of a model as an author calls it."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(kind_in_words(a) for a in inner if a is not type(None))
    if origin is Literal:
        return " or ".join(f"`{a}`" for a in inner)
    if origin is list and inner and inner[0] in (str, int):
        return f"list of {KINDS[inner[0]]}s"
    if origin is list and inner and get_origin(inner[0]) is dict:
        return "list of objects"
    plain = origin or annotation
    if isinstance(plain, type) and issubclass(plain, str):
        return "text"
    return KINDS.get(plain, "any value")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.default
    if value is PydanticUndefined:
        value = info.default_factory() if info.default_factory is not None else None  # type: ignore[call-arg]
    if value is None or value == "" or isinstance(value, BaseModel):
        return "none"
    return f"`{json.dumps(value)}`"


def _handlers() -> list[str]:
    return [
        "## Handlers",
        "`errorHandler` and `timeoutHandler` of a node; only the former may retry. Without one the flow fails. Errors "
        "of expressions, types and values are never retried: they would fail in the same way again.",
        _fields(RecoverableErrorHandler, words.HANDLER),
        "`retry`:",
        _fields(Retry, words.RETRY),
    ]


def _conditions() -> list[str]:
    rows = [(f"`{o}`", words.OPERATOR_WORDS[o], "holds" if holds_for_null(o) else "does not") for o in OPERATORS]
    return [
        "## Conditions",
        'A condition is `{"field": …, "operator": …, "value": …}`, both sides evaluated; or an expression, which holds '
        'when its value is truthy. A group is `{"relation": "and" or "or", "conditions": […]}`; its members are '
        "conditions and groups, and it stops at the member that decides.",
        "A null on either side fails no node: the condition holds or does not, as the last column says of a null "
        "`field` and the value 1. Other types that do not fit fail it, as in an expression.",
        table("operator", "holds when", "null", rows=rows),
    ]


def holds_for_null(operator: str) -> bool:
    """Does a condition hold when its field is null?"""
    condition = {"field": None, "operator": operator, "value": 1}
    asks = {"id": "n", "type": "if", "condition": condition, "next": "yes", "elseNext": "no"}
    ends = [{"id": name, "type": "end", "output": name == "yes"} for name in ("yes", "no")]
    flow = Flow.model_validate({"nodes": [{"id": "s", "type": "start", "next": "n"}, asks, *ends]})
    return flow.run() is True


def _types() -> list[str]:
    groups = (
        ("type", "Name of the type.", ("type", "data_type", "dataType")),
        ("name", "Key of the value in an object.", ("name",)),
        ("label", "For people.", ("label", "title")),
        ("description", "For people.", ("description", "desc")),
        (
            "required",
            "The value must be there; in an object also a list of the keys that must.",
            ("required", "is_required", "isRequired"),
        ),
        (
            "default",
            "What an absent value becomes; a null at the top counts as absent.",
            ("default", "default_value", "defaultValue"),
        ),
        ("properties", "Types by key, or a list of named types.", ("properties", "children")),
        (
            "items",
            "Type of each element of an array, or a list of one for each.",
            ("items", "item_type", "itemType"),
        ),
    )
    missing = PROPERTY_KEYS.symmetric_difference(key for *_, keys in groups for key in keys)
    if missing:
        raise ValueError(f"keys of a type that the page lacks, or that are gone: {sorted(missing)}")
    return [
        "## Types",
        "`inputType`, `outputType`: an object that says what a value must be. Nothing is coerced; the error names the "
        "path.",
        table("key", "meaning", rows=[(", ".join(f"`{k}`" for k in keys), text) for _, text, keys in groups]),
        table("type", "fits", rows=[(f"`{name}`", words.TYPE_WORDS[name]) for name in TYPE_NAMES]),
    ]


def _flow() -> list[str]:
    return [
        "## Fields of a flow",
        _fields(Flow, words.FLOW_FIELDS),
        "`source_format` is accepted and not read. Other keys are warnings, or errors when they look like a known one.",
    ]
