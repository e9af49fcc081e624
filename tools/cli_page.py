"""The reference page of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from plaita.cli.failing import MEANINGS
from plaita.cli.main import build

INTRO = (
    "Results are on stdout, words for people on stderr; a pipe gets no colours and no boxes. Every command has "
    "`--debug`; all but `graph` have `--json`, all but `build`, `validate` and `test` have `--store`. FLOW is a "
    "`.json`, `.yaml` or `.py` file; a Python file has one `Flow` under any name, or several of which `flow` is taken, "
    "or `file.py:name`."
)
SHAPES = (
    (
        "an execution (`run`, `start`, `inspect`, `wait`, `resume`, `retry`)",
        '`{"execution_id", "flow_id", "flow_version", "status", "output", "error", "waits", "start_time", "end_time"}`,'
        " and where they apply `business_key`, `tags`, `retry_at`, `not_before`, `blocked_reason`, `parent_id`",
    ),
    (
        "a wait of an execution",
        '`{"wait_id", "kind", "node", "since", "deadline"}`, and `task_id`, or `event_type` and `key`',
    ),
    (
        "a task (`inbox`)",
        '`{"task_id", "execution_id", "flow_id", "node", "title", "content", "form", "approvers", "strategy", "votes", '
        '"deadline", "status"}`',
    ),
    ("a decision (`approve`, `reject`)", '`{"task_id", "decided", "outcome", "execution"}`'),
    ("an event (`event publish`)", '`{"event_id", "matched", "woken", "duplicate", "pending", "executions"}`'),
    (
        "a case (`test`)",
        '`{"name", "file", "line", "ok", "findings", "state", "place", "crash"}`; a finding is '
        '`{"what", "message", "difference"}`',
    ),
    (
        "a list (`ps`, `inbox`, `flows`, `validate`, `test`, `doctor`, `cancel`, `delete`)",
        '`{"items": […], "next": cursor or null}`',
    ),
    (
        "an error, on stderr",
        '`{"error": {"code", "kind", "message", "hint"}}`, and `issues` of a flow that cannot be loaded',
    ),
)
WORDS = (
    "A status is one of `queued`, `running`, `suspended`, `completed`, `error`, `cancelled`. Times are ISO 8601 in UTC."
)


def cli_page(notice: str) -> str:
    """Exit codes, shapes, and the help of every command."""
    codes = "\n".join(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items())
    shapes = "\n".join(f"| {what} | {shape} |" for what, shape in SHAPES)
    parts = [
        notice,
        "# Command line",
        INTRO,
        f"## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}",
        f"## JSON\n\n| what | shape |\n|---|---|\n{shapes}\n\n{WORDS}",
    ]
    group: Any = typer.main.get_command(build())
    for path, command in _commands("plaita", group):
        parts += _section(path, command)
    return "\n\n".join(parts) + "\n"


def _commands(path: str, group: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        inner = f"{path} {name}"
        found += _commands(inner, command) if hasattr(command, "commands") else [(inner, command)]
    return found


def _section(path: str, command: Any) -> list[str]:
    """One command: what it does, an example, its parameters. The layout is ours, whatever the parser prints."""
    rows = [_row(parameter) for parameter in command.params if "--help" not in parameter.opts]
    table = "\n".join(["| parameter | meaning |", "|---|---|", *rows])
    text = inspect.cleandoc(command.callback.__doc__ or "")
    return [f"## {path}", text, f"```console\n{command.epilog.removeprefix('Example: ')}\n```", table]


def _row(parameter: Any) -> str:
    is_option = parameter.opts[0].startswith("-")
    metavar = (parameter.metavar or parameter.name.upper()) if not getattr(parameter, "is_flag", False) else ""
    names = ", ".join(parameter.opts) if is_option else ""
    shown = f"{names} {metavar}".strip().replace("|", "\\|")
    return f"| `{shown}` | {(getattr(parameter, 'help', '') or '').replace('|', chr(92) + '|')} |"
