"""Keys nobody reads: a typo is an error, anything else a warning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from plaita.base.issues import Issue
from plaita.base.json import step_of
from plaita.base.spelling import fold, is_one_edit_away, suggest
from plaita.core.drafting import Unreadable
from plaita.core.validate.view import FlowView
from plaita.engine.types import PROPERTY_KEYS
from plaita.node.basic import Node
from plaita.node.concurrent import Parallel, ParallelBranch
from plaita.node.decide import Branch, Choice, Switch, SwitchLegacy
from plaita.node.handlers import HANDLER_KEYS, RECOVERABLE_KEYS, RETRY_KEYS
from plaita.node.spelling import spellings

LETTERS_MIN = 6
_FLOW_TYPES = frozenset(("input_type", "inputType", "output_type", "outputType"))
_OF_ITEMS = frozenset(("item_type", "itemType", "items"))
_MEMBERS = _OF_ITEMS | {"children", "properties"}
_NODE_TYPES = frozenset(("output_type", "outputType", "item_type", "itemType", "typeDefs"))
_HANDLERS = {fold("error_handler"): RECOVERABLE_KEYS, fold("timeout_handler"): HANDLER_KEYS}
_PARTS: dict[type[Node], tuple[str, frozenset[str]]] = {
    Switch: ("branches", spellings(Branch)),
    SwitchLegacy: ("cases", spellings(Choice)),
    Parallel: ("branches", spellings(ParallelBranch)),
}


def keys_are_known(view: FlowView) -> Iterator[Issue]:
    """Every key of a flow, node, handler, branch, case and type; free-form objects are not looked into."""
    yield from _unknown(view.raw, view.known_keys, view.path, None)
    yield from _type_keys(view.raw, _FLOW_TYPES, view.path, None)
    for i, (node, raw) in enumerate(zip(view.nodes, view.raws, strict=True)):
        if not raw:
            continue
        cls = node.meant if isinstance(node, Unreadable) else type(node)
        if cls is None:
            continue
        path = view.path_of(i)
        known = node_keys(cls)
        if not raw.keys() <= known:
            yield from _unknown(raw, known, path, node.id)
        for key, value in raw.items():
            if isinstance(value, dict) and key[:1] in ("e", "t"):
                yield from _handler_keys(key, value, f"{path}.{key}", node.id)
        yield from _type_keys(raw, _NODE_TYPES if cls.builtin else frozenset(), path, node.id)
        part = _PARTS.get(cls)
        if part is not None:
            yield from _part_keys(raw, part, path, node.id)


def node_keys(cls: type[Node]) -> frozenset[str]:
    """Every key a node's document may use, ``type`` included."""
    known = _node_keys.get(cls)
    if known is None:
        known = _node_keys[cls] = spellings(cls) | {"type", *cls.LEGACY_KEYS}
    return known


_node_keys: dict[type[Node], frozenset[str]] = {}


def _handler_keys(key: str, value: Mapping[str, Any], path: str, node_id: str) -> Iterator[Issue]:
    known = _HANDLERS.get(fold(key))
    if known is None:
        return
    yield from _unknown(value, known, path, node_id)
    retry = value.get("retry")
    if isinstance(retry, dict):
        yield from _unknown(retry, RETRY_KEYS, f"{path}.retry", node_id)


def _part_keys(raw: Mapping[str, Any], part: tuple[str, frozenset[str]], path: str, node_id: str) -> Iterator[Issue]:
    field, known = part
    entries = raw.get(field)
    for i, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict):
            yield from _unknown(entry, known, f"{path}.{field}[{i}]", node_id)


def _type_keys(raw: Mapping[str, Any], fields: frozenset[str], path: str, node_id: str | None) -> Iterator[Issue]:
    work = [(raw[field], step_of(path, field)) for field in fields if field in raw]
    while work:
        declared, at = work.pop()
        if not isinstance(declared, dict):
            continue
        yield from _unknown(declared, PROPERTY_KEYS, at, node_id)
        for key in declared.keys() & _MEMBERS:
            members, inside = declared[key], step_of(at, key)
            if isinstance(members, list):
                work += [(member, step_of(inside, i)) for i, member in enumerate(members)]
            elif isinstance(members, dict) and key in _OF_ITEMS:
                work.append((members, inside))
            elif isinstance(members, dict):
                work += [(member, step_of(inside, name)) for name, member in members.items()]


def _unknown(raw: Mapping[str, Any], known: frozenset[str], path: str, node_id: str | None) -> Iterator[Issue]:
    for key in raw:
        if key in known:
            continue
        typo = any(fold(key) == fold(k) or (len(key) >= LETTERS_MIN and is_one_edit_away(key, k)) for k in known)
        hint = suggest(key, known)
        if not key.isprintable() or any(mark in key for mark in "()$%\"'"):
            hint = "part of an expression? Inside { } one with a comma or a colon stands in quotes"
        if typo:
            yield Issue("error", "misspelled_key", step_of(path, key), f"{key!r} is not a known key", hint, node_id)
        else:
            yield Issue(
                "warning",
                "unknown_key",
                step_of(path, key),
                f"{key!r} is not a known key; it is ignored",
                hint,
                node_id,
            )
