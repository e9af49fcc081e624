"""``plaita graph``: draw a flow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from plaita.cli.options import Debug, Imports, Store

if TYPE_CHECKING:
    from plaita.core.flow import Flow

FORMATS: Final = ("text", "mermaid", "svg")


def graph(
    flow: Annotated[str, typer.Argument(metavar="FLOW", help="A .json, .yaml or .py file, or a published flow.")],
    kind: Annotated[str, typer.Option("--format", metavar="FORMAT", help=f"{', '.join(FORMATS)}.")] = "text",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there.")] = None,
    imports: Imports = None,
    store: Store = None,
    debug: Debug = False,
) -> None:
    """Draw a flow: as text, as a Mermaid flowchart, or as an SVG picture."""
    from plaita.cli.writing import write_file
    from plaita.core.drawing import as_mermaid, as_svg, as_text, picture_of

    if kind not in FORMATS:
        raise typer.BadParameter(f"--format {kind}: choose from {', '.join(FORMATS)}")
    picture = picture_of(_read(flow, imports, store))
    text = {"text": as_text, "mermaid": as_mermaid, "svg": as_svg}[kind](picture)
    if output is None:
        from plaita.cli.screen import shown

        typer.echo(shown(text) if kind == "text" else text, nl=not text.endswith("\n"))
        return
    write_file(output, f"{text.removesuffix(chr(10))}\n".encode(), Path(flow))


def _read(flow: str, imports: list[str] | None, store: str | None) -> Flow:
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control.definitions import published
    from plaita.control.flow_files import is_flow_file, read_flow_file

    settings = settings_of(store, imports)
    if is_flow_file(flow):
        return read_flow_file(flow, settings.imports).flow
    return at_desk(lambda desk: published(desk.store, flow, "", settings.imports), settings, store)
