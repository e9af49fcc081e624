"""``plaita resume``: the answer to an open wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Data, Debug, ExecutionId, Imports, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk


def resume(
    execution_id: ExecutionId,
    wait: Annotated[
        str, typer.Option("--wait", metavar="WAIT", help="The wait, by id or node; needed when several are open.")
    ] = "",
    data: Data = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Answer an open wait and let the execution go on to its next wait. Exit code 1 when it fails on the way."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.failing import answer_code
    from plaita.cli.inputs import read_json
    from plaita.control import acting
    from plaita.runtime.runtime import whoami

    answer = read_json(data, "--data")

    async def work(desk: Desk) -> int:
        if data is None:
            await _refuse_empty_decision(desk, execution_id, wait)
        await acting.resume(desk.store, execution_id, wait, answer, whoami())
        shape = await desk.move(execution_id)
        await desk.show(shape)
        return answer_code(shape)

    raise typer.Exit(at_desk(work, settings_of(store, imports), store, as_json=as_json))


async def _refuse_empty_decision(desk: Desk, execution_id: str, wait: str) -> None:
    """An approval that is resumed with nothing would be decided past its approvers, by mistake mostly."""
    from plaita.base.errors import ResumeRefused
    from plaita.control.looking import inspect

    waits = (await inspect(desk.store, execution_id))["waits"]
    chosen = [one for one in waits if not wait or wait in (one["wait_id"], one["node"])]
    if len(chosen) == 1 and "task_id" in chosen[0]:
        hint = f"plaita approve {chosen[0]['task_id']} --by NAME; --data JSON answers in the place of the approvers"
        raise ResumeRefused(f"{chosen[0]['node']} waits for an approval, and no data is given", hint)
