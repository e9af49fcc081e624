"""The reference page of expressions: grammar with examples, roots, operators, every function."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any, Final

from plaita.engine.expression import BUILTIN_FUNCTIONS, FunctionCategory, FunctionSpec
from plaita.engine.expression import parser as grammar
from plaita.engine.expression.paths import ROOTS
from plaita.engine.linking import LOOP_ROOTS
from tools.page_parts import page, table

TABLE: Final = json.loads((Path(__file__).parents[1] / "tests" / "spec" / "expressions.json").read_text("utf-8"))

ROOT_WORDS: Final = {
    "INPUT": "The input of the flow. A key that is absent in a sub-flow is looked up in the flow around it.",
    "NODE": "Results: `$NODE.id` of the nearest flow around that declares the node; null until it has run.",
    "GLOBAL": "`globalContext` of the flow, and of those around it for absent keys.",
    "PARENT": "The roots of the flow around: `$PARENT.INPUT`, `$PARENT.NODE`, …",
    "ENV": "Environment variables that the flow names in `exposeEnv`, read when they are evaluated.",
    "FLOW_ID": "Id of the flow.",
    "FLOW": "The same as `$FLOW_ID`.",
    "EXECUTION_ID": "Id of the execution.",
    "LAST_NODE": "Id of the node that finished last.",
    "BRANCH": "Where a branching node that finished last leads to, else null.",
    "LOOP-ITEM": "The item of the round, in the condition of a `loop` or `while` only.",
    "LOOP-INDEX": "The number of the round, from 0 on, there.",
    "LOOP-RESULT": "The result of the last round, there.",
}
OPERATOR_WORDS: Final = {
    "* / %": "product, quotient, remainder of numbers; `*` repeats a text or list",
    "+ -": "sum and difference of numbers; `+` joins two texts or two lists",
    "== != < <= > >= in not in": "comparison, of which two do not chain; order is between numbers or between texts",
    "not": "true for null, false, 0 and what is empty",
    "and": "the first value if it is falsy, else the second, which is not evaluated before",
    "or": "the first value if it is truthy, else the second, which is not evaluated before",
    "a if c else b": "one of two values; the other one is not evaluated",
}
SECTIONS: Final[tuple[tuple[str, str, tuple[Any, ...]], ...]] = (
    (
        "Where expressions stand",
        "Text that begins with `$` is an expression, text with `{% … %}` a template; in lists and objects each member "
        "is looked at, keys never. Everything else is itself. `$( … )` makes an expression of what does not begin "
        "with `$`. Only the text of the flow is evaluated: data that looks like an expression stays text.",
        ("$INPUT.name", "costs 5 $ or $5", "$( $INPUT.a * 2 + $INPUT.b )", [1, None, True, "x", {}], "$INPUT.call"),
    ),
    (
        "Paths",
        'A path is a root with steps: `.name`, `[0]` (negative from the end), `["any key"]`. A step in digits is an '
        "index of a list or text and a key of an object. What is missing or out of range is null, wherever the path "
        "breaks off. `-` is a character of names.",
        (
            "$INPUT.u.a.b",
            "$INPUT.items[-1]",
            "$INPUT.items[9]",
            '$INPUT["with space"]["0"]',
            "$INPUT.missing.deeper",
            "$INPUT.k-1",
            '$NODE["nœud 1"]',
            "$INPUT.__class__",
        ),
    ),
    (
        "Templates",
        'A slot holds an expression and is rendered: null as nothing, the rest as JSON. `{% "{%" %}` writes the mark.',
        ("hi {% $INPUT.name %}!", "x{% $INPUT.missing %}y", "{% 'lit' %} {% 5 %} {% true %}", 'write {% "{%" %} $x %}'),
    ),
    (
        "Literals",
        "Numbers, quoted text (`\\` escapes as in JSON, a doubled quote is one quote), `true`, `false`, `null`, lists "
        "and objects with quoted keys. A name without `$` is no value.",
        ('$([1, $INPUT.n, ["x"]])', "$({\"a\": $INPUT.n, 'b': {}})", "$F.concat('it''s', \"q\"\"q\")", "$({a: 1})"),
    ),
    (
        "Calls",
        "`$F.name(a, b)`; steps may follow. Functions give new values and change none of their arguments. Equality is "
        "JSON's, a boolean is never a number, and a type that does not fit fails the node.",
        (
            "$F.ifelse($F.gt($INPUT.age, 18), 'adult', 'minor')",
            "$F.split($INPUT.csv, ',')[1]",
            "$F.set($INPUT.d, 'x', 5)",
            "$F.eq(1, true)",
            "$F.upper($INPUT.missing)",
            "$F.uper($INPUT.name)",
        ),
    ),
)
OPERATOR_EXAMPLES: Final = (
    "$( $INPUT.a + $INPUT.b * 2 )",
    "$INPUT.n in $INPUT.items",
    "$INPUT.empty or $INPUT.name",
    "$INPUT.name if $INPUT.n > 2 else 1 / 0",
    "$INPUT.f == 1",
    "$INPUT.name + 1",
    "$INPUT.a+1",
    "$( 1 < 2 < 3 )",
)


def expression_page(notice: str) -> str:
    """The whole page."""
    parts = [notice, "# Expressions", _intro()]
    for title, text, given in SECTIONS:
        parts += [f"## {title}", text, _examples(given)]
    if wrong := ROOT_WORDS.keys() ^ {*ROOTS, *LOOP_ROOTS}:
        raise ValueError(f"roots that the page lacks, or that are gone: {sorted(wrong)}")
    roots = [(f"`${root}`", text) for root, text in ROOT_WORDS.items()]
    order = inspect.cleandoc(grammar.__doc__ or "").split("\n\n")[1]
    operators = [(_each(operators), text) for operators, text in OPERATOR_WORDS.items()]
    parts += ["## Roots", "A node type may provide more: see [Custom nodes](../guide/custom-nodes.md#state)."]
    parts += [table("root", "what", rows=roots)]
    parts += ["## Operators", "Each has spaces on both sides. " + order.replace("``", "`")]
    parts += [table("from tight to loose", "what", rows=operators), _examples(OPERATOR_EXAMPLES)]
    parts += ["## Functions", f"{len(BUILTIN_FUNCTIONS)} functions, by topic; names in one row mean the same."]
    for category in FunctionCategory:
        rows = _functions(category)
        if rows:
            parts += [f"### {category.value.capitalize()}", table("function", "arguments", "what", rows=rows)]
    return page(parts)


def _intro() -> str:
    scope = TABLE["scope"]
    names = ("name", "age", "n", "a", "b", "items", "csv", "d", "u", "call", "k-1", "f", "empty", "with space")
    shown = {name: scope["input"][name] for name in names}
    return (
        "Every example is a case of the test suite: what is given, and what it is then. `$INPUT` is\n\n"
        f"```json\n{json.dumps(shown, ensure_ascii=False)}\n```\n\n"
        f"and `$NODE` is `{json.dumps(scope['nodes'], ensure_ascii=False)}`. An error is told "
        "at load, before anything runs, unless only the data can tell."
    )


def _each(operators: str) -> str:
    if " if " in operators:
        return f"`{operators}`"
    return " ".join(f"`{word}`" for word in operators.replace("not in", "not_in").split()).replace("not_in", "not in")


def _examples(given: tuple[Any, ...]) -> str:
    rows = [(_code(case["given"]), _outcome(case)) for case in map(case_of, given)]
    return table("given", "is", rows=rows)


def case_of(given: Any) -> dict[str, Any]:
    """The case of the suite; raises ``LookupError`` when there is none."""
    for case in TABLE["cases"]:
        if case["given"] == given and type(case["given"]) is type(given):
            found: dict[str, Any] = case
            return found
    raise LookupError(f"no case gives {given!r}")


def _outcome(case: dict[str, Any]) -> str:
    if "refused" in case:
        return f"refused at load: `{case['refused']}`"
    if "error" in case:
        return f"fails: {case['error']}"
    return _code(json.dumps(case["expect"], ensure_ascii=False))


def _code(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _functions(category: FunctionCategory) -> list[tuple[str, ...]]:
    same: dict[Any, list[FunctionSpec]] = {}
    for spec in BUILTIN_FUNCTIONS.values():
        if spec.category is category:
            same.setdefault(spec.call, []).append(spec)
    return [(", ".join(f"`{s.name}`" for s in specs), arguments(specs[0]), what(specs[0])) for specs in same.values()]


def arguments(spec: FunctionSpec) -> str:
    """Names of the arguments; those in brackets may be left out."""
    names = []
    for i, parameter in enumerate(inspect.signature(spec.call).parameters.values()):
        if i == 0 and spec.takes != "values":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            names.append(f"{parameter.name}…")
        else:
            names.append(parameter.name if parameter.default is parameter.empty else f"[{parameter.name}]")
    return f"`{', '.join(names)}`"


def what(spec: FunctionSpec) -> str:
    """What it gives: its docstring where it has one, else its description."""
    doc = inspect.getdoc(spec.call) or ""
    text = doc.split("\n\n")[0].replace("\n", " ").replace("``", "`") if doc else spec.description
    text = text.rstrip(".")
    text = text[0].upper() + text[1:]
    if spec.operator is not None:
        text = f"{text} (infix `{spec.operator}`)" if doc else f"`{spec.description}`"
    return text
