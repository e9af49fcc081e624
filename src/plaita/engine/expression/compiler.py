"""A field's value to a closure: the one evaluator of the expression language.

Only the text of the flow is ever parsed. What a closure reads at run time is data and stays data.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from plaita.base.json import Json, step_of
from plaita.base.limits import DEPTH_MAX
from plaita.base.spelling import suggest
from plaita.engine.expression.compiled import Built, Compiled, Notes, Run, Site, broken, constant_of
from plaita.engine.expression.errors import EvaluationError, ExpressionSyntaxError
from plaita.engine.expression.function import FunctionSpec, FunctionTable
from plaita.engine.expression.operators import compile_binary
from plaita.engine.expression.parser import parse_expression, parse_template
from plaita.engine.expression.paths import ROOTS, check_steps, compile_path, walk
from plaita.engine.expression.scope import Names, Scope
from plaita.engine.expression.syntax import (
    Access,
    Binary,
    Call,
    Conditional,
    ListOf,
    Literal,
    Node,
    Not,
    ObjectOf,
    Path,
)
from plaita.engine.expression.templates import compile_template
from plaita.engine.values import OperationError, check_stored

_KNOWN: Final = tuple("$" + root for root in ROOTS)
_DOLLAR: Final = 'a text that begins with a dollar sign is written {% "$" %}…'
_MENTIONS_ROOT: Final = re.compile(r"\$(?:INPUT|NODE|GLOBAL|PARENT|ENV|F)\.[\w$-]")


def compile_value(value: Json, names: Names, functions: FunctionTable) -> Compiled:
    """Compile the value of a field: text that begins with ``$`` is an expression, text with ``{%`` a template.

    Lists and objects are compiled member by member, keys never; anything else is itself. All findings are returned;
    nothing is raised. What ``run`` returns may always be stored.
    """
    notes = Notes(names)
    return notes.finish(checked(_build_value(value, notes, functions, 0), value, notes))


def compile_part(value: Json, notes: Notes, functions: FunctionTable) -> Built:
    """Like ``compile_value``, into notes of the caller's; the result is not checked for storage."""
    return _build_value(value, notes, functions, 0)


def checked(built: Built, value: Json, notes: Notes) -> Built:
    """Add the walk that makes sure a new container may be stored."""
    text = value if isinstance(value, str) else "the value"
    if built.constant:
        try:
            check_stored(built.value)
        except OperationError as e:
            notes.error("expression_too_large", e.reason)
        return built
    if not built.unchecked:
        return built
    inner = built.run

    def run(s: Scope) -> Json:
        result = inner(s)
        try:
            return check_stored(result)
        except OperationError as e:
            raise EvaluationError(text, e.reason) from None

    return Built(run)


def _build_value(value: Json, notes: Notes, functions: FunctionTable, depth: int) -> Built:
    if type(value) is str:
        if value.startswith("$"):
            return _build_expression(value, notes, functions)
        if "{%" in value:
            return _build_template(value, notes, functions)
        _check_literal(value, 0, notes)
        return constant_of(value)
    if type(value) is not list and type(value) is not dict:
        return constant_of(value)
    if depth == DEPTH_MAX:
        notes.error("expression_too_large", f"nested deeper than {DEPTH_MAX}")
        return broken("the value")
    here, found = notes.path, []
    for key, member in enumerate(value) if isinstance(value, list) else value.items():
        notes.path = step_of(here, key)
        found.append(_build_value(member, notes, functions, depth + 1))
    notes.path = here
    if all(built.constant for built in found):
        members = [built.value for built in found]
        return constant_of(members if type(value) is list else dict(zip(value, members, strict=True)))
    return _list_of(found) if type(value) is list else _object_of(list(value), found)


def _check_literal(text: str, at: int, notes: Notes) -> None:
    if "$" in text and (match := _MENTIONS_ROOT.search(text)):
        notes.warn(
            "expression_literal_root",
            f"{match[0]}… stands in a literal text and is not evaluated",
            at + match.start(),
            "write {% … %} around it, or begin the field with $",
        )


def _build_expression(text: str, notes: Notes, functions: FunctionTable) -> Built:
    try:
        tree = parse_expression(text)
    except ExpressionSyntaxError as e:
        known = text.startswith(("$(", "$F", *_KNOWN))
        notes.error(e.code, e.message, e.column - 1, e.hint or ("" if known else _DOLLAR))
        return broken(text)
    before, notes.nodes, notes.chooses = notes.nodes, {}, False
    built = _TreeCompiler(Site(text), notes, functions).build(tree)
    if not notes.chooses:
        notes.relied.update(notes.nodes)
    notes.nodes = {**before, **notes.nodes}
    return built


def _build_template(text: str, notes: Notes, functions: FunctionTable) -> Built:
    try:
        parts = parse_template(text)
    except ExpressionSyntaxError as e:
        notes.error(e.code, e.message, e.column - 1, e.hint or 'write {% "{%" %} for the text {%')
        return broken(text)
    runs: list[str | Run] = []
    for part in parts:
        if isinstance(part, str):
            _check_literal(part, text.find(part), notes)
            runs.append(part)
        else:
            runs.append(_TreeCompiler(Site(part.text), notes, functions).build(part.node).run)
    notes.relied.update(notes.nodes)
    return Built(compile_template(runs, Site(text)))


def _list_of(found: list[Built]) -> Built:
    if not any(built.constant for built in found):
        runs = [built.run for built in found]
        return Built(lambda s: [run(s) for run in runs], unchecked=True)
    frame = [built.value if built.constant else None for built in found]
    slots = [(i, built.run) for i, built in enumerate(found) if not built.constant]

    def run(s: Scope) -> Json:
        out = frame.copy()
        for i, slot in slots:
            out[i] = slot(s)
        return out

    return Built(run, unchecked=True)


def _object_of(keys: list[str], found: list[Built]) -> Built:
    if not any(built.constant for built in found):
        members = [(key, built.run) for key, built in zip(keys, found, strict=True)]
        return Built(lambda s: {key: run(s) for key, run in members}, unchecked=True)
    # Copying a frame with every key keeps the author's order.
    frame = {key: built.value if built.constant else None for key, built in zip(keys, found, strict=True)}
    slots = [(key, built.run) for key, built in zip(keys, found, strict=True) if not built.constant]

    def run(s: Scope) -> Json:
        out = frame.copy()
        for key, slot in slots:
            out[key] = slot(s)
        return out

    return Built(run, unchecked=True)


class _TreeCompiler:
    """Builds the closures of one expression; errors at run time name ``site``."""

    __slots__ = ("functions", "notes", "site")

    def __init__(self, site: Site, notes: Notes, functions: FunctionTable) -> None:
        self.site, self.notes, self.functions = site, notes, functions

    def build(self, node: Node) -> Built:
        return _BUILDERS[type(node)](self, node)

    def literal(self, node: Literal) -> Built:
        return constant_of(node.value)

    def path(self, node: Path) -> Built:
        return compile_path(node, self.notes)

    def access(self, node: Access) -> Built:
        base = self.build(node.base)
        if not check_steps(node.steps, node.at, self.notes):
            return broken(self.site.text)
        inner, steps = base.run, node.steps
        if base.constant:
            return constant_of(walk(base.value, steps))
        return Built(lambda s: walk(inner(s), steps), unchecked=base.unchecked)

    def negation(self, node: Not) -> Built:
        inner = self.build(node.operand).run
        return Built(lambda s: not inner(s))

    def binary(self, node: Binary) -> Built:
        # The left spine of a long chain is walked in a loop: recursion here is bounded by nesting only.
        spine: list[Binary] = []
        leftmost: Node = node
        while type(leftmost) is Binary:
            spine.append(leftmost)
            leftmost = leftmost.left
        built = self.build(leftmost)
        for each in reversed(spine):
            self.notes.chooses = self.notes.chooses or each.operator == "or"
            built = compile_binary(each.operator, each.operator, built, self.build(each.right), self.site)
        return built

    def conditional(self, node: Conditional) -> Built:
        self.notes.chooses = True
        test, then, otherwise = self.build(node.test), self.build(node.then), self.build(node.otherwise)
        if test.constant:
            return then if test.value else otherwise
        asks, yes, no = test.run, then.run, otherwise.run
        return Built(lambda s: yes(s) if asks(s) else no(s), unchecked=then.unchecked or otherwise.unchecked)

    def list(self, node: ListOf) -> Built:
        found = [self.build(item) for item in node.items]
        if all(built.constant for built in found):
            return constant_of([built.value for built in found])
        return _list_of(found)

    def object(self, node: ObjectOf) -> Built:
        found = [self.build(value) for value in node.values]
        if all(built.constant for built in found):
            return constant_of({k: built.value for k, built in zip(node.keys, found, strict=True)})
        return _object_of(node.keys, found)

    def call(self, node: Call) -> Built:
        self.notes.chooses = self.notes.chooses or node.name in ("or", "ifelse")
        found = [self.build(argument) for argument in node.arguments]
        spec = self.functions.get(node.name)
        if spec is None:
            hint = suggest(node.name, self.functions)
            self.notes.error("expression_unknown_function", f"$F.{node.name} is not a known function", node.at, hint)
            return broken(self.site.text)
        count, most = len(found), spec.arguments_max
        if count < spec.arguments_min or (most is not None and count > most):
            message = f"$F.{node.name} takes {spec.arity}, not {count}"
            self.notes.error("expression_argument_count", message, node.at)
            return broken(self.site.text)
        if spec.operator is not None:
            return compile_binary(spec.operator, f"$F.{node.name}", found[0], found[1], self.site)
        unchecked = spec.yields == "new" or (spec.yields == "part" and any(built.unchecked for built in found))
        return Built(_compile_call(spec, [built.run for built in found], self.site), unchecked=unchecked)


_BUILDERS: Final[dict[type, Callable[[_TreeCompiler, Any], Built]]] = {
    Literal: _TreeCompiler.literal,
    Path: _TreeCompiler.path,
    Access: _TreeCompiler.access,
    Not: _TreeCompiler.negation,
    Binary: _TreeCompiler.binary,
    Conditional: _TreeCompiler.conditional,
    ListOf: _TreeCompiler.list,
    ObjectOf: _TreeCompiler.object,
    Call: _TreeCompiler.call,
}


def _compile_call(spec: FunctionSpec, runs: list[Run], site: Site) -> Run:
    call, label = spec.call, f"$F.{spec.name}"
    if spec.takes == "runs":
        return lambda s: call(s, *runs)
    if spec.takes == "facts":
        return _call_with_facts(call, label, runs, site)
    if len(runs) == 1:
        return _call_one(call, label, runs[0], site)
    if len(runs) == 2:
        return _call_two(call, label, runs[0], runs[1], site)

    def run(s: Scope) -> Json:
        try:
            return call(*[argument(s) for argument in runs])
        except OperationError as e:
            raise site.failure(label, e) from None

    return run


def _call_with_facts(call: Callable[..., Json], label: str, runs: list[Run], site: Site) -> Run:
    def run(s: Scope) -> Json:
        try:
            return call(s.run, *[argument(s) for argument in runs])
        except OperationError as e:
            raise site.failure(label, e) from None

    return run


def _call_one(call: Callable[..., Json], label: str, argument: Run, site: Site) -> Run:
    def run(s: Scope) -> Json:
        try:
            return call(argument(s))
        except OperationError as e:
            raise site.failure(label, e) from None

    return run


def _call_two(call: Callable[..., Json], label: str, first: Run, second: Run, site: Site) -> Run:
    def run(s: Scope) -> Json:
        try:
            return call(first(s), second(s))
        except OperationError as e:
            raise site.failure(label, e) from None

    return run
