"""Running a saved case, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass

from plaita.base.errors import InputError, PlaitaError
from plaita.base.json import Json
from plaita.control.flow_files import FlowFile
from plaita.control.shapes import Shape
from plaita.testing.case_files import Case
from plaita.testing.crashes import NotSurvived, Survival, survive
from plaita.testing.doubles import Cast
from plaita.testing.flow_test import FlowRun, FlowTest, is_about
from plaita.testing.kills import Kills
from plaita.testing.saying import difference, same, shown
from plaita.testing.stage import Scene


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as expected: what, in words, and how it differs."""

    what: str
    message: str
    difference: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a case. ``state`` is where its run is at the end, when something is not as expected; ``place``
    where it was not the same after a crash."""

    case: Case
    findings: tuple[Finding, ...] = ()
    state: str = ""
    survival: Survival | None = None
    place: str = ""

    @property
    def ok(self) -> bool:
        """Is everything as expected?"""
        return not self.findings


def run_case(file: FlowFile, case: Case, place: str = "") -> Verdict:
    """Run a case; with ``crash`` also with crashes, at all places or only at one."""
    scene = Scene(case.now_ms, case.env, case.timezone)
    try:
        test = FlowTest.on(file, Cast(case.mocks, case.real), scene, Kills())
        run = test.start(case.value)
    except InputError as e:
        return _refused(case, e)
    except AssertionError as e:
        return Verdict(case, (Finding("start", str(e)),))
    for number, (word, action) in enumerate(case.steps, 1):
        try:
            action(test, run)
        except (AssertionError, PlaitaError) as e:
            return Verdict(case, (Finding(f"step {number} ({word})", str(e)),), run.state)
    findings = tuple(_judged(case.expect, run))
    if findings:
        return Verdict(case, findings, run.state)
    return _crashed(file, case, scene, place) if case.crash or place else Verdict(case)


def _crashed(file: FlowFile, case: Case, scene: Scene, place: str) -> Verdict:
    actions = [action for _, action in case.steps]
    try:
        survival = survive(file, case.value, scene, actions, (case.mocks, case.real), place=place)
    except NotSurvived as e:
        return Verdict(case, (Finding("crash", str(e)),), place=e.place)
    except AssertionError as e:
        return Verdict(case, (Finding("crash", str(e)),))
    return Verdict(case, survival=survival)


def _refused(case: Case, error: InputError) -> Verdict:
    """The input was refused, so that there is no run; a case may expect that."""
    wanted = case.expect.get("error")
    found = {"kind": error.kind, "message": str(error), "code": None}
    if wanted is None:
        return Verdict(case, (Finding("start", f"the input is refused: {error}"),))
    return Verdict(case, tuple(_error(wanted, found)))


def _judged(expect: dict[str, Json], run: FlowRun) -> list[Finding]:
    shape, findings = run.shape, list[Finding]()
    for what, wanted in expect.items():
        match what:
            case "status":
                findings += _equal(what, wanted, shape["status"])
            case "output":
                findings += _ended(shape, what) or _equal(what, wanted, shape["output"])
            case "contains":
                findings += _ended(shape, what) or _contains(wanted, shape["output"])
            case "error" if shape["status"] != "error":
                findings.append(Finding(what, "the run did not fail"))
            case "error":
                findings += _error(wanted, shape["error"])
            case "waits":
                findings += _waits(wanted, run.waits)
            case "path":
                findings += _equal(what, wanted, run.path)
            case "calls":
                for node, calls in wanted.items():
                    made: Json = run.calls(node)
                    count = isinstance(calls, int)
                    findings += _equal(f"calls of {node}", calls, len(made) if count else made)
    return findings


def _ended(shape: Shape, what: str) -> list[Finding]:
    return [] if shape["status"] == "completed" else [Finding(what, "the run has not completed")]


def _equal(what: str, wanted: Json, found: Json) -> list[Finding]:
    lines = difference(wanted, found)
    return [Finding(what, "is not as expected", tuple(lines))] if lines else []


def _contains(wanted: Json, found: Json) -> list[Finding]:
    lines = difference(wanted, _part_of(found, wanted))
    return [Finding("contains", "the output does not contain it", tuple(lines))] if lines else []


def _part_of(found: Json, wanted: Json) -> Json:
    """What of a value a pattern speaks about: of objects only its keys, at any depth."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        return {key: _part_of(value, wanted[key]) for key, value in found.items() if key in wanted}
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        return [_part_of(one, pattern) for one, pattern in zip(found, wanted, strict=True)]
    return found


def _error(wanted: Json, found: Shape) -> list[Finding]:
    findings = [
        Finding(f"error.{key}", f"is {shown(found[key])}, not {shown(wanted[key])}")
        for key in ("kind", "code")
        if key in wanted and not same(wanted[key], found[key])
    ]
    if str(wanted.get("message", "")) not in found["message"]:
        findings.append(Finding("error.message", f"{found['message']!r} does not contain {wanted['message']!r}"))
    return findings


def _waits(wanted: Json, waits: list[Shape]) -> list[Finding]:
    names = [wanted] if isinstance(wanted, str) else wanted
    missing = [name for name in names if not any(is_about(wait, name) for wait in waits)]
    findings = [Finding("waits", f"it does not wait for {name!r}") for name in missing]
    if not missing and len(waits) > len(names):
        others = ", ".join(wait["node"] for wait in waits if not any(is_about(wait, name) for name in names))
        findings += [Finding("waits", f"it also waits at {others}")] if others else []
    return findings
