"""Conditions as objects, for programs that build or look at them; a node takes a document just as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from plaita.base.clock import SystemClock
from plaita.base.documents import Documented, as_written
from plaita.base.errors import InputError
from plaita.base.json import Json, admit, parse
from plaita.engine.conditions import compile_condition
from plaita.engine.expression import EvaluationError, get_default_expression_registry
from plaita.engine.expression.documented import scope_of

CONDITION_OP_EQ = "eq"
CONDITION_OP_NE = "ne"
CONDITION_OP_GT = "gt"
CONDITION_OP_GTE = "gte"
CONDITION_OP_LT = "lt"
CONDITION_OP_LTE = "lte"
CONDITION_OP_IN = "in"
CONDITION_OP_NOTIN = "notIn"
CONDITION_OP_CONTAINS = "contains"
CONDITION_OP_NOT_CONTAINS = "notContains"
CONDITION_OP_TRUTHY = "truthy"
CONDITION_OP_FALSY = "falsy"
LOGIC_TYPE_AND = "and"
LOGIC_TYPE_OR = "or"

Operator = Literal[
    "eq", "ne", "gt", "gte", "lt", "lte", "in", "notIn", "contains", "notContains", "truthy", "falsy"
]  # fmt: skip


class _Test(BaseModel, Documented):
    """Something that holds in a context or does not."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    def match(self, context: Any) -> bool:
        """Does it hold? ``context`` is ``{"$INPUT": …}``, an ``ExecutionContext`` or what a node is given.

        Raises ``EvaluationError`` when it cannot be evaluated.
        """
        roots = context if isinstance(context, Mapping) else context.context
        scope = scope_of(admit(dict(roots)), SystemClock().now_ms())
        compiled = compile_condition(self.document(), scope.names, get_default_expression_registry().table())
        for finding in compiled.findings:
            if finding.severity == "error":
                raise EvaluationError(str(self.document()), finding.message)
        return bool(compiled.run(scope))


class Condition(_Test):
    """``field`` compared with ``value``; both may be expressions."""

    field: Any
    operator: Operator
    value: Any

    def document(self) -> Json:
        return {"field": self.field, "operator": self.operator, "value": self.value}


class ConditionGroup(_Test):
    """``relation`` (``and``, ``or``) of conditions and groups."""

    relation: Literal["and", "or"]
    conditions: list[Any] = []

    @field_validator("conditions")
    @classmethod
    def _conditions(cls, value: list[Any]) -> list[Any]:
        return [member if isinstance(member, _Test) else condition_from_json(member) for member in value]

    def document(self) -> Json:
        return {"relation": self.relation, "conditions": [as_written(member) for member in self.conditions]}


def condition_from_json(content: Any) -> Condition | ConditionGroup | None:
    """A condition or group from its document or JSON text; ``None`` for nothing, and for what is incomplete."""
    if isinstance(content, _Test):
        return content  # type: ignore[return-value]
    try:
        document = parse(content, "the condition") if isinstance(content, str) else content
        if not isinstance(document, dict):
            return None
        return (ConditionGroup if "relation" in document else Condition).model_validate(document)
    except (InputError, ValidationError):
        return None
