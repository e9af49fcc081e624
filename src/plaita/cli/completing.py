"""What the shell offers behind TAB: ids of the store. Quick, silent, and it creates nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias

import typer

if TYPE_CHECKING:
    from plaita.ports.backend import Backend

Offer: TypeAlias = tuple[str, str]
"""A word and what it is."""
MOST = 50


def executions(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """The newest executions."""

    async def read(store: Backend) -> list[Offer]:
        runs, _ = await store.runs(limit=MOST)
        return [(run.run_id, f"{run.flow_id} {run.status}") for run in runs]

    return _offered(ctx, incomplete, read)


def flows(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Published flows."""

    async def read(store: Backend) -> list[Offer]:
        return [(flow.flow_id, f"version {flow.version}") for flow in await store.flows()]

    return _offered(ctx, incomplete, read)


def tasks(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Open tasks."""

    async def read(store: Backend) -> list[Offer]:
        found, _ = await store.inbox(limit=MOST)
        return [(task.task_id, task.spec.title or task.flow_id) for task in found]

    return _offered(ctx, incomplete, read)


def letters(ctx: typer.Context, incomplete: str) -> list[Offer]:
    """Dead letters."""

    async def read(store: Backend) -> list[Offer]:
        found, _ = await store.dead_letters(limit=MOST)
        return [(letter.letter_id, letter.reason) for letter in found]

    return _offered(ctx, incomplete, read)


def _offered(ctx: typer.Context, incomplete: str, read: Callable[[Backend], Awaitable[list[Offer]]]) -> list[Offer]:
    from plaita import app
    from plaita.base.errors import PlaitaError
    from plaita.cli.desk import at_desk, settings_of

    flag = ctx.params.get("store")
    try:
        settings = settings_of(flag)
        found = at_desk(lambda desk: read(desk.store), settings, flag) if app.is_ready(settings) else []
    except PlaitaError:
        return []
    return [offer for offer in found if offer[0].startswith(incomplete)]
