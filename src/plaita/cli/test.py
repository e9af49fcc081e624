"""``plaita test``: the saved cases of a flow."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plaita.cli.options import AsJson, Debug, FlowFileArgument, Imports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plaita.base.json import Json
    from plaita.control.flow_files import FlowFile
    from plaita.testing.case_files import Case
    from plaita.testing.case_runs import Verdict

INDENT = "  "


def test(
    flow: FlowFileArgument,
    cases: Annotated[
        list[str] | None,
        typer.Argument(metavar="CASES…", help="Files of cases. Default: FLOW.cases.yaml and cases/ beside the flow."),
    ] = None,
    name: Annotated[str, typer.Option("-k", metavar="TEXT", help="Only cases whose name contains this text.")] = "",
    crash: Annotated[bool, typer.Option("--crash", help="Run each case with crashes too.")] = False,
    place: Annotated[
        str, typer.Option("--place", metavar="PLACE", help="Crash only there, as a failing case names it: after-3.")
    ] = "",
    imports: Imports = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run the saved cases of a flow: in memory, in virtual time, with mocks, events and decisions injected.

    One line a case; what is not as expected is shown with its difference. No store is used. Exit code 1 when a case
    fails, 2 when a file of cases cannot be read or no case is chosen.
    """
    from plaita.cli.desk import settings_of
    from plaita.cli.failing import DONE, FAILED
    from plaita.cli.screen import show_json
    from plaita.control.flow_files import read_flow_file

    _check_place(place)
    file = read_flow_file(flow, settings_of(None, imports).imports)
    chosen = _chosen(file, Path(flow), cases or [], name)
    verdicts = []
    for case in chosen:
        verdicts.append(_verdict(file, case, crash=crash, place=place))
        if not as_json:
            _show(flow, verdicts[-1])
    if as_json:
        show_json({"items": [_shape(verdict) for verdict in verdicts], "next": None})
    else:
        _sum_up(verdicts)
    raise typer.Exit(DONE if all(verdict.ok for verdict in verdicts) else FAILED)


def _check_place(place: str) -> None:
    from plaita.testing.crashes import TWICE
    from plaita.testing.kills import read_place

    try:
        if place not in ("", TWICE):
            read_place(place)
    except ValueError as e:
        raise typer.BadParameter(f"--place {e}, or {TWICE}") from None


def _chosen(file: FlowFile, flow: Path, files: Sequence[str], name: str) -> list[Case]:
    """The cases to run. Raises ``NotFound`` without any."""
    from plaita.base.errors import NotFound
    from plaita.testing.case_files import find_case_files, read_cases
    from plaita.testing.doubles import Nodes

    paths = [Path(path) for path in files] or find_case_files(flow)
    if not paths:
        raise NotFound(f"there are no cases of {flow}", f"write {flow.with_name(f'{flow.stem}.cases.yaml')}")
    nodes = Nodes(file.flow.program)
    found = [case for path in paths for case in read_cases(path, nodes)]
    chosen = [case for case in found if name.lower() in case.name.lower()]
    if not chosen:
        known = "; ".join(case.name for case in found)
        raise typer.BadParameter(f"no case has {name!r} in its name: {known}" if found else "there is no case in there")
    return chosen


def _verdict(file: FlowFile, case: Case, *, crash: bool, place: str) -> Verdict:
    from dataclasses import replace

    from plaita.testing.case_runs import run_case

    return run_case(file, replace(case, crash=True) if crash else case, place)


def _show(flow: str, verdict: Verdict) -> None:
    from plaita.cli.screen import coloured, say

    case = verdict.case
    survived = verdict.survival
    more = f"  survives {survived.worlds} runs with crashes" if survived is not None else ""
    word = "ok" if verdict.ok else "failed"
    say(f"{coloured(word, f'{word:<6}')}  {case.name}{more}")
    if verdict.ok:
        return
    say(f"{INDENT}{case.source}{f':{case.line}' if case.line else ''}")
    for finding in verdict.findings:
        first, *rest = finding.message.split("\n")
        say(f"{INDENT}{finding.what}: {first}")
        for line in (*rest, *finding.difference):
            say(f"{INDENT * 2}{_painted(line)}")
    for line in verdict.state.split("\n") if verdict.state else ():
        say(f"{INDENT}{line}")
    if verdict.place:
        command = ("plaita", "test", flow, case.source, "-k", case.name, "--place", verdict.place)
        say(f"{INDENT}to repeat it: {shlex.join(command)}")


def _painted(line: str) -> str:
    from plaita.cli.screen import coloured

    match line.lstrip()[:2]:
        case "- ":
            return coloured("failed", line)
        case "+ ":
            return coloured("ok", line)
    return line


def _sum_up(verdicts: Sequence[Verdict]) -> None:
    from plaita.cli.screen import coloured, say

    failed = sum(not verdict.ok for verdict in verdicts)
    count = f"{len(verdicts)} case{'' if len(verdicts) == 1 else 's'}"
    say(f"{count}: {coloured('failed', f'{failed} failed')}" if failed else f"{count}: {coloured('ok', 'all ok')}")


def _shape(verdict: Verdict) -> Json:
    case, survived = verdict.case, verdict.survival
    return {
        "name": case.name,
        "file": case.source,
        "line": case.line,
        "ok": verdict.ok,
        "findings": [
            {"what": f.what, "message": f.message, "difference": list(f.difference)} for f in verdict.findings
        ],
        "state": verdict.state or None,
        "place": verdict.place or None,
        "crash": None
        if survived is None
        else {"settles": survived.settles, "worlds": survived.worlds, "repeated": survived.repeated},
    }
