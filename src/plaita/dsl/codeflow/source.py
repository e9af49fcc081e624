"""Finding the functions of a source: which is the flow, which are its child flows, what their decorators say."""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from plaita.base.issues import Issue
from plaita.base.limits import FLOW_TEXT_MAX
from plaita.base.spelling import suggest
from plaita.dsl.codeflow.calls import as_json
from plaita.dsl.codeflow.errors import CodeflowError, Complaints, Refused

SOURCE_MAX: Final = min(1_000_000, FLOW_TEXT_MAX)
"""Characters of one source."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One function: its tree, the text it stands in, and how it finds child flows by name."""

    function: ast.FunctionDef
    lines: list[str]
    source: str
    child: Callable[[str], Definition | None]
    constants: Mapping[str, Any] = field(default_factory=dict)

    @property
    def decorator(self) -> ast.expr | None:
        """The ``@flow`` or ``@childflow`` of the function."""
        return next((d for d in self.function.decorator_list if decorator_name(d) in ("flow", "childflow")), None)

    def options(self, complaints: Complaints) -> dict[str, Any]:
        """What its decorator says, by name; ``flow_id`` for the first value. Only literals can be read."""
        decorator = self.decorator
        found: dict[str, Any] = {}
        if not isinstance(decorator, ast.Call):
            return found
        given = [*(("flow_id", a) for a in decorator.args), *((k.arg or "**", k.value) for k in decorator.keywords)]
        for name, value in given:
            try:
                found[name] = as_json(value, ast.literal_eval(value))
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                complaints.add(Refused(value, f"{name} of the decorator is no literal", "write it out"), self.lines)
            except Refused as e:
                complaints.add(e, self.lines)
        return found


def decorator_name(node: ast.expr) -> str:
    """``flow`` for ``@flow``, ``@flow(…)`` and ``@codeflow.flow(…)``."""
    called = node.func if isinstance(node, ast.Call) else node
    match called:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def tree_of(text: str, source: str) -> ast.Module:
    """The tree of a source. Raises ``CodeflowError`` when it is no Python."""
    if len(text) > SOURCE_MAX:
        _fail(source, f"the source has more than {SOURCE_MAX} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as e:
        issue = Issue("error", "python_syntax", "$", f"this is no Python: {e.msg}", "", None, e.lineno, e.offset)
        raise CodeflowError([issue], source) from None
    except (ValueError, RecursionError, MemoryError) as e:
        _fail(source, f"this cannot be read as Python: {e or type(e).__name__}")


def definition_in(text: str, flow_id: str | None, source: str) -> Definition:
    """The flow of a source: the only ``@flow``, or the one called ``flow_id`` (function or id)."""
    tree = tree_of(text, source)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    lines, constants = text.splitlines(), constants_of(tree)

    def define(name: str) -> Definition:
        return Definition(functions[name], lines, source, child, constants)

    def child(name: str) -> Definition | None:
        return define(name) if name in functions and _is(functions[name], "childflow") else None

    flows = [name for name, f in functions.items() if _is(f, "flow")]
    flows = flows or [name for name, f in functions.items() if not _is(f, "childflow")]
    if flow_id is not None:
        ids = {define(name).options(Complaints(source)).get("flow_id"): name for name in flows}
        name = flow_id if flow_id in flows else ids.get(flow_id)
        if name is None:
            _fail(source, f"there is no flow {flow_id!r}", suggest(flow_id, flows) or f"flows: {', '.join(flows)}")
        return define(name)
    if not flows:
        _fail(source, "there is no function that could be a flow", 'decorate one: @flow("order")')
    if len(flows) > 1:
        _fail(source, f"there are several flows: {', '.join(flows)}", "name one: --flow-id, or flow_id=…")
    return define(flows[0])


def definition_of(function: Callable[..., Any]) -> Definition:
    """The definition of a function of a running program, child flows by what their names mean there."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None:
        _fail(str(function), "only a function can be a flow")
    source = code.co_filename
    text = "".join(linecache.getlines(source, getattr(plain, "__globals__", None)))
    tree = tree_of(text, source)
    found = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _begins_at(n, code)), None)
    if found is None:
        _fail(source, f"the source of {plain.__name__!r} cannot be found", "keep the flow in a file")

    def child(name: str) -> Definition | None:
        marked = _meaning(plain, name)
        inner = getattr(marked, "function", None)
        return definition_of(inner) if getattr(marked, "is_child_flow", False) and inner is not None else None

    return Definition(found, text.splitlines(), source, child, constants_of(tree))


def _begins_at(node: ast.FunctionDef, code: Any) -> bool:
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    return node.name == code.co_name and code.co_firstlineno in (first, node.lineno)


def _meaning(function: Any, name: str) -> Any:
    """What a name means where the function stands."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=False))
    if name in cells:
        try:
            return cells[name].cell_contents
        except ValueError:
            return None
    return function.__globals__.get(name)


def _is(function: ast.FunctionDef, name: str) -> bool:
    return any(decorator_name(d) == name for d in function.decorator_list)


def constants_of(tree: ast.Module) -> dict[str, Any]:
    """Literals that a module assigns at its top, each name once."""
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if name in seen:
                    found.pop(name, None)
                    continue
                seen.add(name)
                try:
                    found[name] = as_json(value, ast.literal_eval(value))
                except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, Refused):
                    continue
    return found


def _fail(source: str, message: str, hint: str = "") -> NoReturn:
    raise CodeflowError([Issue("error", "codeflow", "$", message, hint)], source)
