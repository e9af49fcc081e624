"""``plaita worker``: a process that takes executions until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, Imports, Store

if TYPE_CHECKING:
    from plaita.runtime.working import Shift
    from plaita.settings import Settings

LEASE_S = (3, 3600)


def worker(
    concurrency: Annotated[
        int | None,
        typer.Option("--concurrency", metavar="COUNT", min=1, max=10_000, help="Executions at the same time."),
    ] = None,
    queues: Annotated[
        str, typer.Option("--queues", "--queue-name", metavar="NAMES", help="The queues, with commas.")
    ] = "default",
    lease: Annotated[
        float | None,
        typer.Option(
            "--lease-ttl-seconds",
            metavar="SECONDS",
            min=LEASE_S[0],
            max=LEASE_S[1],
            help="How long a silent worker keeps its executions.",
        ),
    ] = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take executions until SIGTERM or Ctrl-C, then let each reach its next commit and give it back."""
    from plaita.base.ids import check_text
    from plaita.cli.desk import settings_of
    from plaita.cli.turning import turn
    from plaita.runtime.working import Shift
    from plaita.telemetry.sink import log_to_stderr

    settings = settings_of(store, imports)
    if lease is not None:
        given = replace(settings.worker, lease_ttl_seconds=lease, renew_seconds=round(lease * 0.3, 3))
        settings = replace(settings, worker=given)
    names = tuple(name.strip() for name in queues.split(",") if name.strip())
    if not names:
        raise typer.BadParameter("--queues names no queue")
    check_text(queues, "--queues")
    log_to_stderr("DEBUG" if debug else settings.log_level)
    turn(_work(settings, Shift(names, concurrency)))


async def _work(settings: Settings, shift: Shift) -> None:
    from plaita.cli.failing import INTERRUPTED
    from plaita.runtime.working import work

    stop, loop = asyncio.Event(), asyncio.get_running_loop()

    def drain() -> None:
        if stop.is_set():
            os._exit(INTERRUPTED)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, drain)
    # What start-up has built stays until the end: the collector need not look at it again.
    gc.freeze()
    await work(settings, shift, stop)
