"""Flows written as Python functions that both packages compile: the body, and the inputs it is run with."""

from __future__ import annotations

from typing import Any, Final

CHILDREN: Final = """
@childflow
def double():
    return INPUT.v * 2


@childflow
def shout():
    text = F.upper(INPUT.text)
    return F.concat(text, "!")


"""
A: Final[dict[str, Any]] = {
    "a": 3,
    "b": 4,
    "name": "ann",
    "list": [4, 1, 7],
    "rows": [{"n": 2}, {"n": 5}],
    "flag": True,
}
Z: Final[dict[str, Any]] = {**A, "a": 0, "b": -1, "name": "", "list": [], "rows": [], "flag": False}

PROGRAMS: Final[dict[str, str]] = {
    "return of a value": "return INPUT.name",
    "return of nothing": "return",
    "arithmetic": "return [INPUT.a + 1, INPUT.a - INPUT.b, INPUT.a * 2, INPUT.a / 2, INPUT.b % 3, INPUT.b ** 2]",
    "precedence": "return (INPUT.a + 1) * 2 - (INPUT.b - (3 - INPUT.a)) * 5",
    "minus": "return [-INPUT.a, 3 - -2, -1]",
    "built in": "return [len(INPUT.list), abs(INPUT.b), round(2.567, 1), str(INPUT.a)]",
    "functions": 'return F.concat(F.upper(INPUT.name), "-", F.len(INPUT.list))',
    "text": 'return F.replace("a\\\\b\\"c", "a", "z")',
    "a dollar": 'return {"x": "$5 off", "y": ["$10"]}',
    "a template": 'return "{% $INPUT.name %} has {% $F.len($INPUT.list) %}"',
    "containers": 'x = {"n": INPUT.name, "l": [INPUT.a, {"deep": [1, INPUT.b]}]}\nreturn [x.n, x.l[1].deep[1], x]',
    "comparisons": "return [INPUT.a > 2, INPUT.a == 3, INPUT.a != 3, INPUT.a <= INPUT.b, 4 in INPUT.list]",
    "logic": "return [INPUT.flag and INPUT.a, INPUT.a or INPUT.b, not INPUT.flag]",
    "a choice": 'return "big" if INPUT.a > 2 else "small"',
    "if and else": 'if INPUT.a > 2:\n    return "big"\nelse:\n    return "small"',
    "if that ends": 'if INPUT.flag:\n    return "on"\nx = INPUT.a + 1\nreturn x',
    "elif": "if INPUT.a > 5:\n    return 1\nelif INPUT.a == 3:\n    return 2\nelif INPUT.flag:\n    return 3\nreturn 4",
    "ways that meet": "if INPUT.flag:\n    x = 1\nelse:\n    y = 2\nreturn [NODE.x, NODE.y]",
    "tests with and, or, not": "if (INPUT.a > 2 and INPUT.b > 3) or not INPUT.flag:\n    return 1\nreturn 2",
    "a negated test": "if not (INPUT.a == 3 and INPUT.flag):\n    return 1\nreturn 2",
    "membership": 'if INPUT.a in [3, 5]:\n    return "in"\nif "n" in INPUT.name:\n    return "name"\nreturn "out"',
    "a nested test": "if INPUT.a > 2:\n    k = INPUT.a\n    if INPUT.b > 3:\n        return k\nreturn INPUT.b",
    "map": "for n in MAP(INPUT.list, id='m'):\n    return n * 10\nreturn m",
    "map with an index": "for n, i in MAP(INPUT.list, id='m'):\n    return n + i\nreturn m",
    "map that reads outside": (
        "k = 5\nfor n in MAP(INPUT.list, id='m'):\n    z = n + k\n    return z * INPUT.item\nreturn m"
    ),
    "filter and find": (
        "for n in FILTER(INPUT.list, id='big'):\n    return n > 3\nfor n in FIND(INPUT.list, id='first'):\n"
        "    return n < 4\nreturn [big, first]"
    ),
    "loop": "for n in LOOP(INPUT.list, id='l'):\n    return n\nreturn l",
    "reduce": "for so_far, n in REDUCE(INPUT.list, id='r', initial=10):\n    return so_far + n\nreturn r",
    "while": "while rounds < 3:\n    return rounds\nreturn 1",
    "while by its name": (
        "for x in WHILE(rounds < 4, id='w', max_iterations=9):\n    k = rounds + 1\n    return k\nreturn w"
    ),
    "loops inside loops": (
        "for x in MAP(INPUT.rows, id='outer'):\n    for y in MAP([1, 2], id='inner'):\n        return y * x.n\n"
        "    return inner\nreturn outer"
    ),
    "a decision in a round": (
        "for x in MAP(INPUT.list, id='m'):\n    if x > 3:\n        return 'big'\n    return 'small'\nreturn m"
    ),
    "child": "x = CHILD(flow=double, input={'v': INPUT.a})\nreturn x + 1",
    "two children": (
        "x = CHILD(flow=double, input={'v': 4})\ny = CHILD(flow=shout, input={'text': INPUT.name})\nreturn [x, y]"
    ),
    "parallel": (
        'p = PARALLEL([("d", double, {"v": INPUT.a}), ("s", shout, {"text": "hi"})], join=["d", "s"])\n'
        "return [p.d, p.s]"
    ),
    "mock": 'x = MOCK(value={"k": [1, "two"]})\nreturn x.k[1]',
    "assign": "x = ASSIGN(INPUT.a + 1, output_type={'dataType': 'number'})\nreturn x",
    "an error": 'if INPUT.flag:\n    end(result_type="error", error={"code": 4001, "message": "no"})\nreturn 1',
    "nop": 'end(INPUT.a, result_type="nop")',
    "globals": "return [GLOBAL.rate, GLOBAL.flow_id]",
}
