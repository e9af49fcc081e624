"""Reading the nodes of a flow document: what is wrong becomes issues, and a stand-in keeps the rest readable."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, PrivateAttr, ValidationError

from plaita.base.issues import Issue
from plaita.base.json import step_of
from plaita.base.spelling import fold
from plaita.engine.values import OperationError, check_stored
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry

M = TypeVar("M", bound=BaseModel)
_FLOWS_INSIDE = frozenset(("childFlow", "child_flow", "branches"))


class Unreadable(Node):
    """Stands for a node whose document is wrong. It leads wherever the document may have meant to lead."""

    node_type = "unreadable"

    _raw: dict[str, Any] = PrivateAttr(default_factory=dict)
    _meant: type[Node] | None = PrivateAttr(default=None)

    @property
    def meant(self) -> type[Node] | None:
        """The class that the document names, if there is one."""
        return self._meant

    def targets(self) -> Iterator[tuple[str, Any]]:
        for field, value in self._raw.items():
            entries = value if isinstance(value, list) else [value]
            for entry in entries:
                texts = entry.values() if isinstance(entry, dict) else [entry]
                yield from ((field, text) for text in texts if isinstance(text, str))


def draft_node(raw: Any, index: int, registry: NodeRegistry, issues: list[Issue]) -> Node:
    """A node from its document."""
    if isinstance(raw, Node):
        return raw
    path = f"$.nodes[{index}]"
    if not isinstance(raw, dict):
        issues.append(Issue("error", "not_an_object", path, f"a node is an object, not {type(raw).__name__}"))
        return Unreadable(id=f"#{index}")
    node_id = raw.get("id") if isinstance(raw.get("id"), str) else None
    node_type = raw.get("type")
    cls = registry.get(node_type) if isinstance(node_type, str) else None
    found: list[Issue] = []
    if cls is None:
        message, hint = registry.unknown(node_type)
        found.append(Issue("error", "unknown_node_type", f"{path}.type", message, hint, node_id))
    else:
        found += deep_fields(raw, path, node_id)
        if not found:
            try:
                node: Node = validated(cls, raw)
                return node
            except ValidationError as e:
                found += field_issues(e, raw, path, node_id)
    issues += found
    stand_in = Unreadable(id=node_id or f"#{index}")
    stand_in._raw, stand_in._meant = raw, cls
    return stand_in


def validated(cls: type[M], raw: dict[str, Any]) -> M:
    """A model of a document. Null in a field that does not take it means that the field was left out.

    Raises ``ValidationError``.
    """
    try:
        model: M = cls.__pydantic_validator__.validate_python(raw)
    except ValidationError as e:
        less = _without_nulls(raw, e)
        if less is None:
            raise
        model = cls.__pydantic_validator__.validate_python(less)
    return model


def _without_nulls(raw: dict[str, Any], error: ValidationError) -> dict[str, Any] | None:
    """The document without the nulls that were refused; ``None`` when no null was."""
    less, found = copy.deepcopy(raw), False
    for refused in error.errors(include_url=False, include_context=False, include_input=False):
        at: Any = less
        for step in refused["loc"][:-1]:
            at = _inside(at, step)
        last = _spelled(at, refused["loc"][-1]) if refused["loc"] else None
        if isinstance(at, dict) and last in at and at[last] is None:
            del at[last]
            found = True
    return less if found else None


def _spelled(at: Any, step: int | str) -> int | str:
    """The key as the document has it; pydantic names the field or one of its spellings."""
    if isinstance(step, int) or not isinstance(at, dict) or step in at:
        return step
    return next((k for k in at if fold(str(k)) == fold(step)), step)


def _inside(at: Any, step: int | str) -> Any:
    if isinstance(step, int):
        return at[step] if isinstance(at, list) and step < len(at) else None
    return at.get(_spelled(at, step)) if isinstance(at, dict) else at


def deep_fields(raw: dict[str, Any], path: str, node_id: str | None) -> list[Issue]:
    """Fields that could not be stored as they are. Sub-flows have a bound of their own."""
    issues = []
    for field, value in raw.items():
        if (type(value) is dict or type(value) is list) and field not in _FLOWS_INSIDE:
            try:
                check_stored(value)
            except OperationError as e:
                issues.append(Issue("error", "too_deep", step_of(path, field), e.reason, "", node_id))
    return issues


def field_issues(error: ValidationError, raw: dict[str, Any], path: str, node_id: str | None) -> list[Issue]:
    """What pydantic found, at the places and under the spellings of the document."""
    issues = []
    for found in error.errors(include_url=False, include_context=False, include_input=False):
        where = path
        at: Any = raw
        for step in found["loc"]:
            where = step_of(where, _spelled(at, step))
            at = _inside(at, step)
        field = ".".join(str(s) for s in found["loc"])
        message = f"{field}: {found['msg'].removeprefix('Value error, ')}"
        if found["type"] == "missing":
            message = f"{field!r} is missing"
        issues.append(Issue("error", "bad_field", where, message, "", node_id))
    return issues
