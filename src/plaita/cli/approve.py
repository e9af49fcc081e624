"""``plaita approve`` and ``plaita reject``: a vote on a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli import completing
from plaita.cli.options import AsJson, By, Comment, Debug, Form, Imports, Store

if TYPE_CHECKING:
    from plaita.cli.desk import Desk
    from plaita.control.acting import Verdict

TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="A task of `plaita inbox`.", autocompletion=completing.tasks)
]


def approve(
    task: TaskId,
    by: By = "",
    message: Comment = "",
    form: Form = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say yes. When that decides the task, the execution goes on, and what it does next is said.

    Exit code 1 when the execution fails then, else 0.
    """
    _vote(task, True, (by, message, form), imports, store, as_json)


def reject(
    task: TaskId,
    by: By = "",
    message: Comment = "",
    form: Form = None,
    imports: Imports = None,
    store: Store = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Say no. When that decides the task, the execution goes on, and what it does next is said."""
    _vote(task, False, (by, message, form), imports, store, as_json)


def _vote(
    task: str,
    approved: bool,
    words: tuple[str, str, str | None],
    imports: list[str] | None,
    store: str | None,
    as_json: bool,
) -> None:
    from plaita.cli.desk import at_desk, settings_of
    from plaita.cli.inputs import read_json
    from plaita.control.acting import Verdict
    from plaita.runtime.runtime import whoami

    by, comment, form = words
    verdict = Verdict(by or whoami(), approved, comment, read_json(form, "--form"))
    settings = settings_of(store, imports)
    raise typer.Exit(at_desk(lambda desk: _decide(desk, task, verdict), settings, store, as_json=as_json))


async def _decide(desk: Desk, task_id: str, verdict: Verdict) -> int:
    from plaita.base.clock import SystemClock
    from plaita.cli.failing import answer_code
    from plaita.cli.screen import note, show_json
    from plaita.control import acting, looking
    from plaita.control.shapes import task_shape
    from plaita.ports.tasks import Decided

    task, answer = await acting.decide(desk.store, task_id, verdict, SystemClock())
    decided = isinstance(answer, Decided)
    shape = await (desk.move(task.run_id) if decided else looking.inspect(desk.store, task.run_id))
    if desk.as_json:
        outcome = answer.outcome if isinstance(answer, Decided) else None
        show_json({"task_id": task_id, "decided": decided, "outcome": outcome, "execution": shape})
        return answer_code(shape)
    word = "approves" if verdict.approved else "rejects"
    if isinstance(answer, Decided):
        note(f"{verdict.actor} {word}; the task is decided: {answer.outcome}")
        await desk.show(shape)
        return answer_code(shape)
    note(f"{verdict.actor} {word}; the vote is recorded")
    for line in (await desk.wording()).task(task_shape(await looking.task_of(desk.store, task_id))):
        note(f"  {line}")
    return answer_code(shape)
