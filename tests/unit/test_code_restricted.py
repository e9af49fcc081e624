"""What the restricted backend refuses, by which name, and what it lets through."""

from __future__ import annotations

from typing import Any

import pytest

from plaita.base.errors import PlaitaError
from tests.support.scripts import run_script

pytestmark = pytest.mark.usefixtures("default_settings")


def run(code: str, value: Any = None) -> Any:
    return run_script(code, value, sandboxBackend="restricted")


def expression(text: str, imports: str = "") -> str:
    return f"{imports}\ndef run(d):\n    return {text}"


REFUSED = {
    "().__class__": "__class__",
    "().__class__.__base__.__subclasses__()": "__subclasses__",
    "run.__globals__": "__globals__",
    "(i for i in ()).gi_frame": "gi_frame",
    "(i for i in ()).gi_code": "gi_code",
    "getattr((i for i in ()), 'gi_' + 'frame')": "gi_frame",
    "getattr((), '__cl' + 'ass__')": "__class__",
    "getattr((), '__class__', None)": "__class__",
    "hasattr((), '__class__')": "__class__",
    "setattr(run, '__code__', None)": "__code__",
    "'{0.__class__}'.format(1)": "__class__",
    "'{x.real.__class__}'.format(x=1)": "__class__",
    "'{0[a].__class__}'.format({'a': 1})": "__class__",
    "'{:{0.__class__}}'.format(1)": "__class__",
    "'{a.__class__}'.format_map({'a': 1})": "__class__",
    "('{0.' + '__class__}').format(1)": "__class__",
    "str.format('{0.__class__}', 1)": "format",
    "list(map(str.format, ['{0.__class__}'], [1]))": "format",
    "getattr(str, 'format')('{0.__class__}', 1)": "format",
    "f'{d.__class__}'": "__class__",
    "open('x')": "open",
    "eval('1')": "Eval",
    "exec('1')": "Exec",
    "globals()": "globals",
    "vars()": "vars",
    "type(1)": "type",
    "compile('1', '', 'eval')": "compile",
    "__import__('os')": "__import__",
    "__builtins__": "__builtins__",
    "[d for __x in [1]]": "__x",
}


@pytest.mark.parametrize(("text", "name"), REFUSED.items(), ids=REFUSED.keys())
def test_what_is_refused_is_named(text: str, name: str) -> None:
    with pytest.raises(PlaitaError) as caught:
        run(expression(text))
    assert caught.value.kind == "node_error"
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("imports", "text", "name"),
    [
        ("import os", "1", "os"),
        ("import sys", "1", "sys"),
        ("from os import path", "1", "os"),
        ("import os.path", "1", "os.path"),
        ("import collections.abc", "1", "collections.abc"),
        ("from . import x", "1", "import"),
        ("import statistics", "statistics.sys", "sys"),
        ("import json", "json.decoder", "decoder"),
        ("import re", "re.enum", "enum"),
        ("import random", "random._os", "_os"),
        ("import string", "string.Formatter().format('{0.__class__}', 1)", "Formatter"),
        ("from string import Formatter", "1", "Formatter"),
        ("import collections", "collections.UserString('{0.__class__}').format(1)", "UserString"),
        ("import functools", "functools.update_wrapper(run, run, assigned=('__globals__',))", "update_wrapper"),
        ("import uuid", "uuid.os", "os"),
        ("import textwrap", "textwrap.re", "re"),
    ],
)
def test_a_module_shows_only_its_listed_names(imports: str, text: str, name: str) -> None:
    with pytest.raises(PlaitaError) as caught:
        run(expression(text, imports))
    assert name in str(caught.value)


def test_an_import_that_is_refused_can_be_caught_as_one() -> None:
    code = "try:\n    import numpy as np\nexcept ImportError:\n    np = None\ndef run(d):\n    return np is None"
    assert run(code) is True


ORDINARY = """
import math, json, re, itertools, statistics
from collections import Counter, defaultdict
from datetime import date, timedelta
from decimal import Decimal

class Total:
    def __init__(self, start=0):
        self.value = start
    def add(self, n):
        self.value = self.value + n
        return self

def run(d):
    total = Total()
    words = defaultdict(list)
    for i, (name, n) in enumerate(sorted(d.items())):
        total.add(n)
        words[name[0]].append("{}:{n:>3}".format(name, n=n))
        x, *rest = [i, n]
        x += 1
    a, b = (1, 2)
    print("seen", total.value)
    out = {k: v for k, v in words.items()}
    out["total"] = total.value
    out["re"] = re.sub(r"(\\w)(\\d)", lambda m: m.group(2) + m.group(1), "a1 b2")
    out["date"] = str(date(2024, 2, 28) + timedelta(days=2))
    out["money"] = str(Decimal("0.1") + Decimal("0.2"))
    out["most"] = Counter("abca").most_common(1)[0][0]
    out["pairs"] = [list(p) for p in itertools.pairwise([1, 2, 3])]
    out["mean"] = statistics.mean([1, 2, 6])
    out["json"] = json.loads(json.dumps([math.floor(2.5)]))
    out["f"] = f"{a + b:03d}"
    return out
"""


def test_an_ordinary_script_runs() -> None:
    assert run(ORDINARY, {"ab": 2, "cd": 40, "ae": 1}) == {
        "a": ["ab:  2", "ae:  1"],
        "c": ["cd: 40"],
        "total": 43,
        "re": "1a 2b",
        "date": "2024-03-01",
        "money": "0.3",
        "most": "a",
        "pairs": [[1, 2], [2, 3]],
        "mean": 3,
        "json": [2],
        "f": "003",
    }


@pytest.mark.parametrize("module", ["base64", "calendar", "fractions", "hashlib", "heapq", "html", "uuid", "bisect"])
def test_every_listed_module_can_be_imported(module: str) -> None:
    assert run(f"import {module}\ndef run(d):\n    return 1") == 1


def test_a_result_follows_the_same_rules_as_elsewhere() -> None:
    with pytest.raises(PlaitaError, match=r"\$.a: key 1 is int; keys are text"):
        run("def run(d):\n    return {'a': {1: 2}}")
