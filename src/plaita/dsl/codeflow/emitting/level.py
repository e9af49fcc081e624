"""One level of a flow to statements: straight pieces, arms of decisions, bodies of loops."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from plaita.dsl.codeflow.emitting.calls import CallEmitter
from plaita.dsl.codeflow.emitting.values import MEANT, Values, is_name, literal, quoted
from plaita.dsl.codeflow.emitting.ways import BRANCHING, Ways, target_of, targets
from plaita.dsl.codeflow.errors import EmitError
from plaita.dsl.codeflow.naming import free, slug
from plaita.dsl.codeflow.scopes import LOOP_NAMES
from plaita.engine.expression.syntax import Step

if TYPE_CHECKING:
    from plaita.dsl.codeflow.emitting.module import Module

INDENTED_MAX: Final = 80
"""Python itself ends at a hundred levels."""
MADE: Final = (*BRANCHING, "end", "map", "filter", "find", "loop", "reduce", "while")
"""Types whose ids the compiler makes when nobody writes them."""
Block = list[str]
"""The lines of one statement."""


class LevelEmitter:
    """Writes the statements of one level. ``given``: names of the loop around it, for paths of its input."""

    def __init__(
        self,
        module: Module,
        nodes: Sequence[dict[str, Any]],
        outer: LevelEmitter | None = None,
        given: dict[tuple[str, ...], str] | None = None,
    ) -> None:
        self.module, self.outer, self.given = module, outer, given or {}
        self.ways = Ways(list(nodes))
        self.variables: set[str] = set()
        self.done: set[str] = set()
        self.taken = {"start", *(i for i, node in self.ways.nodes.items() if node.get("type") not in MADE)}
        self.stops: list[str] = []
        self.deep: int = 0 if outer is None else outer.deep + 1
        self.values = Values(self._short)
        self.calls = CallEmitter(self)

    def lines(self) -> list[str]:
        """Everything, without indentation."""
        return _joined(self._region(targets(self.ways.start)[0])) or ["pass"]

    def body(self, document: dict[str, Any], given: dict[tuple[str, ...], str]) -> list[str]:
        """The lines of a child flow that stands inside a loop."""
        return LevelEmitter(self.module, document.get("nodes") or [], self, given).lines()

    def is_made(self, node_id: str, base: str) -> bool:
        """Will the compiler make this id of the base, so that nobody needs to write it? Asked in the order of the text.

        An id that may yet be written further down counts as free here, and then the answer is no.
        """
        made = free(base, self.taken)
        self.taken.add(node_id)
        return made == node_id

    def is_free(self, name: str) -> bool:
        """May an assignment to the name stand here?"""
        if not is_name(name) or name in MEANT or name in LOOP_NAMES or name.isupper():
            return False
        level: LevelEmitter | None = self.outer
        if name in self.given.values():
            return False
        while level is not None:
            if name in level.variables or name in level.given.values():
                return False
            level = level.outer
        return True

    def _short(self, root: str, steps: tuple[Step, ...]) -> tuple[str, int] | None:
        keys = tuple(step.key for step in steps)
        if root == "INPUT":
            for path, name in self.given.items():
                if keys[: len(path)] == path:
                    return name, len(path)
            return None
        up = 0
        level: LevelEmitter | None = self
        if root == "PARENT":
            up, level = 1, self.outer
            while level is not None and keys[up - 1 : up] == ("PARENT",):
                up, level = up + 1, level.outer
            if keys[up - 1 : up] != ("NODE",):
                return None
        elif root != "NODE":
            return None
        name = next(iter(keys[up:]), "")
        if level is None or name not in level.variables or steps[up].place is not None:
            return None
        return (name, up + 1) if self._means(name, level) else None

    def _means(self, name: str, level: LevelEmitter) -> bool:
        """Does the name mean the variable of that level here?"""
        here: LevelEmitter | None = self
        while here is not None and here is not level:
            if name in here.variables or name in here.given.values() or name in here.ways.nodes:
                return False
            here = here.outer
        return here is level

    def _region(self, node_id: str | None) -> list[Block]:
        """Statements from a node to the innermost stop, or to the ends."""
        blocks: list[Block] = []
        while node_id is not None and (not self.stops or node_id != self.stops[-1]):
            node = self.ways.nodes[node_id]
            if node_id in self.stops or (node_id in self.done and node["type"] != "end"):
                hint = "Python has no goto: let the ways meet before they part again"
                raise EmitError(f"ways cross at node {node_id!r}", hint)
            if node["type"] == "end":
                blocks.append([self.calls.end(node, again=node_id in self.done)])
                self.done.add(node_id)
                return blocks
            self.done.add(node_id)
            if node["type"] in BRANCHING:
                found, node_id = self._decision(node)
                blocks += found
            else:
                blocks.append(self.calls.statement(node))
                node_id = targets(node)[0]
        return blocks

    def _decision(self, node: dict[str, Any]) -> tuple[list[Block], str | None]:
        """The statement of a decision, and where it goes on at the same level."""
        arms = self._arms(node)
        distinct = list(dict.fromkeys(target for _, target in arms))
        follow = self.ways.meeting(distinct) if len(distinct) > 1 else distinct[0]
        stop = self.stops[-1] if self.stops else None
        alone = node["type"] == "if" and follow is None
        if alone and not (stop is not None and self.ways.reaches(distinct[0], stop)):
            # The first arm ends for good: the other one needs no else.
            before = set(self.variables)
            [inner] = self._written([distinct[0]], None)
            self.variables = before
            return [[*self._head(node), *_indented(inner)]], distinct[1]
        bodies = self._written([target for _, target in arms], follow)
        if node["type"] == "if":
            return [_if(self._head(node)[0], bodies)], follow
        block = self._head(node)
        for (case, _), body in zip(arms, bodies, strict=True):
            block += [f"    {case}", *(f"    {line}" for line in _indented(body))]
        return [block], follow

    def _written(self, arms: list[str], follow: str | None) -> list[list[Block]]:
        """The regions of arms. What all of them that go on have assigned is known afterwards."""
        self.deep += 1
        if self.deep > INDENTED_MAX:
            raise EmitError(f"blocks are nested deeper than {INDENTED_MAX}", "put a part into a child flow")
        if follow is not None:
            self.stops.append(follow)
        stop = self.stops[-1] if self.stops else None
        before, known = set(self.variables), None
        found: list[list[Block]] = []
        written: dict[str, None] = {}
        for arm in arms:
            self.variables = set(before)
            if arm in written and arm != stop:
                raise EmitError(f"two branches lead to {arm!r} and a third one elsewhere", "let them meet in one node")
            written[arm] = None
            found.append(self._region(arm))
            if stop is not None and self.ways.reaches(arm, stop):
                known = self.variables if known is None else known & self.variables
        if follow is not None:
            self.stops.pop()
        self.variables = before if known is None else set(known)
        self.deep -= 1
        return found

    def _arms(self, node: dict[str, Any]) -> list[tuple[str, str]]:
        """Heads of the arms and where they lead; arms of a ``match`` with one target are one arm if values allow it."""
        if node["type"] == "if":
            return [("", target) for target in targets(node)]
        if node["type"] == "switch" or not all(_is_constant(entry["value"]) for entry in node.get("cases") or ()):
            return self._guards(node)
        cases: dict[str, list[str]] = {}
        seen: list[Any] = []
        for entry in node.get("cases") or ():
            if entry["value"] not in seen:
                cases.setdefault(entry["id"], []).append(literal(entry["value"]))
            seen.append(entry["value"])
        default = node.get("default", "default")
        return [*((f"case {' | '.join(values)}:", target) for target, values in cases.items()), ("case _:", default)]

    def _guards(self, node: dict[str, Any]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        if node["type"] == "case":
            target = node.get("target")
            for entry in node.get("cases") or ():
                test = self.values.condition({"field": target, "operator": "eq", "value": entry["value"]})
                found.append((f"case _ if {test.text}:", entry["id"]))
            return [*found, ("case _:", node.get("default", "default"))]
        branches = sorted(node.get("branches") or (), key=lambda b: -(b.get("priority") or 0))
        rest: list[tuple[str, str]] = []
        for branch in branches:
            name = branch.get("name")
            pattern = quoted(name) if isinstance(name, str) and branch.get("next") is not None else "_"
            if branch.get("isDefault", branch.get("is_default")):
                rest = rest or [(f"case {pattern}:", target_of(branch))]
            else:
                found.append(
                    (f"case {pattern} if {self.values.condition(branch['condition']).text}:", target_of(branch))
                )
        return found + rest

    def _head(self, node: dict[str, Any]) -> list[str]:
        said = [f"{key}={quoted(node[key])}" for key in ("name", "desc") if isinstance(node.get(key), str)]
        if node["type"] == "if":
            test = "False" if node.get("condition") is None else self.values.condition(node["condition"]).text
            made = slug("if", ast.parse(test, mode="eval").body)
            if self.is_made(str(node["id"]), made) and not said:
                return [f"if {test}:"]
            return [f"if IF({', '.join([test, _id(node), *said])}):"]
        said.insert(0, _id(node))
        self.taken.add(str(node["id"]))
        constant = all(_is_constant(entry["value"]) for entry in node.get("cases") or ())
        if node["type"] == "case" and constant:
            said.insert(0, self.values.value(node.get("target")).text)
            return [f"match CASE({', '.join(said)}):"]
        has_default = node["type"] == "case" or any(
            b.get("isDefault", b.get("is_default")) for b in node.get("branches") or ()
        )
        strict = [] if has_default else ["must_match=True"]
        return [f"match SWITCH({', '.join([*said, *strict])}):"]


def _id(node: dict[str, Any]) -> str:
    return f"id={quoted(str(node['id']))}"


def _is_constant(value: Any) -> bool:
    """Can the value stand in a ``case``?"""
    if isinstance(value, str):
        return not value.startswith("$") and "{%" not in value
    return value is None or isinstance(value, bool | int | float)


def _joined(blocks: list[Block]) -> list[str]:
    return [line for block in blocks for line in block]


def _indented(blocks: list[Block]) -> list[str]:
    return [f"    {line}" for line in _joined(blocks)] or ["    pass"]


def _if(head: str, bodies: list[list[Block]]) -> Block:
    then, otherwise = bodies
    block = [head, *_indented(then)]
    if not otherwise:
        return block
    if len(otherwise) == 1 and otherwise[0][0].startswith("if "):
        return [*block, f"el{otherwise[0][0]}", *otherwise[0][1:]]
    return [*block, "else:", *_indented(otherwise)]
