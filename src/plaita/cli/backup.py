"""``plaita backup``: a copy of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plaita.cli.options import AsJson, Debug, Store


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where the copy goes.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Copy the whole store while others work with it. The copy is checked, and appears whole or not at all.

    To restore: stop every process, put the copy in the place of the store, remove its -wal and -shm files.
    """
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import say, show_json

    at_desk(lambda desk: desk.store.backup(file, replace=force), settings_of(store), store)
    size = file.stat().st_size
    if as_json:
        show_json({"file": str(file), "bytes": size})
    else:
        say(f"{file}: {size:,} bytes")
