"""One worker process of several: ``python -c "from plaita.cli.child import main; main()"`` with a line on stdin.

The line brings its orders, and is its life line: when it breaks, because the process above ends or wants it so, this
one drains.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from contextlib import suppress

from plaita.app import log_secrets
from plaita.base.errors import PlaitaError
from plaita.cli.failing import report
from plaita.cli.turning import turn
from plaita.runtime.supervising import ORDERS, READY, Orders
from plaita.runtime.working import work
from plaita.settings import use_settings
from plaita.telemetry.lines import log_to_stderr

PROGRAM = "import sys; from plaita.cli.child import main; sys.exit(main())"


def main() -> int:
    """Work as ordered; the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = _take_line()
    with line.makefile("rb") as file:
        said = file.readline()
    if not said.endswith(b"\n"):
        return 0
    orders = ORDERS.validate_json(said)
    sys.path[:] = orders.path
    settings = orders.settings
    log_to_stderr(
        orders.log_level,
        settings.log_format,
        instance=settings.worker.instance_id,
        secrets=log_secrets(settings),
    )
    use_settings(settings)
    try:
        turn(_work(orders, line))
    except PlaitaError as e:
        return report(e, as_json=False, debug=False)
    return 0


def _take_line() -> socket.socket:
    """The line leaves stdin, where whatever this process starts would hold it open."""
    line = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return line


async def _work(orders: Orders, line: socket.socket) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    reader, writer = await asyncio.open_connection(sock=line)

    async def watch() -> None:
        with suppress(OSError):
            await reader.read()
        stop.set()

    watching = asyncio.create_task(watch())
    try:
        # What start-up has built stays until the end: the collector need not look at it again.
        gc.freeze()
        await work(orders.settings, orders.shift, stop, lambda: writer.write(READY))
    finally:
        watching.cancel()
        writer.close()
