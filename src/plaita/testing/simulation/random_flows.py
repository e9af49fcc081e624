"""Random nested flows from a seed, for tests that compare ways of driving them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeVar

T = TypeVar("T")

ODD_IDS = ("a/b", "c:d", "é", "p|q", "n~1", "x@y", "h#1", "%2f", "plain", "two words")
DEPTH_MAX = 3
NODES_MAX = 28


def weigh(*parts: object) -> int:
    """A number that depends on nothing but the parts."""
    return int.from_bytes(blake2b(repr(parts).encode(), digest_size=6).digest())


class Dice:
    """A reproducible source of choices."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    def below(self, n: int) -> int:
        self._count += 1
        return weigh(self._seed, self._count) % n

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]


@dataclass
class Generated:
    """A flow, its input, and whether the outcome may depend on the clock or the environment."""

    flow: dict[str, Any]
    value: dict[str, Any]
    reads_outside: bool


@dataclass
class _Maker:
    dice: Dice
    effect: str = "outside"
    left: int = NODES_MAX
    count: int = 0
    reads_outside: bool = False
    scopes: list[list[str]] = field(default_factory=list)

    def name(self) -> str:
        self.count += 1
        odd = self.dice.pick(ODD_IDS) if self.dice.chance(30) else "n"
        return f"{odd}{self.count}"

    def reference(self) -> str:
        """Something small to read."""
        dice = self.dice
        outside = ["$F.now()", "$ENV.COLOUR", "{% $ENV.COLOUR %}!"] if dice.chance(6) else []
        if outside:
            self.reads_outside = True
            return dice.pick(outside)
        options = [
            "$INPUT.item",
            "$INPUT.index",
            "$INPUT.x",
            "$INPUT.list[1]",
            "$LAST_NODE",
            "$GLOBAL.g",
            "$seen",
        ]
        for ids in self.scopes:
            options += [f'$NODE["{i}"]' for i in ids[-3:]]
        return dice.pick(options)

    def value(self) -> Any:
        dice, read = self.dice, self.reference()
        if not read.startswith("$"):
            return read
        return dice.pick(
            [
                read,
                [read, dice.below(5)],
                {"k": read},
                f"{{% {read} %}}-t",
                f"$F.ifelse({read}, 1, 2)",
                f"$( {read} if {read} else 'none' )",
                dice.below(9),
            ]
        )

    def condition(self) -> dict[str, Any]:
        dice = self.dice
        single = {"field": self.reference(), "operator": dice.pick(["truthy", "falsy"])}
        other = {"field": self.reference(), "operator": dice.pick(["eq", "ne", "gt"]), "value": dice.below(3)}
        if dice.chance(30):
            return {"relation": dice.pick(["and", "or"]), "conditions": [single, other]}
        return dice.pick([single, single, other])

    def handlers(self, node: dict[str, Any]) -> dict[str, Any]:
        dice = self.dice
        if dice.chance(35):
            handler: dict[str, Any] = {"strategy": dice.pick(["abort", "continue", "continue-with"])}
            if dice.chance(40):
                handler["retry"] = {"attempts": 1 + dice.below(3), "base": 500, "jitter": dice.pick([0, 0.5])}
            if dice.chance(30):
                handler["code"] = dice.pick([77, "E_CODE"])
            if handler["strategy"] == "continue-with":
                handler["defaultValue"] = self.value() if dice.chance(80) else "$( 'a' * 2 - [] )"
            node["errorHandler"] = handler
        if dice.chance(25):
            node["timeout"] = dice.pick([700, 2500, "PT30S"])
            if dice.chance(60):
                node["timeoutHandler"] = {"strategy": dice.pick(["abort", "continue"]), "code": 88}
        return node

    def level(self, depth: int) -> dict[str, Any]:
        """A flow with a start, some pieces in a row, and an end."""
        self.scopes.append([])
        # The first node provides $seen for all that follow.
        pieces = [self.call(0)] if depth == 0 else []
        self.scopes[-1] += [piece[0]["id"] for piece in pieces]
        for _ in range(1 + self.dice.below(4 if depth else 6)):
            if self.left <= 0:
                break
            pieces.append(self.piece(depth))
        nodes: list[dict[str, Any]] = [{"id": "s", "type": "start"}]
        for piece in pieces:
            _lead(nodes, piece[0]["id"])
            nodes += piece
        end: dict[str, Any] = {"id": "end", "type": "end"}
        if self.dice.chance(5):
            end |= {"resultType": "error", "error": {"code": self.value(), "message": "{% $INPUT.x %} said no"}}
        else:
            end["output"] = [f'$NODE["{i}"]' for i in self.scopes[-1][-3:]] or self.value()
        _lead(nodes, "end")
        nodes.append(end)
        self.scopes.pop()
        flow: dict[str, Any] = {"nodes": nodes}
        if depth and self.dice.chance(20):
            flow["flowId"] = f"sub{self.count}"
            flow["globalContext"] = {"g": self.dice.below(9)}
        if depth and self.dice.chance(8):
            flow["timeout"] = "PT3S"
        return flow

    def piece(self, depth: int) -> list[dict[str, Any]]:
        """One node, or a few that belong together; the last ones lead on."""
        self.left -= 1
        makers: list[Callable[[int], list[dict[str, Any]]]] = [
            self.plain, self.plain, self.call, self.call, self.wait, self.wait, self.fork, self.cycle,
        ]  # fmt: skip
        if depth < DEPTH_MAX and self.left > 2:
            makers += [self.child, self.rounds, self.rounds, self.fan, self.fan, self.while_rounds]
        piece = self.dice.pick(makers)(depth)
        self.scopes[-1] += [n["id"] for n in piece]
        return piece

    def plain(self, depth: int) -> list[dict[str, Any]]:
        if self.dice.chance(20):
            return [{"id": self.name(), "type": "mock", "value": {"text": "$INPUT.x", "n": self.dice.below(9)}}]
        return [self.handlers({"id": self.name(), "type": "assignment", "output": self.value()})]

    def call(self, depth: int) -> list[dict[str, Any]]:
        value = self.value()
        if self.dice.chance(8):
            self.reads_outside = True
            value = ["$F.now()", value]
        return [self.handlers({"id": self.name(), "type": self.effect, "input": value})]

    def wait(self, depth: int) -> list[dict[str, Any]]:
        dice, node_id = self.dice, self.name()
        kind = dice.below(4)
        if kind == 0:
            return [{"id": node_id, "type": "delay", "delaySeconds": 1 + dice.below(4)}]
        if kind == 1:
            return [
                self.handlers(
                    {"id": node_id, "type": "approval", "approvalTitle": "{% $INPUT.x %}?", "approvers": ["ann"]}
                )
            ]
        node: dict[str, Any] = {"id": node_id, "type": "event", "eventType": dice.pick(["paid", "{% $INPUT.x %}-seen"])}
        if dice.chance(30):
            node["subscriptionTimeout"] = 2
        if dice.chance(30):
            node["eventFilter"] = {"ok": True}
        return [self.handlers(node)]

    def fork(self, depth: int) -> list[dict[str, Any]]:
        """A decision with two ways that meet again."""
        dice = self.dice
        here, left, right = self.name(), self.name(), self.name()
        ways = [self._way(left), self._way(right)]
        kind = dice.below(3)
        if kind == 0:
            node: dict[str, Any] = {
                "id": here,
                "type": "if",
                "condition": self.condition(),
                "next": left,
                "elseNext": right,
            }
        elif kind == 1:
            branches: list[dict[str, Any]] = [{"next": left, "condition": self.condition()}]
            branches.append(
                {"next": right, "isDefault": True}
                if dice.chance(85)
                else {"next": right, "condition": self.condition()}
            )
            node = {"id": here, "type": "switch", "branches": branches}
        else:
            node = {
                "id": here,
                "type": "case",
                "target": self.reference(),
                "cases": [{"id": left, "value": 1}],
                "default": right,
            }
        return [node, *ways]

    def _way(self, node_id: str) -> dict[str, Any]:
        kind = self.dice.pick(["assignment", self.effect, "event"])
        if kind == "event":
            return {"id": node_id, "type": "event", "eventType": "fork", OPEN: True}
        return {"id": node_id, "type": kind, "output" if kind == "assignment" else "input": self.value(), OPEN: True}

    def cycle(self, depth: int) -> list[dict[str, Any]]:
        """Count to three over a graph cycle with something inside."""
        count, inner, test = self.name(), self.name(), self.name()
        body: dict[str, Any]
        kind = self.dice.below(4 if depth < DEPTH_MAX else 3)
        if kind == 0:
            body = {"id": inner, "type": self.effect, "input": f'$NODE["{count}"]'}
        elif kind == 1:
            body = {"id": inner, "type": "event", "eventType": "again"}
        elif kind == 2:
            body = {"id": inner, "type": "assignment", "output": self.value()}
        else:
            self.left -= 1
            body = {"id": inner, "type": "child", "childFlow": self.level(depth + 1)}
        return [
            {"id": count, "type": "assignment", "output": f'$( ($NODE["{count}"] or 0) + 1 )', "next": inner},
            {**self.handlers(body), "next": test},
            {
                "id": test, "type": "if", "next": count, OPEN: "elseNext",
                "condition": {"field": f'$NODE["{count}"]', "operator": "lt", "value": 2 + self.dice.below(3)},
            },
        ]  # fmt: skip

    def child(self, depth: int) -> list[dict[str, Any]]:
        node: dict[str, Any] = {"id": self.name(), "type": "child", "childFlow": self.level(depth + 1)}
        if self.dice.chance(50):
            node["input"] = {"x": self.value(), "item": None} if self.dice.chance(50) else self.value()
        return [self.handlers(node)]

    def _collection(self) -> Any:
        if self.dice.chance(5):
            return self.reference()
        return self.dice.pick(["$INPUT.list", "$INPUT.list", [], [1], ["$INPUT.x", None, 3, {"a": 1}]])

    def rounds(self, depth: int) -> list[dict[str, Any]]:
        dice = self.dice
        kind = dice.pick(["loop", "map", "filter", "find", "reduce"])
        node: dict[str, Any] = {"id": self.name(), "type": kind, "collection": self._collection()}
        node["childFlow"] = self.level(depth + 1)
        if kind == "loop" and dice.chance(30):
            node["condition"] = {"field": "$LOOP-INDEX", "operator": "lt", "value": 1}
        if kind == "reduce" and dice.chance(60):
            node["initial"] = dice.below(4)
        return [self.handlers(node)]

    def while_rounds(self, depth: int) -> list[dict[str, Any]]:
        node = {
            "id": self.name(),
            "type": "while",
            "maxIterations": self.dice.below(4),
            "childFlow": self.level(depth + 1),
        }
        node["condition"] = {"field": "$LOOP-INDEX", "operator": "lt", "value": 3}
        return [self.handlers(node)]

    def fan(self, depth: int) -> list[dict[str, Any]]:
        dice = self.dice
        node: dict[str, Any] = {"id": self.name()}
        if dice.chance(40):
            node |= {"type": "map", "concurrent": True, "collection": self._collection()}
            node["childFlow"] = self.level(depth + 1)
        else:
            names = [dice.pick(ODD_IDS) + str(i) for i in range(2 + dice.below(2))]
            node |= {"type": "parallel", "branches": [self._branch(name, depth) for name in names]}
            if dice.chance(15):
                node["joinBranches"] = names[:-1]
        if dice.chance(50):
            node["maxConcurrent"] = 1 + dice.below(2)
        if dice.chance(50):
            node["onBranchError"] = "collect"
        return [self.handlers(node)]

    def _branch(self, name: str, depth: int) -> dict[str, Any]:
        branch: dict[str, Any] = {"name": name, "flow": self.level(depth + 1)}
        if self.dice.chance(30):
            branch["input"] = {"x": self.value()}
        return branch


OPEN = "\0open"
"""Marks a node that still has to lead somewhere; its value may name the field."""


def _lead(nodes: list[dict[str, Any]], target: str) -> None:
    """Let everything that leads nowhere lead to ``target``."""
    last = nodes[-1]
    if last["type"] not in ("if", "switch", "case") and "next" not in last:
        last.setdefault(OPEN, True)
    for node in nodes:
        name = node.pop(OPEN, None)
        if name is not None:
            node["next" if name is True else name] = target


def generate(seed: int, effect: str = "outside", nodes_max: int = NODES_MAX) -> Generated:
    """The flow of a seed. ``effect`` is the type of its effectful nodes; it has an ``input`` and sets ``$seen``."""
    maker = _Maker(Dice(seed), effect, nodes_max)
    flow = maker.level(0)
    flow |= {"flowId": "fuzz", "globalContext": {"g": "global"}, "exposeEnv": ["COLOUR"]}
    if maker.dice.chance(10):
        flow["timeout"] = "PT20S"
    value = {"x": maker.dice.pick(["text", 5, None, True]), "list": [1, "two", {"n": 3}][: 1 + maker.dice.below(3)]}
    return Generated(flow, value, maker.reads_outside)
