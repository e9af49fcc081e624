"""Importing modules and files with custom nodes."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from plaita.base.errors import FlowLoadError, InputError, NotFound
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry, get_default_registry

_imported: dict[str, ModuleType] = {}


def import_nodes(name: str, registry: NodeRegistry | None = None) -> list[str]:
    """Import a module (``package.module``) or a file (``nodes.py``) once and register the node classes it defines.

    Answers the node types. Raises ``NotFound`` when there is no such module or its import fails,
    ``FlowLoadError`` when it defines a flow that cannot be loaded.
    """
    module = load_module(name)
    registry = registry or get_default_registry()
    types = []
    for value in vars(module).values():
        own = isinstance(value, type) and issubclass(value, Node) and value.__module__ == module.__name__
        if own and value.node_type:
            registry.register(value)
            types.append(value.node_type)
    return types


def import_all(names: Iterable[str]) -> None:
    """Import the modules and files in turn and register their node classes. Raises as ``import_nodes``."""
    for name in names:
        import_nodes(name)


def named_imports(metadata: object, folder: Path) -> tuple[str, ...]:
    """What the ``metadata`` of a flow names in ``imports``; paths are beside the file of the flow, which is in
    ``folder``. Raises ``InputError``."""
    named = metadata.get("imports") if isinstance(metadata, dict) else None
    if named is None:
        return ()
    if not isinstance(named, list) or not all(isinstance(name, str) and name for name in named):
        raise InputError("$.metadata.imports", "is a list of modules and of .py files beside the flow")
    return tuple(str((folder / name).resolve()) if name.endswith(".py") else name for name in named)


def load_module(name: str) -> ModuleType:
    """The module behind a name or a file, imported once. Raises ``NotFound`` and ``FlowLoadError``."""
    module = _imported.get(name)
    if module is None:
        module = _imported[name] = _load(name)
    return module


def _load(name: str) -> ModuleType:
    try:
        return _load_file(Path(name)) if name.endswith(".py") else importlib.import_module(name)
    except FlowLoadError:
        # A flow written in the module is wrong, and says where.
        raise
    except (Exception, SystemExit) as e:  # foreign code runs at import: whatever it raises, the import failed
        raise NotFound(f"{name} cannot be imported: {type(e).__name__}: {e}", _remedy(name, e)) from e


def _remedy(name: str, e: BaseException) -> str:
    """What to do about a failed import: the path is wrong, something is not installed, or the module itself fails."""
    if (
        isinstance(e, ModuleNotFoundError)
        and e.name
        and (name.endswith(".py") or not f"{name}.".startswith(f"{e.name}."))
    ):
        return f"it imports {e.name}, which is not installed here"
    if isinstance(e, ModuleNotFoundError):
        return "install what has that module, or name the file: PATH/TO/FILE.py"
    if isinstance(e, OSError):
        return "check the path"
    lines = [one.lineno for one in traceback.extract_tb(e.__traceback__) if Path(one.filename).name == Path(name).name]
    return f"the module itself fails{f', in its line {lines[-1]}' if lines else ''}; --debug shows the traceback"


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    full = path.resolve()
    name = f"plaita_import_{hashlib.sha256(str(full).encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, full)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
