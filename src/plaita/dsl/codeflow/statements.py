"""Statements to nodes: one ``LevelWriter`` writes one level of a flow.

``pending`` are the ends that lead nowhere yet: documents and the key that will hold the id of whatever comes next.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

from plaita.dsl.codeflow import decisions, endings, loops, matches
from plaita.dsl.codeflow.calls import COLLECTIONS, STATEMENTS, Calls, call_name, literal_of, type_of
from plaita.dsl.codeflow.conditions import condition
from plaita.dsl.codeflow.errors import Complaints, Refused
from plaita.dsl.codeflow.expressions import Expressions
from plaita.dsl.codeflow.naming import Ids, text_of, written_ids
from plaita.dsl.codeflow.scopes import ROOTS, Level

_ANNOTATIONS: Final = {
    "int": "integer", "float": "number", "str": "string", "bool": "boolean", "list": "array", "dict": "object",
}  # fmt: skip
_REFUSED: Final[dict[type[ast.stmt], tuple[str, str]]] = {
    ast.Raise: ("raise", 'end(result_type="error", error={"code": 400, "message": "…"})'),
    ast.Try: ("try", "on_error=ErrorHandler(…) of the node that may fail"),
    ast.AugAssign: ("an assignment that changes a variable", "a new name: y = x + 1; or REDUCE, WHILE"),
    ast.Break: ("break", "LOOP(…, condition=…) or FIND(…)"),
    ast.Continue: ("continue", "return the value of the round"),
    ast.With: ("with", ""),
    ast.AsyncFor: ("async", "MAP(…, concurrent=True)"),
    ast.AsyncWith: ("async", ""),
    ast.FunctionDef: ("a function inside the flow", "@childflow at the top of the module"),
    ast.ClassDef: ("a class", ""),
    ast.Import: ("an import inside the flow", "CODE(…) runs Python with its imports"),
    ast.ImportFrom: ("an import inside the flow", "CODE(…) runs Python with its imports"),
    ast.Global: ("global", "$GLOBAL is read with GLOBAL.name"),
    ast.Nonlocal: ("nonlocal", ""),
    ast.Delete: ("del", ""),
    ast.Assert: ("assert", 'if not …: end(result_type="error", error={…})'),
}


class Job(Protocol):
    """What the levels of one compilation share."""

    complaints: Complaints

    @property
    def lines(self) -> Sequence[str]:
        """The text that is being compiled."""

    @property
    def constants(self) -> Mapping[str, Any]:
        """Literals at the top of its module."""

    def sub_flow(self, node: ast.expr) -> dict[str, Any]:
        """Compile the child flow that an expression names. Raises ``Refused``."""

    def count(self, node: ast.AST) -> None:
        """One more node. Raises ``CodeflowError`` when there are too many."""


End: TypeAlias = tuple[dict[str, Any], str]
"""A document and the key in it that will hold the id of what comes next."""


class Meeting:
    """Where ways come together again."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.before = dict(variables)
        self._ends: list[End] = []
        self._seen: list[Mapping[str, str]] = []

    def arrive(self, writer: LevelWriter) -> None:
        """A way is written; it counts unless it has ended."""
        if writer.pending:
            self._ends += writer.pending
            self._seen.append(writer.level.variables)

    def go_on(self, writer: LevelWriter) -> None:
        """Continue with all that have not ended, and with the names that every one of them knows."""
        first, *others = self._seen or [self.before]
        common = {name: at for name, at in first.items() if all(names.get(name) == at for names in others)}
        writer.pending, writer.level.variables = self._ends, common


class LevelWriter:
    """Writes the nodes of one level."""

    def __init__(
        self, job: Job, body: Sequence[ast.stmt], parent: Level | None = None, given: Mapping[str, str] | None = None
    ) -> None:
        self.job, self.body = job, body
        self.level = Level(Ids(written_ids(body)), parent, given=given or {}, constants=job.constants)
        self.start: dict[str, Any] = {"type": "start", "id": self._start_id(body)}
        self.level.add(self.start)
        self.pending: list[End] = [(self.start, "next")]
        self.write = Expressions(self.level)

    @staticmethod
    def _start_id(body: Sequence[ast.stmt]) -> str:
        return "start" if "start" not in set(written_ids(body)) else "start_of_flow"

    def nodes(self, whole: ast.AST, what: str) -> list[dict[str, Any]]:
        """Write everything; every way must end."""
        self.block(self.body)
        if self.pending:
            last = self.body[-1] if self.body else whole
            self.complain(Refused(last, f"{what} goes on to nowhere after this", "add return, or end(…)"))
        return self.level.nodes

    def complain(self, refused: Refused) -> None:
        """Note what is wrong and go on."""
        self.job.complaints.add(refused, self.job.lines)

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Write statements one after the other; one that is refused is left out."""
        for statement in statements:
            if not self.pending:
                self.complain(Refused(statement, "nothing leads here", "remove it, or the return before it"))
                return
            try:
                self.statement(statement)
            except Refused as e:
                self.complain(e)

    def statement(self, s: ast.stmt) -> None:
        """Write one statement. Raises ``Refused``."""
        match s:
            case ast.Expr(value=ast.Constant(value=str() | ast.Ellipsis)) | ast.Pass():
                return
            case ast.Expr(value=value):
                self._expression(s, value)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._assign(s, name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._assign(s, name, value, self._declared(s.annotation))
            case ast.Return(value=value):
                endings.write_return(self, s)
            case ast.If():
                decisions.write(self, s)
            case ast.For():
                loops.write_for(self, s)
            case ast.While():
                loops.write_while(self, s)
            case ast.Match():
                matches.write(self, s)
            case ast.Assign():
                raise Refused(s, "an assignment has one name on its left", "one statement for each")
            case _:
                if isinstance(s, ast.Raise | ast.Break | ast.Continue):
                    self.pending = []
                what, hint = _REFUSED.get(type(s), (type(s).__name__.lower(), ""))
                raise Refused(s, f"{what} cannot be part of a flow", hint)

    def add(self, node: dict[str, Any], at: ast.AST) -> dict[str, Any]:
        """A node to which everything pending leads; it is pending itself."""
        self.job.count(at)
        node["source_line"] = getattr(at, "lineno", None)
        for document, key in self.pending:
            document[key] = node["id"]
        self.level.add(node)
        self.pending = [(node, "next")]
        return node

    def calls(self, names: Mapping[str, str] | None = None) -> Calls:
        """What makes nodes of calls."""
        return Calls(Expressions(self.level, names), self.job.sub_flow)

    def named(self, call: ast.Call, base: str) -> str:
        """The ``id`` of a call, or a made one. Raises ``Refused``."""
        given = next((k for k in call.keywords if k.arg == "id"), None)
        if given is None:
            return self.level.ids.make(base)
        node_id = literal_of(given.value)
        if not isinstance(node_id, str) or not node_id:
            raise Refused(given.value, "an id is a text")
        if node_id in self.level.node_ids:
            raise Refused(given.value, f"there is a node {node_id!r} already")
        return node_id

    def bind(self, s: ast.AST, name: str, node_id: str) -> None:
        """Let a name stand for the result of a node. Raises ``Refused`` when it has a meaning already."""
        before = self.level.assigned.get(name)
        if before is not None:
            hint = f"a new name: {name}_2 = …; for one of two values: {name} = a if test else b"
            raise Refused(s, f"{name!r} is assigned in line {before} already, and a node has one result", hint)
        if name in ROOTS or name in ("F", "STATE"):
            raise Refused(s, f"{name!r} has a meaning of its own", "choose another name")
        if name in self.level.given or self.level.is_known_outside(name):
            hint = "another name; a round cannot change what is outside: REDUCE hands a value from round to round"
            raise Refused(s, f"{name!r} has a meaning outside of the round already", hint)
        self.level.assigned[name] = getattr(s, "lineno", 0)
        self.level.variables[name] = node_id

    def ways(self, arms: Sequence[tuple[list[End], Sequence[ast.stmt]]]) -> None:
        """Write arms of which one is taken; what follows sees the names that all of them assign."""
        meeting = self.meeting()
        for pending, statements in arms:
            self.pending, self.level.variables = pending, dict(meeting.before)
            self.block(statements)
            meeting.arrive(self)
        meeting.go_on(self)

    def meeting(self) -> Meeting:
        """Where ways that part here come together again."""
        return Meeting(self.level.variables)

    def round(self, body: Sequence[ast.stmt], given: Mapping[str, str]) -> LevelWriter:
        """The writer of a level inside this one."""
        return LevelWriter(self.job, body, self.level, given)

    def condition(self, test: ast.expr) -> dict[str, Any]:
        """The condition of a test; a refused one is noted and taken as true, so that its arms are looked at too."""
        try:
            return condition(test, self.write)
        except Refused as e:
            self.complain(e)
            return {"field": True, "operator": "truthy", "value": True}

    def value(self, value: ast.expr) -> Any:
        """The value of an expression; a refused one is noted and taken as null."""
        try:
            return self.write.value(value)
        except Refused as e:
            self.complain(e)
            return None

    def _expression(self, s: ast.stmt, value: ast.expr) -> None:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "end":
            endings.write_call(self, s, value)
            return
        node_type = type_of(value)
        if node_type is None:
            self.write.value(value)
            raise Refused(s, "this has no effect", f"assign it: x = {text_of(value, 60)}")
        assert isinstance(value, ast.Call)
        self._node(s, value, node_type, self.named(value, node_type))

    def _assign(self, s: ast.stmt, name: str, value: ast.expr, declared: str | None = None) -> None:
        given = name
        try:
            node_type = type_of(value)
            if isinstance(value, ast.Call) and node_type is not None and any(k.arg == "id" for k in value.keywords):
                given = self.named(value, name)
            if node_type is None:
                node = {"type": "assignment", "id": given, "output": self.value(value)}
                if declared is not None:
                    node["outputType"] = {"dataType": declared}
                self._checked_id(s, given)
                self.add(node, s)
            else:
                assert isinstance(value, ast.Call)
                self._node(s, value, node_type, given)
        finally:
            # The name has its meaning even when the value is refused: what follows is looked at on its own.
            self.bind(s, name, given)

    def _checked_id(self, s: ast.stmt, node_id: str) -> None:
        if node_id in self.level.node_ids and node_id not in self.level.assigned:
            raise Refused(s, f"there is a node {node_id!r} already", "choose another name")

    def _node(self, s: ast.stmt, call: ast.Call, node_type: str, node_id: str) -> None:
        name = call_name(call)
        in_loop = name in COLLECTIONS or name == "WHILE"
        if in_loop and any(k.arg in ("flow", "child_flow") for k in call.keywords):
            pass
        elif in_loop:
            raise Refused(call, f"{name}(…) is the head of a loop", f"for item in {name}(…, id={node_id!r}): …")
        elif name in STATEMENTS:
            raise Refused(call, f"{name}(…) is no statement", STATEMENTS[name])
        node = self.calls().node(call, node_type)
        self.add({"type": node_type, "id": node_id, **{k: v for k, v in node.items() if k not in ("type", "id")}}, s)

    def _declared(self, annotation: ast.expr) -> str:
        found = _ANNOTATIONS.get(text_of(annotation))
        if found is None:
            raise Refused(annotation, "this type cannot be checked", f"one of {', '.join(_ANNOTATIONS)}, or ASSIGN(…)")
        return found
