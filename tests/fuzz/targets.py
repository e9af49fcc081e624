"""What is fuzzed: each target takes one input and answers how it ended; anything but a named error is a find."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plaita.base.errors import PlaitaError
from plaita.core.expression import ExpressionEvaluator
from plaita.core.flow import Flow
from plaita.core.text import read_document
from plaita.testing.simulation.random_flows import Dice, generate
from tests.fuzz.mutation import mutate_document, mutate_text
from tests.support.flows import registry

TESTS = Path(__file__).parents[1]
CONTEXT = {
    "$INPUT": {
        "a": 1,
        "t": "text",
        "l": [3, 1, 2],
        "o": {"k": {"z": None}},
        "é": "ü",
        "n": None,
        "f": 1.5,
        "big": 10**20,
    },
    "$NODE": {"a": {"data": [10, 20]}},
    "$GLOBAL": {"g": "v"},
}


@dataclass(frozen=True)
class Target:
    """``seeds`` are inputs to begin with; ``change`` makes a new one of one of them; ``play`` says how it ended."""

    seeds: list[Any]
    change: Callable[[Any, Dice, list[Any]], Any]
    play: Callable[[Any], str]


def named(work: Callable[[], Any]) -> str:
    """How it ended, as a short word: a new one is worth keeping its input."""
    try:
        work()
    except PlaitaError as e:
        issues = getattr(e, "issues", ())
        str(e)
        return f"{type(e).__name__} {' '.join(sorted({i.code for i in issues}))[:80]}"
    return "fine"


def expressions() -> Target:
    """The lexer, the parser, the compiler and what it compiles to."""
    table = json.loads((TESTS / "spec" / "expressions.json").read_text(encoding="utf-8"))
    seeds = [case["given"] for case in table["cases"] if isinstance(case["given"], str)]
    evaluator = ExpressionEvaluator()

    def play(text: str) -> str:
        def work() -> None:
            json.dumps(evaluator.evaluate(text, CONTEXT))

        return named(work)

    return Target(seeds, mutate_text, play)


def texts() -> Target:
    """Reading JSON and YAML, and where in the text things stand."""
    files = [*(TESTS.parent / "examples").glob("*.yaml"), *sorted((TESTS / "flows").glob("*.json"))[:12]]
    seeds = [path.read_text(encoding="utf-8") for path in files]

    def play(text: str) -> str:
        def work() -> None:
            document = read_document(text, "fuzz")
            document.locate("$.nodes[0].id")

        return named(work)

    return Target(seeds, mutate_text, play)


def flows() -> Target:
    """The model of a flow and every rule, from documents and from their text."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted((TESTS / "flows").glob("[0-9]*.json"))]
    found += [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((TESTS / "cases" / "machine").glob("*.json"))
    ]
    seeds = [one["flow"] for one in found if isinstance(one.get("flow"), dict)]
    seeds += [generate(seed).flow for seed in range(20)]
    types = registry()

    def play(document: Any) -> str:
        def work() -> None:
            Flow.model_validate(document, registry=types)
            Flow.from_string(json.dumps(document), registry=types)

        return named(work)

    return Target(seeds, lambda value, dice, _: mutate_document(value, dice), play)


TARGETS: dict[str, Callable[[], Target]] = {"expressions": expressions, "texts": texts, "flows": flows}
