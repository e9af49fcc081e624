"""Paths to closures, specialised by shape. The only place that knows which frame a name is looked up in.

``$NODE.<id>`` binds at load. A first key of ``$INPUT``, ``$GLOBAL`` or ``$ENV`` that is absent in its own frame is
looked up in the parent; a key that is present with null is null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from plaita.base.json import Json
from plaita.base.spelling import suggest
from plaita.engine.expression.compiled import Built, Notes, Run, broken
from plaita.engine.expression.scope import ABSENT, Scope
from plaita.engine.expression.syntax import Path, Step

ROOTS: Final = (
    "INPUT", "NODE", "GLOBAL", "PARENT", "ENV", "FLOW_ID", "FLOW", "EXECUTION_ID", "LAST_NODE", "BRANCH",
)  # fmt: skip
"""Roots that exist everywhere."""

_ROOTS: Final = frozenset(ROOTS)


def walk(value: Json, steps: tuple[Step, ...]) -> Json:
    """Follow steps; what is missing, out of range or of another type is null."""
    for key, index in steps:
        kind = type(value)
        if kind is dict:
            value = value.get(key)
        elif index is not None and (kind is list or kind is str) and -len(value) <= index < len(value):
            value = value[index]
        else:
            return None
    return value


def compile_path(path: Path, notes: Notes) -> Built:
    """The closure of a path, with findings for unknown roots, reserved names and suspicious spellings."""
    if not check_steps(path.steps, path.at, notes) or not (path.root in _ROOTS or _check_root(path, notes)):
        return broken("$" + path.root)
    root, steps = path.root, path.steps
    if root == "PARENT":
        return _parent_path(steps, notes)
    notes.roots.add("FLOW_ID" if root == "FLOW" else root)
    if root == "NODE" and steps:
        return _node_path(steps, notes)
    return _root_path(root, steps)


def check_steps(steps: tuple[Step, ...], at: int, notes: Notes) -> bool:
    """Note reserved names (False when there is one) and names that look like a subtraction."""
    for key, _ in steps:
        if key.startswith("__"):
            notes.error("expression_reserved_name", f"the name {key!r} is reserved: no name begins with __", at)
            return False
        if "-$" in key:
            notes.warn(
                "expression_missing_space",
                f"{key!r} is one name with a - and a $ in it",
                at,
                "write a - b with spaces for a subtraction",
            )
    return True


def _check_root(path: Path, notes: Notes) -> bool:
    root, names = path.root, notes.names
    if root in names.extra_roots:
        return True
    if root == "F":
        name = path.steps[0].key if path.steps else "name"
        notes.error("expression_syntax", "a function is called with parentheses", path.at, f"write $F.{name}(…)")
        return False
    if root.startswith("__"):
        notes.error("expression_reserved_name", f"the name {root!r} is reserved: no name begins with __", path.at)
        return False
    hint = suggest(root, [*ROOTS, *names.extra_roots]) or 'write {% "$" %} for a dollar sign in text'
    if names.open_roots and root:
        notes.warn("expression_unknown_root", f"${root} is not a known root", path.at, hint)
        return True
    notes.error("expression_unknown_root", f"${root} is not a known root", path.at, hint)
    return False


def _root_path(root: str, steps: tuple[Step, ...]) -> Built:
    if not steps:
        return Built(_BARE.get(root) or _extra(root), unchecked=root in _COPIED)
    keyed = _KEYED.get(root)
    if keyed is not None:
        return Built(_then(keyed(steps[0]), steps[1:]))
    return Built(_then(_BARE.get(root) or _extra(root), steps))


def _then(first: Run, steps: tuple[Step, ...]) -> Run:
    if not steps:
        return first
    if len(steps) > 1 or steps[0].place is not None:
        return lambda s: walk(first(s), steps)
    key = steps[0].key

    def run(s: Scope) -> Json:
        value = first(s)
        return value.get(key) if type(value) is dict else None

    return run


# -- $INPUT ------------------------------------------------------------------------------------------------------------


def _input(scope: Scope) -> Json:
    frame: Scope | None = scope
    while frame is not None:
        if frame.input is not ABSENT:
            return frame.input
        frame = frame.parent
    return None


def _input_key(step: Step) -> Run:
    key = step.key
    if step.place is not None:
        return lambda s: _inherited_input(s, step)

    def run(s: Scope) -> Json:
        own = s.input
        if type(own) is dict and key in own:
            return own[key]
        return _inherited_input(s, step)

    return run


def _inherited_input(scope: Scope, step: Step) -> Json:
    frame: Scope | None = scope
    while frame is not None:
        own = frame.input
        if type(own) is dict:
            if step.key in own:
                return own[step.key]
        elif step.place is not None and (type(own) is list or type(own) is str):
            return walk(own, (step,))
        frame = frame.parent
    return None


# -- $GLOBAL and $ENV --------------------------------------------------------------------------------------------------


def _globals(scope: Scope) -> Json:
    found: dict[str, Json] = {}
    frame: Scope | None = scope
    while frame is not None:
        found = {**frame.globals, **found}
        frame = frame.parent
    return found


def _global_key(step: Step) -> Run:
    key = step.key

    def run(s: Scope) -> Json:
        frame: Scope | None = s
        while frame is not None:
            if key in frame.globals:
                return frame.globals[key]
            frame = frame.parent
        return None

    return run


def _env(scope: Scope) -> Json:
    found: dict[str, Json] = {}
    frame: Scope | None = scope
    while frame is not None:
        found = {**frame.env, **found}
        frame = frame.parent
    return found


def _env_key(step: Step) -> Run:
    key = step.key

    def run(s: Scope) -> Json:
        frame: Scope | None = s
        while frame is not None:
            if key in frame.env:
                return frame.env[key]
            frame = frame.parent
        return None

    return run


# -- $NODE -------------------------------------------------------------------------------------------------------------


def _node_path(steps: tuple[Step, ...], notes: Notes) -> Built:
    names = notes.names
    if steps[0].key == "raw" and len(steps) > 1 and names.depth_of("raw") < 0:
        steps = steps[1:]
    node_id = steps[0].key
    depth = names.depth_of(node_id)
    notes.nodes[depth, node_id] = None
    if depth > 0:
        return Built(_then(_outer_node(node_id, depth), steps[1:]))
    if len(steps) == 1:
        return Built(lambda s: s.nodes.get(node_id))
    if len(steps) == 2 and steps[1].place is None:
        return Built(_own_node_key(node_id, steps[1].key))
    return Built(_then(lambda s: s.nodes.get(node_id), steps[1:]))


def _own_node_key(node_id: str, key: str) -> Run:
    def run(s: Scope) -> Json:
        value = s.nodes.get(node_id)
        return value.get(key) if type(value) is dict else None

    return run


def _outer_node(node_id: str, depth: int) -> Run:
    def run(s: Scope) -> Json:
        frame = _climb(s, depth)
        return None if frame is None else frame.nodes.get(node_id)

    return run


def _climb(scope: Scope, depth: int) -> Scope | None:
    frame: Scope | None = scope
    for _ in range(depth):
        if frame is None:
            return None
        frame = frame.parent
    return frame


# -- $PARENT -----------------------------------------------------------------------------------------------------------


def _parent_path(steps: tuple[Step, ...], notes: Notes) -> Built:
    depth = 1
    while steps and _root_name(steps[0]) == "PARENT":
        depth, steps = depth + 1, steps[1:]
    notes.roots.add("PARENT")
    if not steps:
        return Built(lambda s: _snapshot(_climb(s, depth - 1)), unchecked=True)
    root, rest = _root_name(steps[0]), steps[1:]
    notes.roots.add("FLOW_ID" if root == "FLOW" else root)
    if root == "NODE" and rest:
        declared = notes.names.declared
        known = depth < len(declared) and rest[0].key in declared[depth]
        notes.nodes[depth if known else -1, rest[0].key] = None
        return Built(_then(_outer_node(rest[0].key, depth), rest[1:]))
    inner = _root_path(root, rest)

    def run(s: Scope) -> Json:
        frame = _climb(s, depth)
        return None if frame is None else inner.run(frame)

    return Built(run, unchecked=inner.unchecked)


def _root_name(step: Step) -> str:
    """A root behind ``$PARENT``, with or without its prefix: ``$PARENT.$INPUT.a`` is ``$PARENT.INPUT.a``."""
    return step.key.removeprefix("$")


def _snapshot(scope: Scope | None) -> Json:
    if scope is None:
        return None
    parent = scope.parent
    if parent is None:
        return {}
    return {"INPUT": _input(parent), "NODE": dict(parent.nodes), "GLOBAL": _globals(parent)}


# -- further roots -----------------------------------------------------------------------------------------------------


def _extra(root: str) -> Run:
    def run(s: Scope) -> Json:
        frame: Scope | None = s
        while frame is not None:
            if frame.extra is not None and root in frame.extra:
                return frame.extra[root]
            frame = frame.parent
        return None

    return run


_BARE: Final[dict[str, Run]] = {
    "INPUT": _input,
    "NODE": lambda s: dict(s.nodes),
    "GLOBAL": _globals,
    "ENV": _env,
    "FLOW_ID": lambda s: s.flow_id,
    "FLOW": lambda s: s.flow_id,
    "EXECUTION_ID": lambda s: s.run.execution_id,
    "LAST_NODE": lambda s: s.last_id,
    "BRANCH": lambda s: s.branch,
}
_KEYED: Final[dict[str, Callable[[Step], Run]]] = {"INPUT": _input_key, "GLOBAL": _global_key, "ENV": _env_key}
_COPIED: Final = frozenset(("NODE", "GLOBAL", "ENV"))
