"""``plaita wait``: until an execution ends, or somebody must answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, ExecutionId, Imports, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.ports.queries import RunView

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
    """Let an execution go on until it ends or somebody must answer; here, unless a live process does it.

    It stays through delays, pauses between tries and a start that is set for later, and says until when.
    Exit code: 0 completed, 1 failed or cancelled, 3 still going or waiting.
    """
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.screen import note
    from plaita.control import looking
    from plaita.ports.values import RunId
    from plaita.runtime.driving import Drive, follow_through

    async def work(desk: Desk) -> int:
        limit = None if timeout is None else int(timeout * 1000)

        async def stays(view: RunView) -> bool:
            if not await looking.goes_on_by_itself(desk.store, view):
                return False
            if not as_json:
                for line in await desk.lines(await looking.inspect(desk.store, execution_id), stays=True):
                    note(line)
            return True

        await follow_through(desk.store, RunId(execution_id), Drive(desk.settings), stays, timeout_ms=limit)
        return await desk.show(await looking.inspect(desk.store, execution_id))

    raise typer.Exit(at_desk(work, settings_of(store, imports), store, as_json=as_json))
