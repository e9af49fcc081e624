"""Changing texts and documents at random, from a seed: what people mistype, and what they send on purpose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from plaita.testing.simulation.random_flows import Dice

T = TypeVar("T")

TOKENS = (
    "$", "$INPUT", "$NODE.a", "$F.", "$F.concat(", "$(", ")", "(", "[", "]", "{", "}", "{%", "%}", '"', "'", "\\", ".",
    ",", ":", "-", "+", "*", "**", "/", "%", "==", "<", ">=", " in ", " not in ", " if ", " else ", " and ", " or ",
    "not ", "__class__", "__import__", "0", "1e308", "-1", "1e999", "99999999999999999999", "NaN", "Infinity", "null",
    "true", "None", "\n", "\t", "\r", "\x00", "\ufeff", "\u2028", "\u202e", "\ud800", "é", "李", "🙂", "&a", "*a",
    "<<:", "!!python/object:os.system", "!!binary", "---", "...", "|", ">", "? ", "- ", "#", "@", "`", "~", "yes",
    "12:30", "2020-01-01", "0x1F", "0o17", "1_000",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 10**25, 1.5, 1e308, "", " ", "$INPUT", "$F.nope()", "{% $INPUT %}", "x" * 5000, [], {},
    [[]], {"": ""}, {"a": {"a": {"a": 1}}}, ["$"], "\ud800", "P1D", "-5", "0", "PT1S", "start", "end", "__class__",
    {"type": "start", "id": "s"}, {"field": 1, "operator": "eq", "value": 1}, {"relation": "and", "conditions": []},
)  # fmt: skip
KEYS = (
    "type", "id", "next", "nodes", "output", "childFlow", "child_flow", "branches", "condition", "errorHandler",
    "retry", "timeout", "inputType", "outputType", "collection", "cases", "default", "input", "field", "operator",
    "value", "name", "joinBranches", "metadata", "exposeEnv", "globalContext", "code", "url", "", "__proto__", "\x00",
    "é",
)  # fmt: skip


def mutate_text(text: str, dice: Dice, others: Sequence[str]) -> str:
    """A few changes to a text; pieces of others may be spliced in."""
    for _ in range(1 + dice.below(4)):
        at, size = dice.below(len(text) + 1), 1 + dice.below(12)
        kind = dice.below(6)
        if kind == 0:
            text = text[:at] + dice.pick(TOKENS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + size :]
        elif kind == 2:
            text = text[:at] + text[at : at + size] * (1 + dice.below(40)) + text[at:]
        elif kind == 3:
            other = dice.pick(others)
            start = dice.below(len(other) + 1)
            text = text[:at] + other[start : start + 4 * size] + text[at:]
        elif kind == 4:
            text = text[:at] + chr(dice.pick((dice.below(128), dice.below(0x3000), 0xFFFF))) + text[at + 1 :]
        else:
            token = dice.pick(TOKENS)
            text = text[:at] + token * (1 + dice.below(300)) + text[at:]
    return text[:20_000]


def mutate_document(value: Any, dice: Dice) -> Any:
    """A few changes somewhere inside a document; the original stays as it is."""
    value = json.loads(json.dumps(value))
    for _ in range(1 + dice.below(4)):
        value = _change(value, dice)
    return value


def _change(value: Any, dice: Dice) -> Any:
    if dice.chance(25) or not isinstance(value, list | dict) or not value:
        return dice.pick(VALUES) if dice.chance(60) or not isinstance(value, str) else mutate_text(value, dice, TOKENS)
    if isinstance(value, list):
        at = dice.below(len(value))
        kind = dice.below(5)
        if kind == 0:
            return [*value[:at], *value[at + 1 :]]
        if kind == 1:
            return [*value, value[at]]
        return [*value[:at], _change(value[at], dice), *value[at + 1 :]]
    key = dice.pick(list(value))
    kind = dice.below(6)
    if kind == 0:
        return {k: v for k, v in value.items() if k != key}
    if kind == 1:
        return {**value, dice.pick(KEYS): dice.pick(VALUES)}
    if kind == 2:
        return {(dice.pick(KEYS) if k == key else k): v for k, v in value.items()}
    return {**value, key: _change(value[key], dice)}
