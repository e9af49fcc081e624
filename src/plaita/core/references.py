"""Where the flows come from that a flow refers to: files beside it, definitions at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from plaita.base.errors import FlowLoadError
from plaita.core.text import Document, read_document

Resolver = Callable[[str, str], Any]
"""The definition of a flow by id and version (empty: the latest), or ``None``."""

SUFFIXES = (".yaml", ".yml", ".json")
SIBLINGS_MAX = 1_000
SIBLING_BYTES_MAX = 4_000_000


def at_hand(definitions: Mapping[tuple[str, str], Any]) -> Resolver:
    """Definitions by id and version as they were asked for."""

    def resolve(flow_id: str, version: str) -> Any:
        return definitions.get((flow_id, version))

    return resolve


def either_of(*resolvers: Resolver) -> Resolver:
    """The first that knows."""

    def resolve(flow_id: str, version: str) -> Any:
        return next((found for one in resolvers if (found := one(flow_id, version)) is not None), None)

    return resolve


def beside(folder: Path) -> Resolver:
    """The files of a folder: the one that is called like the flow, else the first whose ``flow_id`` it is."""
    read: dict[Path, Document | None] = {}

    def document(path: Path) -> Document | None:
        if path not in read:
            read[path] = _document(path)
        return read[path]

    def resolve(flow_id: str, version: str) -> Any:
        for path in _candidates(folder, flow_id):
            found = document(path)
            if found is not None and _is_wanted(found, path, flow_id, version):
                return found.value
        return None

    return resolve


def _candidates(folder: Path, flow_id: str) -> Iterator[Path]:
    if "/" not in flow_id and flow_id not in ("", ".", ".."):
        yield from (path for suffix in SUFFIXES if (path := folder / f"{flow_id}{suffix}").is_file())
    if folder.is_dir():
        yield from sorted(p for p in folder.iterdir() if p.suffix in SUFFIXES and p.is_file())[:SIBLINGS_MAX]


def _document(path: Path) -> Document | None:
    """A file that is no flow text is none of the flows looked for."""
    try:
        if path.stat().st_size > SIBLING_BYTES_MAX:
            return None
        return read_document(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, FlowLoadError):
        return None


def _is_wanted(document: Document, path: Path, flow_id: str, version: str) -> bool:
    value = document.value
    if not isinstance(value, dict) or "nodes" not in value:
        return False
    named = next((value[k] for k in ("flow_id", "flowId", "id") if value.get(k) is not None), path.stem)
    own = value.get("version")
    return bool(named == flow_id and (not version or own is None or str(own) == version))
