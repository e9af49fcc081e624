"""``plaita cancel``, ``retry``, ``delete``: acting on executions, by id or by what they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import typer

from plaita.cli.choosing import Most, Where, Yes
from plaita.cli.options import AsJson, Debug, ExecutionIds, Imports, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk

Act = Callable[["Desk", str], Awaitable[str]]


def cancel(
    ids: ExecutionIds = None,
    where: Where = "",
    yes: Yes = False,
    limit: Most = 1000,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """End executions, whatever they do or wait for. Each answer says what really happened."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import acting
    from plaita.runtime.runtime import whoami

    async def one(desk: Desk, execution_id: str) -> str:
        return await acting.cancel(desk.store, execution_id, whoami())

    async def work(desk: Desk) -> int:
        return await _each(desk, await _ids(desk, "cancel", ids, (where, limit, yes)), one)

    raise typer.Exit(at_desk(work, settings_of(store), store, as_json=as_json))


def delete(
    ids: ExecutionIds = None,
    where: Where = "",
    yes: Yes = False,
    limit: Most = 1000,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Remove executions that have ended; their ids stay taken."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import acting

    async def one(desk: Desk, execution_id: str) -> str:
        await acting.delete(desk.store, execution_id)
        return "deleted"

    async def work(desk: Desk) -> int:
        return await _each(desk, await _ids(desk, "delete", ids, (where, limit, yes)), one)

    raise typer.Exit(at_desk(work, settings_of(store), store, as_json=as_json))


def retry(
    ids: ExecutionIds = None,
    where: Where = "",
    yes: Yes = False,
    limit: Most = 1000,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Open failed executions again at the failed node and let them go on; finished nodes do not run again."""
    from plaita.cli.desk import at_desk, settings_of
    from plaita.control import acting

    async def one(desk: Desk, execution_id: str) -> str:
        await acting.retry(desk.store, execution_id)
        return str((await desk.move(execution_id))["status"])

    async def work(desk: Desk) -> int:
        named = await _ids(desk, "retry", ids, (where, limit, yes))
        if len(named) != 1 or where:
            return await _each(desk, named, one)
        await acting.retry(desk.store, named[0])
        return await desk.show(await desk.move(named[0]))

    raise typer.Exit(at_desk(work, settings_of(store, imports), store, as_json=as_json))


async def _ids(desk: Desk, verb: str, ids: list[str] | None, choice: tuple[str, int, bool]) -> list[str]:
    from plaita.cli.choosing import ids_of

    where, limit, yes = choice
    return await ids_of(desk, verb, ids or [], where, limit, yes=yes)


async def _each(desk: Desk, ids: list[str], one: Act) -> int:
    """Every id in turn; one that cannot be acted on does not stop the others. The first error's exit code."""
    from plaita.base.errors import PlaitaError
    from plaita.cli.failing import DONE, error_shape, exit_code, report
    from plaita.cli.screen import note, say, show_json

    items, code = [], DONE
    for execution_id in ids:
        try:
            answer = await one(desk, execution_id)
        except PlaitaError as e:
            code = code or exit_code(e)
            items.append({"execution_id": execution_id, "error": error_shape(e)})
            if not desk.as_json:
                report(e, as_json=False, debug=False)
            continue
        items.append({"execution_id": execution_id, "answer": answer})
        if not desk.as_json:
            say(f"{execution_id}: {answer}")
    if desk.as_json:
        show_json({"items": items, "next": None})
    elif not ids:
        note("no executions")
    return code
