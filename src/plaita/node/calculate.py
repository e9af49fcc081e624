"""``calculate``: calls of registered functions, nested in one another."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import AliasGenerator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from plaita.base.errors import InputError
from plaita.base.json import Json, admit, parse
from plaita.base.spelling import suggest
from plaita.engine import steps
from plaita.engine.expression import arithmetic
from plaita.engine.expression.functions import text
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.engine.types import Property, conform, parse_property
from plaita.engine.values import OperationError, copied
from plaita.node.basic import Node
from plaita.node.spelling import either

if TYPE_CHECKING:
    from plaita.engine.frames import Frame
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval

_NAME_KEYS = frozenset({"function_name", "functionName"})
_DEPTH_MAX = 60


@dataclass(frozen=True, slots=True)
class Function:
    """A function that nodes may call: by keyword, with the parameters of ``param_type``."""

    name: str
    func: Callable[..., Any]
    param_type: Mapping[str, Property]
    return_type: Property | None = None
    label: str = ""
    description: str = ""


FUNCTIONS: dict[str, Function] = {}
"""The functions by name; ``register_function`` adds to them."""


def register_function(
    name: str,
    func: Callable[..., Any],
    param_type: Mapping[str, Any],
    return_type: Any = None,
    label: str = "",
    description: str = "",
) -> None:
    """Add a function, replacing one of the same name; flows that are loaded afterwards call it.

    Types are written as everywhere: ``{"type": "number"}``, its JSON, or a ``Property``. The function must be quick and
    pure: it runs inside the machine, gets copies and gives JSON. Raises ``InputError`` for a type that is none and
    ``TypeError`` for a coroutine.
    """
    if inspect.iscoroutinefunction(func):
        raise TypeError(f"the function {name!r} must be a plain function, not a coroutine")
    types = {key: _typed(declared) for key, declared in param_type.items()}
    result = None if return_type is None else _typed(return_type)
    FUNCTIONS[name] = Function(name, func, types, result, label, description)


def _typed(declared: Any) -> Property:
    return declared if isinstance(declared, Property) else parse_property(declared)


class Call(BaseModel):
    """One call: ``function_name`` and ``params``, each a value, an expression or another call."""

    model_config = ConfigDict(
        extra="ignore",
        populate_by_name=True,
        protected_namespaces=(),
        alias_generator=AliasGenerator(validation_alias=lambda name: either(name)),
    )

    function_name: str
    params: dict[str, Any] = {}


class Calculate(Node):
    """The result of ``expression``: a function by name and its ``params``, which are values, expressions or calls.

    An object that has a ``function_name`` is a call; any other is a value.
    """

    node_type: ClassVar[str] = "calculate"
    node_name: ClassVar[str] = "Calculate"
    dry_run_safe: ClassVar[bool | None] = True
    builtin: ClassVar[bool] = True

    call: Any = Field(default=None, validation_alias=either("expression", "call"))

    @field_validator("call", mode="before")
    @classmethod
    def _call(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                value = parse(value, "expression")
            except InputError as e:
                raise ValueError(f"the text is no call: {e}") from None
        if isinstance(value, dict):
            return Call.model_validate(value)
        if isinstance(value, Call):
            return value
        raise ValueError('a calculation is an object such as {"function_name": "add", "params": {…}}')

    def link(self, link: NodeLink) -> None:
        if self.call is None:
            link.report("calculation_missing", "expression", f"node {self.id!r} has no expression")
            return
        link.cn.step = steps.assign(link.cn, self._called(link, self.call, "expression", _DEPTH_MAX))

    def _called(self, link: NodeLink, call: Call, field: str, depth: int) -> Eval:
        """A call and what is in it, compiled; what is wrong becomes issues."""
        function = FUNCTIONS.get(call.function_name)
        if function is None:
            hint = suggest(call.function_name, FUNCTIONS) or f"functions: {', '.join(sorted(FUNCTIONS))}"
            message = f"there is no function {call.function_name!r}"
            link.report("unknown_function", f"{field}.function_name", message, hint=hint)
        params = {k: self._param(link, v, f"{field}.params.{k}", depth - 1) for k, v in call.params.items()}
        if function is None:
            return link.value(None, field)
        for key in params.keys() - function.param_type.keys():
            hint = suggest(key, function.param_type) or f"parameters: {', '.join(function.param_type)}"
            message = f"{function.name!r} has no parameter {key!r}"
            link.report("unknown_parameter", f"{field}.params.{key}", message, hint=hint)
        for key, declared in function.param_type.items():
            if key not in params and declared.required:
                link.report("parameter_missing", f"{field}.params", f"{function.name!r} needs the parameter {key!r}")
        return _applied(self.id, function, params)

    def _param(self, link: NodeLink, raw: Any, field: str, depth: int) -> Eval:
        if isinstance(raw, dict) and raw.keys() & _NAME_KEYS:
            try:
                raw = Call.model_validate(raw)
            except ValidationError as e:
                link.report("bad_field", field, f"this is no call: {e.errors()[0]['msg']}")
        if not isinstance(raw, Call):
            return link.value(raw, field)
        if depth <= 0:
            link.report("too_deep", field, f"calls are nested deeper than {_DEPTH_MAX}")
            return link.value(None, field)
        return self._called(link, raw, field, depth)


def _applied(node_id: str, function: Function, params: Mapping[str, Eval]) -> Eval:
    def evaluate(frame: Frame) -> Json:
        given = {key: value(frame) for key, value in params.items()}
        try:
            checked = {key: conform(function.param_type[key], value, f"$.{key}") for key, value in given.items()}
            result = admit(function.func(**{key: copied(value) for key, value in checked.items()}))
            return result if function.return_type is None else conform(function.return_type, result, "$")
        except OperationError as e:
            reason = e.reason
        except Exception as e:  # noqa: BLE001 - a registered function is foreign code
            reason = str(e) if isinstance(e, InputError) else f"{type(e).__name__}: {e}"
        message = f"node {node_id!r} (calculate): {function.name}: {reason}"
        raise FailureRaised(Failure("node_error", NODE_CODE, message))

    return evaluate


_NUMBER = {"type": "number", "required": True}
_TEXT = {"type": "string", "required": True}
_PAIR = {"left": _NUMBER, "right": _NUMBER}


def _register_all_functions() -> None:
    number, string, anything = {"type": "number"}, {"type": "string"}, {"type": "any"}
    for name, work, sign, what in (
        ("add", arithmetic.add, "+", "sum"),
        ("sub", arithmetic.subtract, "-", "difference"),
        ("multiply", arithmetic.multiply, "*", "product"),
        ("div", arithmetic.divide, "/", "quotient"),
    ):
        register_function(name, _of_pair(work), _PAIR, number, sign, what)
    register_function("concat", _concat, {"left": anything, "right": anything}, string, "concat", "both as one text")
    texts = {"source": _TEXT, "which": _TEXT, "target": _TEXT}
    register_function("replace", _replace, texts, string, "replace", "every occurrence replaced")


def _of_pair(work: Callable[[Json, Json], Json]) -> Callable[..., Json]:
    return lambda left, right: work(left, right)


def _concat(left: Json = None, right: Json = None) -> str:
    return text.concat(left, right)


def _replace(source: Json, which: Json, target: Json) -> str:
    return text.replace(source, which, target)


_register_all_functions()
