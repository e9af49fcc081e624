"""``plaita validate``: what is wrong with flow files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, Imports, Strict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plaita.base.issues import Issue


def validate(
    flows: Annotated[list[str], typer.Argument(metavar="FLOW…", help="Flow files.")],
    strict: Strict = False,
    imports: Imports = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Report everything that is wrong with flow files: line, place, remedy. Exit code 1 when there are errors.

    A file that cannot be read is told on stderr, the others are looked at all the same; the exit code is its own.
    """
    from plaita.base.errors import PlaitaError
    from plaita.cli.desk import settings_of
    from plaita.cli.failing import DONE, FAILED, issues_shape, report
    from plaita.cli.screen import show_json

    settings = settings_of(None, imports)
    items, good, unread = [], True, DONE
    for path in flows:
        try:
            issues, waits = _look(path, settings.imports)
        except PlaitaError as e:
            code = report(e, as_json=as_json, debug=debug)
            unread = unread or code
            continue
        ok = not any(strict or i.severity == "error" for i in issues)
        good = good and ok
        items.append({"file": path, "ok": ok, "issues": issues_shape(issues), "waits": list(waits)})
        if not as_json:
            _show(path, issues, waits, ok=ok)
    if as_json and items:
        show_json({"items": items, "next": None})
    raise typer.Exit(unread or (DONE if good else FAILED))


def _look(path: str, imports: tuple[str, ...]) -> tuple[tuple[Issue, ...], tuple[str, ...]]:
    """What there is to say about a file, and where the flow may wait."""
    from plaita.base.errors import FlowLoadError
    from plaita.control.flow_files import read_flow_file

    try:
        flow = read_flow_file(path, imports).flow
    except FlowLoadError as e:
        return e.issues, ()
    return flow.issues, flow.may_wait()


def _show(path: str, issues: Sequence[Issue], waits: Sequence[str], *, ok: bool) -> None:
    from plaita.base.issues import with_long_hints_once
    from plaita.cli.screen import coloured, say

    for issue in with_long_hints_once(issues):
        place = f"{path}:{issue.line}:{issue.column}" if issue.line is not None else path
        hint = f" ({issue.hint})" if issue.hint else ""
        word = coloured(issue.severity) if issue.severity == "warning" else coloured("error")
        say(f"{place}: {word}: {issue.path}: {issue.message}{hint} [{issue.code}]")
    if ok:
        may = f"; may wait at {', '.join(waits)}" if waits else "; never waits"
        say(f"{path}: {coloured('ok')}{may}")
