"""``plaita build``: compile a flow written as a Python function to its JSON document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plaita.cli.options import AsJson, Debug

if TYPE_CHECKING:
    from plaita.base.errors import FlowLoadError

FORMATS: Final = ("canonical", "ir")
SUFFIX: Final = ".plaita.json"


def build(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A .py file with a function decorated with @flow.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help=f"Default: SOURCE with {SUFFIX}.")
    ] = None,
    flow_id: Annotated[str | None, typer.Option("--flow-id", metavar="NAME", help="Which flow of the file.")] = None,
    kind: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="canonical (for files), or ir as the compiler makes it.")
    ] = "canonical",
    register: Annotated[
        list[str] | None,
        typer.Option("--register", metavar="MODULE[:FUNC]", help="Register custom nodes first; may be repeated."),
    ] = None,
    code_backend: Annotated[
        str | None, typer.Option("--code-backend", metavar="NAME", help="The backend that CODE nodes take by default.")
    ] = None,
    embed_source: Annotated[bool, typer.Option("--embed-source", help="Keep the source in the document.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit code 1 when the file is stale.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compile a flow written as a Python function. Nothing of the source is executed; the modules that its metadata
    names are imported.

    Exit code 1: the source is no flow, or with --check the file is missing or stale; 2: there is no such source.
    """
    from plaita.base.errors import FlowLoadError
    from plaita.cli.failing import FAILED, USAGE, complain
    from plaita.cli.writing import write_file

    if kind not in FORMATS:
        raise typer.BadParameter(f"--format {kind}: choose from {', '.join(FORMATS)}")
    try:
        text = source.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as e:
        complain(f"{source} cannot be read: {getattr(e, 'strerror', None) or e}", "check the path")
        raise typer.Exit(USAGE) from None
    _register(register or [], code_backend)
    try:
        document = _compiled(text, source, flow_id)
    except FlowLoadError as e:
        _show(source, e, as_json=as_json, debug=debug)
        raise typer.Exit(FAILED) from None
    data, nodes = _bytes(document, text, kind, embed_source=embed_source)
    path = output or source.with_name(source.name.removesuffix(".py") + SUFFIX)
    if check:
        _check(path, data, source)
    else:
        write_file(path, data, source)
    _tell(path, nodes, len(data), checked=check, as_json=as_json)


def _register(named: list[str], code_backend: str | None) -> None:
    """Modules whose nodes the flow uses: their function, ``register_all``, or the node classes they define."""
    from plaita.base.errors import NotFound
    from plaita.core.imports import import_nodes, load_module

    for text in named:
        name, _, function = text.partition(":")
        found = getattr(load_module(name), function or "register_all", None)
        if found is not None:
            found()
        elif function:
            raise NotFound(f"{name} has no function {function!r}", "check the spelling")
        else:
            import_nodes(name)
    if code_backend is not None:
        from plaita.node.code import register_code_node

        try:
            register_code_node(default_backend=code_backend)
        except ValueError as e:
            raise typer.BadParameter(f"--code-backend: {e}") from None


def _compiled(text: str, source: Path, flow_id: str | None) -> dict[str, Any]:
    """The document, which loads. Raises ``FlowLoadError``; warnings are shown."""
    from plaita.cli.screen import note
    from plaita.core.imports import import_all, named_imports
    from plaita.dsl.codeflow.compiling import document_of, loaded
    from plaita.dsl.codeflow.errors import Complaints
    from plaita.dsl.codeflow.placing import placed
    from plaita.dsl.codeflow.source import definition_in

    definition = definition_in(text, flow_id, str(source))
    import_all(named_imports(definition.options(Complaints(str(source))).get("metadata"), source.parent))
    document = document_of(definition, {})
    for issue in placed(loaded(document, str(source)).issues, document):
        note(f"{source}:{issue.line or 1}: warning: {issue.message}{f' ({issue.hint})' if issue.hint else ''}")
    return document


def _bytes(document: dict[str, Any], text: str, kind: str, *, embed_source: bool) -> tuple[bytes, int]:
    from plaita.dsl.codeflow import canonical

    found = canonical.to_canonical(document) if kind == "canonical" else document
    found = canonical.embed_source(found, text) if embed_source else found
    return canonical.serialize_canonical(found).encode(), canonical.count_nodes(found)


def _check(path: Path, data: bytes, source: Path) -> None:
    """Ends with 1 unless the file holds exactly this."""
    from plaita.cli.failing import FAILED, complain

    if not path.is_file():
        complain(f"{path} does not exist", f"plaita build {source}")
        raise typer.Exit(FAILED)
    if path.read_bytes() != data:
        complain(f"{path} is stale: {source} compiles to something else", f"plaita build {source}")
        raise typer.Exit(FAILED)


def _tell(path: Path, nodes: int, size: int, *, checked: bool, as_json: bool) -> None:
    from plaita.cli.screen import say, show_json

    if as_json:
        show_json({"file": str(path), "nodes": nodes, "bytes": size, "in_sync": True})
        return
    say(f"{path}: {'in sync' if checked else 'written'}, {nodes} nodes, {size} bytes")


def _show(source: Path, error: FlowLoadError, *, as_json: bool, debug: bool) -> None:
    from plaita.base.issues import with_long_hints_once
    from plaita.cli.failing import report
    from plaita.cli.screen import note

    if as_json or debug:
        report(error, as_json=as_json, debug=debug)
        return
    for issue in with_long_hints_once(error.issues):
        place = f"{source}:{issue.line or 1}" + (f":{issue.column}" if issue.column else "")
        note(f"{place}: {issue.severity}: {issue.message}")
        if issue.hint:
            note(f"  hint: {issue.hint}")
