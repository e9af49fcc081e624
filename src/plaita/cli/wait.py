"""``plaita wait``: until an execution waits or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, ExecutionId, Imports, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk

TIMEOUT_MAX_S = 10**9


def wait(
    execution_id: ExecutionId,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, max=TIMEOUT_MAX_S, help="At most so many seconds."),
    ] = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let an execution go on until it waits or ends; here, unless a live process does it.

    Exit code: 0 completed, 1 failed or cancelled, 3 still going or waiting.
    """
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import looking
    from plaita.ports.values import RunId
    from plaita.runtime.driving import Drive, follow

    async def work(desk: Desk) -> int:
        limit = None if timeout is None else int(timeout * 1000)
        await follow(desk.store, RunId(execution_id), Drive(desk.settings), timeout_ms=limit)
        return await desk.show(await looking.inspect(desk.store, execution_id))

    raise typer.Exit(at_desk(work, settings_of(store, imports), store, as_json=as_json))
