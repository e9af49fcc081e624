"""Random flows of what both packages do alike, from a seed.

Left out, because it is decided otherwise here: ids that need brackets, infix operators, nulls and containers in
templates, parent scopes anywhere but in whole paths, an index into what is missing, errors that leave a sub-flow,
business errors inside one, ``parallel``, retries and timeouts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from plaita.testing.simulation.random_flows import Dice

DEPTH_MAX = 3
NODES_MAX = 26
INPUT = {"x": 3, "y": "text", "list": [4, 1, 7], "rows": [{"n": 2}, {"n": 5}], "deep": {"k": [1, {"z": "end"}]}}
LIST = ("$INPUT.list[1]", "$INPUT.list.0")
NUMBERS = {
    "flow": ("$INPUT.x", "$INPUT.list[0]", "$F.add($INPUT.x, 2)", "$F.mul(3, $INPUT.list[2])", "$F.len($INPUT.list)"),
    "child": ("$INPUT.x", "$INPUT.list[0]", "$F.sub($INPUT.x, 2)", "$F.mul(3, $INPUT.list[2])", "$F.len($INPUT.rows)"),
    "round": ("$INPUT.index", "$F.add($INPUT.index, 2)", "$F.pow(2, $INPUT.index)"),
    "heir": ("$F.add(1, 2)", "$F.len('four')", "$F.mod(7, 4)"),
}
"""Expressions for numbers by what a level finds in its own input: an ``heir`` has none and reads its parent's."""
PATHS = {
    "flow": ("$INPUT.x", "$INPUT.y", *LIST, "$INPUT.deep.k[1].z", "$INPUT.nothing", "$INPUT.rows", "$INPUT.deep.q.r"),
    "child": ("$INPUT.x", "$INPUT.y", *LIST, "$INPUT.nothing", "$INPUT.rows", "$INPUT.deep"),
    "round": ("$INPUT.index", "$INPUT.x", "$INPUT.y", "$INPUT.rows"),
    "heir": ("$INPUT.x", "$INPUT.y", "$INPUT.rows", "$INPUT.nothing"),
}
CALLS = (
    "$F.concat($INPUT.y, '-', $INPUT.x)",
    "$F.upper($INPUT.y)",
    "$F.join($F.split('a,b', ','), $INPUT.y)",
    "$F.sort($INPUT.list)",
    "$F.sort($INPUT.rows, 'n', true)",
    "$F.ifelse($F.gt($INPUT.x, 2), 'big', 'small')",
    "$F.slice($INPUT.list, 1, null)",
    "$F.reverse($INPUT.list)",
    "$F.contains($INPUT.list, 7)",
    "$F.json_dumps($INPUT.rows)",
    "$F.replace($INPUT.y, 'e', 'E')",
    "$F.index($INPUT.list, $INPUT.list[2])",
    "$F.extend($INPUT.list, $INPUT.rows)",
    "$F.title($F.concat($INPUT.y, ' of ', $INPUT.y))",
    "$F.capitalize($F.lower('ABC'))",
    "$F.strip('  a b ')",
    "$F.isDigit($F.concat($INPUT.x))",
    "$F.startswith($INPUT.y, 'te')",
    "$F.endswith($INPUT.y, 'xt')",
    "$F.round($F.div($INPUT.x, 7), 3)",
    "$F.round(2.5)",
    "$F.ceil($F.div(7, 2))",
    "$F.floor(-2.5)",
    "$F.trunc(-2.5)",
    "$F.sqrt(16)",
    "$F.mod(-7, 3)",
    "$F.div(7, 2)",
    "$F.abs($F.sub(1, $INPUT.x))",
    "$F.add($INPUT.list, $INPUT.rows)",
    "$F.mul($INPUT.y, 2)",
    "$F.and($INPUT.x, $INPUT.y)",
    "$F.or('', $INPUT.y)",
    "$F.not($INPUT.x)",
    "$F.ne($INPUT.x, 3.0)",
    "$F.in($INPUT.x, $INPUT.list)",
    "$F.notIn($INPUT.y, $INPUT.list)",
    "$F.notContains($INPUT.y, 'x')",
    "$F.append($INPUT.list, $INPUT.y)",
    "$F.insert($INPUT.list, 1, $INPUT.y)",
    "$F.remove($INPUT.list, $INPUT.list[2])",
    "$F.getListItem($INPUT.rows, -1)",
    "$F.length($INPUT.y)",
    "$F.get($INPUT.rows[0], 'n')",
    "$F.getDictValue($INPUT.rows[0], 'q', 4)",
    "$F.json_loads('{\"a\": [1, 2.5, null, true]}')",
    "$F.sort($INPUT.list, null, true)",
    "$F.slice($INPUT.y, 1, 3)",
    "$F.concat('it''s', \"q\")",
)
FAILS = "$F.div(1, 0)"


@dataclass
class Maker:
    """Makes one flow."""

    dice: Dice
    left: int = NODES_MAX
    count: int = 0
    own: list[list[str]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    @property
    def numbers(self) -> tuple[str, ...]:
        return NUMBERS[self.inputs[-1]]

    def read(self) -> str:
        """A path or a call; an earlier result of this flow or of one around it."""
        results = [f"$NODE.{i}" for ids in self.own for i in ids[-2:]]
        calls = CALLS if self.inputs[-1] in ("flow", "child") else self.numbers
        return self.dice.pick([*PATHS[self.inputs[-1]], *results, *results, self.dice.pick(calls), "$GLOBAL.g"])

    def value(self) -> Any:
        read = self.read()
        number = self.dice.pick(self.numbers)
        return self.dice.pick([read, read, [read, 1], {"k": read}, f"<{{% {number} %}}>", "plain", 5])

    def condition(self) -> dict[str, Any]:
        """Only what the flow itself knows."""
        dice = self.dice
        own = [f"$NODE.{i}" for i in self.own[-1]] if self.own else []
        field_ = dice.pick([*self.numbers, *own])
        single = {"field": field_, "operator": dice.pick(["truthy", "falsy"]), "value": None}
        number = {"field": dice.pick(self.numbers), "operator": dice.pick(["eq", "ne", "gt", "lte", "in"]), "value": 3}
        if number["operator"] == "in":
            number["value"] = [3, 9]
        if dice.chance(25):
            return {"relation": dice.pick(["and", "or"]), "conditions": [single, number]}
        return dice.pick([single, number])

    def level(self, depth: int, given: str = "flow") -> dict[str, Any]:
        """Pieces in a row between a start and an end; ``given`` is what its input holds."""
        self.own.append([])
        self.inputs.append(given)
        nodes: list[dict[str, Any]] = [{"type": "start", "id": "s"}]
        for _ in range(1 + self.dice.below(5 if depth == 0 else 3)):
            if self.left <= 0:
                break
            piece = self.piece(depth)
            _lead(nodes, piece[0]["id"])
            nodes += piece
        _lead(nodes, "e")
        nodes.append(self.end(depth))
        self.own.pop()
        self.inputs.pop()
        return {"nodes": nodes}

    def end(self, depth: int) -> dict[str, Any]:
        if depth == 0 and self.dice.chance(6):
            return {"type": "end", "id": "e", "resultType": "error", "error": {"code": 4001, "message": "no"}}
        return {"type": "end", "id": "e", "output": self.value()}

    def piece(self, depth: int) -> list[dict[str, Any]]:
        makers = [self.plain, self.plain, self.decide, self.choose, self.case]
        if depth < DEPTH_MAX:
            makers += [lambda: self.child(depth), lambda: self.rows(depth), lambda: self.whiles(depth)]
        self.left -= 1
        found = self.dice.pick(makers)()
        self.own[-1] += [node["id"] for node in found]
        return found

    def plain(self) -> list[dict[str, Any]]:
        dice, node_id = self.dice, self.name()
        if dice.chance(15):
            return [{"type": "mock", "id": node_id, "value": {"m": [1, "$x"]}}]
        if dice.chance(10):
            strategy = dice.pick(["continue", "continue-with"])
            handler = {"strategy": strategy, "defaultValue": {"d": 1}}
            return [{"type": "assignment", "id": node_id, "output": FAILS, "errorHandler": handler}]
        if len(self.own) == 1 and dice.chance(4):
            return [{"type": "assignment", "id": node_id, "output": FAILS, "errorHandler": {"code": 77}}]
        return [{"type": "assignment", "id": node_id, "output": self.value(), "outputType": {"dataType": "any"}}]

    def arms(self, count: int) -> list[dict[str, Any]]:
        return [{"type": "assignment", "id": self.name(), "output": self.value()} for _ in range(count)]

    def decide(self) -> list[dict[str, Any]]:
        yes, no = self.arms(2)
        return [
            {"type": "if", "id": self.name(), "condition": self.condition(), "next": yes["id"], "else_next": no["id"]},
            yes,
            no,
        ]

    def choose(self) -> list[dict[str, Any]]:
        arms = self.arms(3)
        branches: list[dict[str, Any]] = [
            {"name": arm["id"], "next": arm["id"], "condition": self.condition(), "priority": self.dice.below(3)}
            for arm in arms[:2]
        ]
        branches.append({"name": "d", "next": arms[2]["id"], "isDefault": True})
        return [{"type": "switch", "id": self.name(), "branches": branches}, *arms]

    def case(self) -> list[dict[str, Any]]:
        arms = self.arms(2)
        cases = [{"id": arms[0]["id"], "value": self.dice.pick([3, "text", *self.numbers])}]
        target = self.dice.pick(self.numbers)
        return [{"type": "case", "id": self.name(), "target": target, "cases": cases, "default": arms[1]["id"]}, *arms]

    def child(self, depth: int) -> list[dict[str, Any]]:
        given = self.dice.pick(["child", "heir"])
        node: dict[str, Any] = {"type": "child", "id": self.name(), "childFlow": self.level(depth + 1, given)}
        if given == "child":
            number = self.dice.pick(self.numbers)
            node["input"] = {"x": number, "y": "inner", "list": [2, 8, 3], "rows": [{"n": 1}, {"n": 0}]}
        if self.dice.chance(30):
            node["childFlow"]["globalContext"] = {"g": 9}
        return [node]

    def rows(self, depth: int) -> list[dict[str, Any]]:
        kind = self.dice.pick(["map", "filter", "find", "loop", "reduce"])
        first = "$F.add($INPUT.first, $INPUT.second)" if kind == "reduce" else self.dice.pick(
            ["$INPUT.item", "$F.mul($INPUT.item, 2)", "$F.gt($INPUT.item, 3)", "$INPUT.index"]
        )  # fmt: skip
        own = [{"type": "assignment", "id": self.name(), "output": first}]
        body = {
            "nodes": [
                {"type": "start", "id": "s", "next": own[0]["id"]},
                {**own[0], "next": "e"},
                {"type": "end", "id": "e", "output": f"$NODE.{own[0]['id']}"},
            ]
        }
        node: dict[str, Any] = {"type": kind, "id": self.name(), "collection": [4, 1, 7], "childFlow": body}
        if self.inputs[-1] in ("flow", "child"):
            node["collection"] = "$INPUT.list"
        if kind == "reduce":
            node["initial"] = self.dice.pick([0, 10])
        elif depth + 1 < DEPTH_MAX and self.dice.chance(40):
            node["childFlow"] = self.level(depth + 1, "round")
        return [node]

    def whiles(self, depth: int) -> list[dict[str, Any]]:
        condition = {"field": "$LOOP-INDEX", "operator": "lt", "value": 1 + self.dice.below(3)}
        return [
            {"type": "while", "id": self.name(), "condition": condition, "childFlow": self.level(depth + 1, "round")}
        ]


def _lead(nodes: list[dict[str, Any]], target: str) -> None:
    """Everything that does not lead anywhere yet leads to the target."""
    for node in nodes:
        if node["type"] not in ("if", "switch", "case", "end"):
            node.setdefault("next", target)


def generate(seed: int) -> dict[str, Any]:
    """A flow for a seed; its input is ``INPUT``."""
    maker = Maker(Dice(seed))
    return {"flow_id": f"f{seed}", "globalContext": {"g": 5}, **maker.level(0)}
