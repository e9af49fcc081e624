"""Reading a flow file together with the custom nodes it names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plaita.base.errors import FlowLoadError, NotFound
from plaita.base.issues import Issue
from plaita.base.spelling import suggest
from plaita.core.closure import nodes_of
from plaita.core.flow import Flow
from plaita.core.imports import import_all, import_nodes, load_module, named_imports
from plaita.core.references import beside
from plaita.core.text import Document, read_document
from plaita.node.registry import get_default_registry

SUFFIXES = (".json", ".yaml", ".yml", ".py")


@dataclass(frozen=True, slots=True)
class FlowFile:
    """A flow that was read. ``name`` is its id or what its file is called.

    ``imports`` are the modules and absolute paths that any process needs in order to load it.
    """

    flow: Flow
    name: str
    imports: tuple[str, ...] = ()


def is_flow_file(text: str) -> bool:
    """Does the text name a file, rather than a published flow?"""
    return text.endswith(SUFFIXES) or "/" in text or ".py:" in text


def read_flow_file(path: str | Path, imports: Sequence[str] = ()) -> FlowFile:
    """A flow from JSON, YAML or a Python file: its attribute ``flow``, its only flow, or ``file.py:name``.

    ``imports`` and those the file names in ``metadata.imports`` (paths beside it) are imported first. Raises
    ``NotFound`` (no such file or module) and ``FlowLoadError`` (everything that is wrong with the flow).
    """
    path, wanted = _split(Path(path))
    if not path.is_file():
        raise NotFound(f"there is no flow file {path}", _like(path))
    given = tuple(absolute(name) for name in imports)
    import_all(given)
    if path.suffix == ".py":
        flow = _from_python(path, wanted)
        own: tuple[str, ...] = (str(path.resolve()),)
    else:
        flow, own = _from_text(path)
    return FlowFile(flow, flow.flow_id or path.stem, tuple(dict.fromkeys((*given, *own))))


def of_object(flow: Flow) -> FlowFile:
    """A flow made in Python. Its own node classes are registered, so that this process can also restore it."""
    _ = flow.program
    registry = get_default_registry()
    for node in nodes_of(flow):
        if node.node_type not in registry:
            registry.register(type(node))
    return FlowFile(flow, flow.flow_id or "flow")


def absolute(name: str) -> str:
    """An import as every process understands it: files by their absolute path, modules by name."""
    return str(Path(name).resolve()) if name.endswith(".py") else name


def _like(path: Path) -> str:
    if path.exists():
        return f"{path} is no regular file"
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return suggest(path.name, [p.name for p in beside if p.suffix in SUFFIXES]) or "check the path"


def _split(path: Path) -> tuple[Path, str]:
    """The file of ``order.py:refund`` and the name of the flow in it."""
    name, _, wanted = path.name.rpartition(":")
    return (path.with_name(name), wanted) if name.endswith(".py") and not path.is_file() else (path, "")


def _from_python(path: Path, wanted: str) -> Flow:
    full = str(path.resolve())
    import_nodes(full)
    module = load_module(full)
    flows = {name: value for name, value in vars(module).items() if isinstance(value, Flow)}
    only = next(iter(flows.values())) if len(set(map(id, flows.values()))) == 1 else None
    flow = flows.get(wanted) if wanted else flows.get("flow", only)
    if flow is None:
        names = ", ".join(flows)
        what = f"it has no flow {wanted!r}" if wanted else "it has several flows" if flows else "it has no flow"
        hint = f"name one: {path}:{next(iter(flows))} (flows: {names})" if flows else "assign flow = Flow(…), or @flow"
        raise FlowLoadError([Issue("error", "no_flow", "$", what, hint)], str(path))
    _ = flow.program
    return flow


def _from_text(path: Path) -> tuple[Flow, tuple[str, ...]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise NotFound(f"{path} cannot be read: {e.strerror or e}", "check its permissions") from None
    except UnicodeDecodeError:
        raise FlowLoadError([Issue("error", "not_text", "$", "the file is not UTF-8 text")], str(path)) from None
    own = imports_of(read_document(text, str(path)), path.parent) if "imports" in text else ()
    import_all(own)
    return Flow.from_string(text, source=str(path), resolver=beside(path.parent)), own


def imports_of(document: Document, folder: Path) -> tuple[str, ...]:
    """What ``metadata.imports`` names; paths are beside the file."""
    return named_imports(document.value.get("metadata"), folder)
