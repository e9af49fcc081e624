"""What an error looks like, and the exit code it ends with: the one place that knows."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

import typer

from plaita.base.errors import (
    FlowExecutionException,
    FlowLoadError,
    InputError,
    NotFound,
    NotSupported,
    PlaitaError,
    Unavailable,
)
from plaita.base.issues import Issue
from plaita.base.json import Json
from plaita.cli.screen import note

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
WAITING: Final = 3
NOT_FOUND: Final = 4
UNREACHABLE: Final = 5
INTERRUPTED: Final = 130

MEANINGS: Final = {
    DONE: "done",
    FAILED: "failed, cancelled, or refused",
    USAGE: "the command, its input or the flow is wrong; nothing was started",
    WAITING: "the execution waits or goes on elsewhere",
    NOT_FOUND: "no such file, flow, execution or task",
    UNREACHABLE: "the store cannot be used",
    INTERRUPTED: "interrupted; what was begun can be continued",
}

_CODES: Final[dict[type[PlaitaError], int]] = {
    FlowLoadError: USAGE,
    InputError: USAGE,
    NotSupported: USAGE,
    NotFound: NOT_FOUND,
    Unavailable: UNREACHABLE,
    PlaitaError: FAILED,
}

STATUS_CODES: Final = {"completed": DONE, "error": FAILED, "cancelled": FAILED}
"""The exit code of an execution by its status; every other status waits."""


def exit_code(error: PlaitaError) -> int:
    """The exit code of an error: that of the nearest class in the table."""
    return next(_CODES[cls] for cls in type(error).__mro__ if cls in _CODES)


def status_code(status: str) -> int:
    """The exit code of an execution."""
    return STATUS_CODES.get(status, WAITING)


def answer_code(*shapes: dict[str, Json]) -> int:
    """The exit code of an answer that was accepted: ``FAILED`` when an execution failed on it, else ``DONE``."""
    return FAILED if any(status_code(shape["status"]) == FAILED for shape in shapes) else DONE


def report(error: PlaitaError, *, as_json: bool, debug: bool) -> int:
    """Show an error on stderr and answer the exit code."""
    if debug:
        note("".join(traceback.format_exception(error)).rstrip())
    if as_json:
        note(json.dumps({"error": error_shape(error)}, ensure_ascii=False))
        return exit_code(error)
    text = _text(error)
    complain(text, "" if error.hint in text else error.hint)
    return exit_code(error)


def report_usage(message: str, command: str, *, as_json: bool) -> int:
    """A command line that cannot be understood; ``command`` is as much of it as was."""
    message = message.removeprefix("Invalid value: ")
    if as_json:
        shape = {"code": "usage", "kind": "usage", "message": message, "hint": f"{command} --help"}
        note(json.dumps({"error": shape}, ensure_ascii=False))
    else:
        complain(message, f"{command} --help")
    return USAGE


def complain(message: str, hint: str = "") -> None:
    """An error in words."""
    note(f"{typer.style('error', fg=typer.colors.RED, bold=True)}: {message}")
    if hint:
        note(f"  hint: {hint}")


def error_shape(error: PlaitaError) -> dict[str, Json]:
    """``{"code", "kind", "message", "hint"}``; ``issues`` of a flow that cannot be loaded, ``path`` of a failed one."""
    shape: dict[str, Json] = {
        "code": error.reference,
        "kind": error.kind,
        "message": str(error).splitlines()[0] if isinstance(error, FlowLoadError) else str(error),
        "hint": error.hint or None,
    }
    if isinstance(error, FlowLoadError):
        shape["issues"] = issues_shape(error.issues)
    if isinstance(error, FlowExecutionException):
        shape["path"] = list(error.path)
    return shape


def issues_shape(issues: Sequence[Issue]) -> list[Json]:
    """Issues as JSON."""
    return [asdict(issue) for issue in issues]


def _text(error: PlaitaError) -> str:
    if isinstance(error, FlowExecutionException) and error.path:
        return f"{error} (at {'/'.join(map(str, error.path))})"
    return str(error)
