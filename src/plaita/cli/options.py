"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from plaita.cli import completing

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="sqlite:///PATH or redis://HOST:PORT/DB. Default: PLAITA_STORE, then .plaita/plaita.db.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON in its stable shape, and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Imports = Annotated[
    list[str] | None,
    typer.Option("--import", help="A module or a .py file with custom nodes; may be repeated.", metavar="MODULE"),
]
FlowFileArgument = Annotated[str, typer.Argument(metavar="FLOW", help="A .json, .yaml or .py file.")]
ExecutionId = Annotated[str, typer.Argument(metavar="ID", help="An execution.", autocompletion=completing.executions)]
ExecutionIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID…", help="Executions.", autocompletion=completing.executions)
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "-i",
        metavar="KEY=VALUE",
        help="One input: JSON if it parses and fits the declared type, else text. KEY=@FILE reads a file; A.B=1 nests.",
    ),
]
InputFile = Annotated[
    str | None, typer.Option("--input", metavar="FILE|-", help="The input as JSON or YAML; - is standard input.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Warnings are errors.")]
Data = Annotated[str | None, typer.Option("--data", metavar="JSON", help="The data, as JSON.")]
By = Annotated[str, typer.Option("--by", metavar="NAME", help="Who decides. Default: the user of this system.")]
Comment = Annotated[str, typer.Option("-m", "--message", metavar="TEXT", help="A comment.")]
Form = Annotated[str | None, typer.Option("--form", metavar="JSON", help="The filled-in form of the task.")]
