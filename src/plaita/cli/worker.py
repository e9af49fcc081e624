"""``plaita worker``: a process that takes executions until it is told to stop, or several of them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plaita.cli.options import AsJson, Debug, Imports, Store

if TYPE_CHECKING:
    from plaita.runtime.working import Shift
    from plaita.settings import Settings

LEASE_S = (3, 3600)

Concurrency = Annotated[
    int | None, typer.Option("--concurrency", metavar="COUNT", min=1, max=10_000, help="Executions at the same time.")
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", metavar="COUNT", min=1, max=256, help="So many worker processes; one that dies is replaced."
    ),
]
Queues = Annotated[str, typer.Option("--queues", "--queue-name", metavar="NAMES", help="The queues, with commas.")]
Lease = Annotated[
    float | None,
    typer.Option(
        "--lease-ttl-seconds",
        metavar="SECONDS",
        min=LEASE_S[0],
        max=LEASE_S[1],
        help="How long a silent worker keeps its executions.",
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", metavar="PORT", min=0, max=65_535, help="Serve /metrics and /health there; 0 for not."
    ),
]
MetricsHost = Annotated[
    str | None, typer.Option("--metrics-host", metavar="ADDRESS", help="The address of --metrics-port.")
]
Webhook = Annotated[str | None, typer.Option("--alert-webhook", metavar="URL", help="Post each dead letter there.")]
Registry = Annotated[
    bool | None, typer.Option("--enable-registry/--no-registry", help="Whether the registry on Redis lists it.")
]


def worker(
    concurrency: Concurrency = None,
    processes: Processes = None,
    queues: Queues = "default",
    lease: Lease = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = None,
    alert_webhook: Webhook = None,
    registry: Registry = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Take executions until SIGTERM or Ctrl-C, then let each reach its next commit and give it back."""
    from plaita.base.ids import check_text
    from plaita.cli.desk import settings_of
    from plaita.runtime.working import Shift

    given: dict[str, Any] = {
        "processes": processes, "metrics_port": metrics_port, "metrics_host": metrics_host,
        "alert_webhook": alert_webhook, "registry": registry,
    }  # fmt: skip
    if lease is not None:
        given |= {"lease_ttl_seconds": lease, "renew_seconds": round(lease * 0.3, 3)}
    settings = _with(settings_of(store, imports), {name: value for name, value in given.items() if value is not None})
    names = tuple(name.strip() for name in queues.split(",") if name.strip())
    if not names:
        raise typer.BadParameter("--queues names no queue")
    check_text(queues, "--queues")
    _begin(settings, Shift(names, concurrency), "DEBUG" if debug else settings.log_level)


def _with(settings: Settings, given: dict[str, Any]) -> Settings:
    """The settings with what the command line says of the worker, and with a name for it. Raises ``BadParameter``."""
    from plaita.app import worker_name

    _check(given)
    own = replace(settings.worker, instance_id=worker_name(settings), **given)
    if own.metrics_port and own.metrics_port + own.processes - 1 > 65_535:
        raise typer.BadParameter(f"--metrics-port {own.metrics_port} leaves no ports for {own.processes} processes")
    return replace(settings, worker=own)


def _check(given: dict[str, Any]) -> None:
    """A flag allows what the setting of its name allows. Raises ``BadParameter``."""
    from plaita.settings.load import SETTINGS

    for item in SETTINGS:
        if item.group == "worker" and item.attribute in given:
            try:
                item.setting.read(given[item.attribute])
            except ValueError as e:
                raise typer.BadParameter(f"--{item.attribute.replace('_', '-')}: {e}") from None


def _begin(settings: Settings, shift: Shift, level: str) -> None:
    from plaita.app import log_secrets
    from plaita.telemetry.lines import log_to_stderr

    several = settings.worker.processes > 1
    instance = "" if several else settings.worker.instance_id
    log_to_stderr(level, settings.log_format, instance=instance, secrets=log_secrets(settings))
    if several:
        _supervise(settings, shift, level)
    else:
        _work_alone(settings, shift)


def _work_alone(settings: Settings, shift: Shift) -> None:
    from plaita.cli.failing import INTERRUPTED
    from plaita.cli.turning import turn
    from plaita.runtime.working import work

    async def run() -> None:
        stop = asyncio.Event()
        _on_signals(lambda: os._exit(INTERRUPTED) if stop.is_set() else stop.set())
        # What start-up has built stays until the end: the collector need not look at it again.
        gc.freeze()
        await work(settings, shift, stop)

    turn(run())


def _supervise(settings: Settings, shift: Shift, level: str) -> None:
    """The first signal lets every process drain, the second one kills them, the third one ends at once."""
    from plaita.cli.child import PROGRAM
    from plaita.cli.failing import INTERRUPTED, UNREACHABLE
    from plaita.cli.turning import turn
    from plaita.runtime.supervising import Supervisor
    from plaita.telemetry.sink import LogTelemetry

    command = (sys.executable, "-P", "-c", PROGRAM)
    supervisor = Supervisor(settings, shift, command, LogTelemetry(), level, frozenset({UNREACHABLE}))
    heard = 0

    async def run() -> None:
        stop = asyncio.Event()

        def hear() -> None:
            nonlocal heard
            heard += 1
            if heard > 2:
                os._exit(INTERRUPTED)
            if heard == 1:
                stop.set()
            else:
                supervisor.cut()

        _on_signals(hear)
        await supervisor.run(stop)

    turn(run())
    if heard > 1:
        raise typer.Exit(INTERRUPTED)


def _on_signals(hear: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear)
