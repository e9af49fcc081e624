"""``if``, ``switch`` and ``case``: nodes whose result is the id of the node that follows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from plaita.engine import steps
from plaita.engine.values import json_equal
from plaita.node.basic import Node
from plaita.node.condition import (
    CONDITION_OP_CONTAINS,
    CONDITION_OP_EQ,
    CONDITION_OP_FALSY,
    CONDITION_OP_GT,
    CONDITION_OP_GTE,
    CONDITION_OP_IN,
    CONDITION_OP_LT,
    CONDITION_OP_LTE,
    CONDITION_OP_NE,
    CONDITION_OP_NOT_CONTAINS,
    CONDITION_OP_NOTIN,
    CONDITION_OP_TRUTHY,
    LOGIC_TYPE_AND,
    LOGIC_TYPE_OR,
    Condition,
    ConditionGroup,
    condition_from_json,
)
from plaita.node.spelling import either

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import CNode
    from plaita.engine.steps import Test

__all__ = [
    "CONDITION_OP_CONTAINS", "CONDITION_OP_EQ", "CONDITION_OP_FALSY", "CONDITION_OP_GT", "CONDITION_OP_GTE",
    "CONDITION_OP_IN", "CONDITION_OP_LT", "CONDITION_OP_LTE", "CONDITION_OP_NE", "CONDITION_OP_NOTIN",
    "CONDITION_OP_NOT_CONTAINS", "CONDITION_OP_TRUTHY", "LOGIC_TYPE_AND", "LOGIC_TYPE_OR", "Bool", "Branch", "Choice",
    "Condition", "ConditionGroup", "Logic", "Switch", "SwitchLegacy", "condition_from_json",
]  # fmt: skip


class Bool(Node):
    """``next`` when ``condition`` holds, else ``else_next``. Without a condition: ``else_next``."""

    node_type: ClassVar[str] = "if"
    node_name: ClassVar[str] = "If"
    LEGACY_KEYS: ClassVar[frozenset[str]] = frozenset({"output_type", "outputType", "branches"})
    branching: ClassVar[bool] = True
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    condition: Any = None
    next: Any = "true"
    else_next: Any = "false"

    def targets(self) -> Iterator[tuple[str, Any]]:
        yield "next", "true" if self.next is None else self.next
        yield "else_next", "false" if self.else_next is None else self.else_next

    def link(self, link: NodeLink) -> None:
        otherwise = self._way(link, "else_next")
        then = self._way(link, "next")
        arms = [] if self.condition is None else [(link.condition(self.condition, "condition"), then)]
        link.cn.step = steps.branch(link.cn, arms, otherwise)

    def _way(self, link: NodeLink, field: str) -> CNode:
        """Where a field leads. Left out, it means a node of the documented name."""
        given, documented = getattr(self, field), type(self).model_fields[field].default
        target = documented if given is None else given
        if (given is None or field not in self.model_fields_set) and target not in link.graph.nodes:
            text = f"node {self.id!r} (if) needs {field!r}: the node to go to when the condition "
            text += "does not hold" if field == "else_next" else "holds"
            link.report("branch_missing", field, text, hint=f"nodes: {', '.join(list(link.graph.nodes)[:12])}")
            return link.cn
        return link.target(target, field)


class Branch(BaseModel):
    """One way out of a ``switch``: taken when ``condition`` holds, higher ``priority`` first; the default one also when
    no other was."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True, defer_build=True)

    name: str | None = None
    next: Any = None
    condition: Any = None
    priority: int = 0
    label: str | None = None
    desc: str | None = None
    is_default: bool = Field(False, validation_alias=either("is_default"))

    @property
    def target(self) -> Any:
        return self.next if self.next is not None else self.name


class Switch(Node):
    """The first branch whose condition holds, by descending priority; else the default branch."""

    node_type: ClassVar[str] = "switch"
    node_name: ClassVar[str] = "Switch"
    branching: ClassVar[bool] = True
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    branches: list[Branch] = []
    output_type: Any = None

    def targets(self) -> Iterator[tuple[str, Any]]:
        for i, branch in enumerate(self.branches):
            yield f"branches[{i}].{'next' if branch.next is not None else 'name'}", branch.target

    def link(self, link: NodeLink) -> None:
        otherwise = None
        arms: list[tuple[int, Test, Any]] = []
        for i, branch in enumerate(self.branches):
            target = link.target(branch.target, f"branches[{i}].next")
            if branch.condition is not None:
                arms.append((branch.priority, link.condition(branch.condition, f"branches[{i}].condition"), target))
            elif not branch.is_default:
                text = "a branch without a condition is never taken"
                hint = "write a condition, or isDefault: true"
                link.report("branch_without_condition", f"branches[{i}]", text, hint=hint, severity="warning")
            if branch.is_default:
                otherwise = otherwise or target
        arms.sort(key=lambda arm: -arm[0])
        link.cn.step = steps.branch(link.cn, [(test, target) for _, test, target in arms], otherwise)


Logic = Switch
"""The same type under its other documented name."""


class Choice(BaseModel):
    """One case: taken when the evaluated ``value`` equals the target's."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    id: str
    value: Any
    name: str | None = None


class SwitchLegacy(Node):
    """The first case that equals ``target``, else ``default``."""

    node_type: ClassVar[str] = "case"
    node_name: ClassVar[str] = "Case"
    LEGACY_KEYS: ClassVar[frozenset[str]] = frozenset({"output_type", "outputType", "branches"})
    branching: ClassVar[bool] = True
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    target: Any = None
    cases: list[Choice] = []
    default: Any = "default"

    @field_validator("default")
    @classmethod
    def _default(cls, value: Any) -> Any:
        return "default" if value is None else value

    def targets(self) -> Iterator[tuple[str, Any]]:
        for i, case in enumerate(self.cases):
            yield f"cases[{i}].id", case.id
        yield "default", self.default

    def link(self, link: NodeLink) -> None:
        subject = link.value(self.target, "target")

        def matches(value: Any) -> Test:
            return lambda frame: json_equal(subject(frame), value(frame))

        arms = []
        for i, case in enumerate(self.cases):
            value = link.value(case.value, f"cases[{i}].value")
            arms.append((matches(value), link.target(case.id, f"cases[{i}].id")))
        link.cn.step = steps.branch(link.cn, arms, link.target(self.default, "default"))
