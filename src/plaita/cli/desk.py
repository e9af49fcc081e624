"""What a command works at: the open store, the settings, and how to say where an execution is now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from plaita import app
from plaita.base.errors import InputError, NotSupported
from plaita.cli.failing import complain, status_code
from plaita.cli.screen import note, show_json
from plaita.cli.turning import turn
from plaita.cli.wording import Wording
from plaita.control import looking
from plaita.control.shapes import Shape, task_shape
from plaita.ports.backend import Backend
from plaita.ports.values import RunId
from plaita.settings import Settings

T = TypeVar("T")

PATIENCE_MS = 2_000
"""How long a command watches an execution that another process moves."""


@dataclass(frozen=True, slots=True)
class Desk:
    """An open store with the settings and the ``--store`` it was opened with."""

    store: Backend
    settings: Settings
    flag: str | None
    as_json: bool

    async def wording(self) -> Wording:
        """Words as of now."""
        return Wording(self.flag, await self.store.now_ms())

    async def move(self, execution_id: str, *, timeout_ms: int | None = None) -> Shape:
        """Let an execution go on to its next wait, here or in the live process that takes it.

        What was decided stays decided when this process cannot load the flow: that is said, and left to another one.
        """
        from plaita.runtime.driving import Drive, follow

        how = Drive(self.settings)
        try:
            await follow(self.store, RunId(execution_id), how, timeout_ms=timeout_ms, patience_ms=PATIENCE_MS)
        except NotSupported as e:
            complain(f"accepted, but {e}", e.hint)
        return await looking.inspect(self.store, execution_id)

    async def lines(self, shape: Shape, *, stays: bool = False) -> list[str]:
        """What an execution is now and what can be done, in words; ``stays``: this command waits for it meanwhile."""
        tasks: dict[str, Shape] = {}
        for wait in shape["waits"]:
            if task_id := wait.get("task_id"):
                task = await self.store.task(task_id)
                tasks |= {} if task is None else {task_id: task_shape(task)}
        return replace(await self.wording(), stays=stays).execution(shape, tasks)

    async def show(self, shape: Shape) -> int:
        """The execution as the result of a command: its shape as JSON, or words and the output; the exit code."""
        if self.as_json:
            show_json(shape)
            return status_code(shape["status"])
        for line in await self.lines(shape):
            note(line)
        if shape["status"] == "completed":
            show_json(shape["output"])
        return status_code(shape["status"])


def settings_of(store: str | None, imports: Sequence[str] | None = None) -> Settings:
    """The settings with what the command line adds."""
    try:
        settings = app.read_settings(store)
    except InputError as e:
        if store is None or e.path != "PLAITA_STORE":
            raise
        raise InputError("--store", e.reason) from None
    if not imports:
        return settings
    from plaita.control.flow_files import absolute

    return replace(settings, imports=(*settings.imports, *map(absolute, imports)))


def at_desk(
    work: Callable[[Desk], Awaitable[T]],
    settings: Settings,
    flag: str | None,
    *,
    as_json: bool = False,
    create: bool = False,
) -> T:
    """Open the store, work, close it. ``create`` false: a store that does not exist is ``Unavailable``."""

    async def opened() -> T:
        backend = app.open_store(settings, create=create)
        try:
            return await work(Desk(backend, settings, flag, as_json))
        finally:
            await backend.close()

    return turn(opened())
