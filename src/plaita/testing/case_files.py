"""Saved cases of a flow: reading a file of them, with everything that is wrong told with its line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from plaita.base.duration import parse_duration_ms
from plaita.base.errors import KINDS, FlowLoadError, NotFound
from plaita.base.issues import Issue
from plaita.base.json import Json, step_of
from plaita.base.limits import FLOW_TEXT_MAX
from plaita.base.moment import LATEST_MS, is_zone
from plaita.base.spelling import suggest
from plaita.core.errors import FlowResultError
from plaita.core.loading import placed
from plaita.core.text import read_document
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.testing.actions import Action, Advance, Approve, Cancel, Jump, Publish, Reject, Resume, Retry, WaitsFor
from plaita.testing.doubles import Always, Hangs, Later, Nodes
from plaita.testing.flow_test import NOW, moment_ms

SUFFIXES = (".yaml", ".yml", ".json")
CASE_KEYS = ("name", "given", "mocks", "real", "steps", "expect", "crash")
FILE_KEYS = ("flow", "given", "mocks", "real", "cases")
GIVEN_KEYS = ("input", "env", "now", "timezone")
EXPECT_KEYS = ("status", "output", "contains", "error", "waits", "path", "calls")
STATUSES = ("completed", "error", "cancelled", "suspended")
VOTE_KEYS = ("by", "comment", "form", "at")
SHOWN_MAX = 60
UNITS = ("weeks", "days", "hours", "minutes", "seconds", "milliseconds")


@dataclass(frozen=True, slots=True)
class Case:
    """One case. ``expect`` holds what was written, checked; ``steps`` are pairs of a word and what it does."""

    name: str
    source: str
    line: int | None
    value: dict[str, Json] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    now_ms: int = 0
    timezone: str | None = None
    mocks: dict[str, Any] = field(default_factory=dict)
    real: bool | frozenset[str] = frozenset()
    steps: tuple[tuple[str, Action], ...] = ()
    expect: dict[str, Json] = field(default_factory=dict)
    crash: bool = False


def find_case_files(flow: Path) -> list[Path]:
    """The cases of a flow beside it: ``FLOW.cases.yaml``, and what is in ``cases/`` and names no other flow."""
    own = [path for suffix in SUFFIXES if (path := flow.with_name(f"{flow.stem}.cases{suffix}")).is_file()]
    folder = flow.parent / "cases"
    inside = sorted(p for p in folder.iterdir() if p.suffix in SUFFIXES) if folder.is_dir() else []
    return [*own, *(path for path in inside if _is_about(path, flow))]


def _is_about(path: Path, flow: Path) -> bool:
    try:
        named = read_document(path.read_text(encoding="utf-8"), str(path)).value.get("flow")
        return not isinstance(named, str) or (path.parent / named).resolve() == flow.resolve()
    except (OSError, ValueError):
        # What is wrong with it is told when its cases are read.
        return True


def read_cases(path: Path, nodes: Nodes) -> list[Case]:
    """The cases of a file. Raises ``NotFound``, and ``FlowLoadError`` with everything that is wrong."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(FLOW_TEXT_MAX + 1)
    except OSError as e:
        raise NotFound(f"there is no file of cases {path}: {e.strerror or e}", "check the path") from None
    except UnicodeDecodeError:
        raise FlowLoadError([Issue("error", "not_text", "$", "the file is not UTF-8 text")], str(path)) from None
    try:
        document = read_document(text, str(path))
    except FlowLoadError as e:
        what = "a file of cases is one object; several cases are the list in its 'cases'"
        issues = [replace(i, message=what) if i.code == "not_an_object" else i for i in e.issues]
        raise FlowLoadError(issues, str(path)) from None
    reader = _Reader(nodes)
    cases = reader.file(document.value, str(path))
    if reader.issues:
        raise FlowLoadError([placed(issue, document) for issue in reader.issues], str(path))
    return [replace(case, line=(document.locate(where) or (None,))[0]) for case, where in cases]


class _Reader:
    """Reads what it can and collects what is wrong."""

    def __init__(self, nodes: Nodes) -> None:
        self.issues: list[Issue] = []
        self._nodes = nodes

    def file(self, document: dict[str, Json], source: str) -> list[tuple[Case, str]]:
        """The cases, each with its path."""
        if not document:
            return []
        if "cases" not in document:
            one = self._case(document, {}, "$", (*CASE_KEYS, "flow"))
            return [(replace(one, source=source), "$")]
        self._keys(document, "$", FILE_KEYS)
        self._texts(document, "$", ("flow",))
        found = []
        for path, raw in self._items(document["cases"], "$.cases"):
            if self._is(raw, dict, path, "a case is an object"):
                found.append((replace(self._case(raw, document, path, CASE_KEYS), source=source), path))
        self._named_once(found)
        return found

    def _named_once(self, cases: Sequence[tuple[Case, str]]) -> None:
        seen: set[str] = set()
        for case, path in cases:
            if case.name in seen:
                self._report(f"{path}.name", f"there are two cases called {case.name!r}")
            seen.add(case.name)

    def _case(self, raw: dict[str, Json], defaults: dict[str, Json], path: str, keys: Sequence[str]) -> Case:
        self._keys(raw, path, keys)
        for needed in ("name", "expect"):
            if needed not in raw:
                self._report(path, f"a case needs {needed!r}")
        given = {**self._object(defaults.get("given"), "$.given"), **self._object(raw.get("given"), f"{path}.given")}
        self._keys(given, f"{path}.given", GIVEN_KEYS)
        mocks = self._mocks(defaults.get("mocks"), "$.mocks") | self._mocks(raw.get("mocks"), f"{path}.mocks")
        self._texts(raw, path, ("flow",))
        self._texts(given, f"{path}.given", ("timezone",))
        name, crash = raw.get("name", ""), raw.get("crash", False)
        self._is(name, str, f"{path}.name", "a name is text")
        self._is(crash, bool, f"{path}.crash", "crash is true or false")
        env, zone = self._object(given.get("env"), f"{path}.given.env"), given.get("timezone")
        for key, one in env.items():
            number = not isinstance(one, bool) and isinstance(one, int | float)
            self._is("" if number else one, str, step_of(f"{path}.given.env", key), "a variable is text")
        if isinstance(zone, str) and not is_zone(zone):
            self._report(f"{path}.given.timezone", f"{zone!r} is no time zone", "for example Europe/Berlin")
        real = self._real(raw.get("real", defaults.get("real")), f"{path}.real")
        return Case(
            str(name), "", None, self._object(given.get("input"), f"{path}.given.input"),
            {key: str(value) for key, value in env.items()}, self._now(given.get("now", NOW), f"{path}.given.now"),
            None if zone is None else str(zone), mocks, real,
            tuple(self._steps(raw.get("steps") or [], f"{path}.steps")), self._expect(raw, path), bool(crash),
        )  # fmt: skip

    # Parts of a case.

    def _now(self, value: Json, path: str) -> int:
        try:
            at = moment_ms(value) if isinstance(value, str) or type(value) is int else -1
        except (ValueError, OverflowError):
            at = -1
        if not 0 <= at <= LATEST_MS:
            self._report(path, f"{_shown(value)} is no time; write for example {NOW}")
        return at

    def _real(self, value: Json, path: str) -> bool | frozenset[str]:
        if isinstance(value, bool) or value is None:
            return bool(value)
        names = [value] if isinstance(value, str) else value
        if not self._is(names, list, path, "real is true, or a list of nodes and node types"):
            return False
        for name in names:
            if self._is(name, str, path, "real is true, or a list of nodes and node types") and (
                name not in self._nodes.types
            ):
                self._node(name, path)
        return frozenset(map(str, names))

    def _mocks(self, value: Json, path: str) -> dict[str, Any]:
        found = {}
        for name, raw in self._object(value, path).items():
            where = step_of(path, name)
            self._node(name, where)
            if problem := self._nodes.not_performed(name):
                self._report(where, problem)
            found[name] = self._mock(raw, where)
        return found

    def _mock(self, raw: Json, path: str) -> Any:
        if not self._is(raw, dict, path, "a mock is an object", 'for example {"returns": {"ok": true}}'):
            return None
        if not self._keys(raw, path, ("returns", "raises", "in_turn", "hangs", "after")):
            return None
        ways = [key for key in ("returns", "raises", "in_turn", "hangs") if key in raw]
        if len(ways) != 1:
            self._report(path, f"a mock says one of returns, raises, in_turn and hangs, not {len(ways)}")
            return None
        match ways[0]:
            case "returns":
                mock: Any = Always(raw["returns"])
            case "raises":
                mock = self._error(raw["raises"], f"{path}.raises")
            case "in_turn":
                if "after" in raw:
                    self._report(f"{path}.after", "each answer of in_turn has an 'after' of its own")
                return [self._mock(one, where) for where, one in self._items(raw["in_turn"], f"{path}.in_turn")]
            case _:
                return Hangs()
        return Later(self._seconds(raw["after"], f"{path}.after"), mock) if "after" in raw else mock

    def _error(self, raw: Json, path: str) -> BaseException:
        given = {"message": raw} if isinstance(raw, str) else self._object(raw, path)
        self._keys(given, path, ("message", "code", "kind", "retryable"))
        self._texts(given, path, ("message",))
        self._is(given.get("retryable", True), bool, f"{path}.retryable", "retryable is true or false")
        kind, code, text = given.get("kind", "node_error"), given.get("code"), str(given.get("message", "mocked"))
        if kind not in KINDS:
            self._report(
                f"{path}.kind", f"{_shown(kind)} is no kind of error ({suggest(str(kind), KINDS) or ', '.join(KINDS)})"
            )
        if kind == "error_result":
            return FlowResultError(code, text)
        return FailureRaised(
            Failure(
                str(kind), NODE_CODE if code is None else code, text, retryable=given.get("retryable", True) is True
            )
        )

    def _steps(self, value: Json, path: str) -> Iterator[tuple[str, Action]]:
        for where, raw in self._items(value, path):
            step = {raw: None} if isinstance(raw, str) else raw
            if not self._is(step, dict, where, "a step is a word or an object", "for example approve: {by: ann}"):
                continue
            if len(step) != 1:
                self._report(
                    where, f"a step says one thing, not {len(step)}", "write the next step as an item of its own"
                )
                continue
            [(word, given)] = step.items()
            action = self._action(word, given, step_of(where, word))
            if action is not None:
                yield word, action

    def _action(self, word: str, given: Json, path: str) -> Action | None:
        match word:
            case "approve" | "reject":
                cls = Approve if word == "approve" else Reject
                vote = {"by": given} if isinstance(given, str) else self._object(given, path)
                self._texts(vote, path, ("by", "comment", "at"))
                return cls(**vote) if self._keys(vote, path, VOTE_KEYS) else None
            case "event":
                event = {"type": given} if isinstance(given, str) else self._object(given, path)
                self._texts(event, path, ("type", "key"))
                if not self._keys(event, path, ("type", "key", "data")) or not event.get("type"):
                    self._report(path, "an event needs a type")
                    return None
                return Publish(event["type"], event.get("data"), event.get("key"))
            case "resume":
                answer = self._object(given, path)
                self._texts(answer, path, ("at",))
                return Resume(**answer) if self._keys(answer, path, ("data", "at")) else None
            case "advance":
                seconds = self._seconds(given, path)
                if seconds == 0:
                    self._report(path, "that is no time", "for example PT1H, or {hours: 1}")
                return Advance(seconds)
            case "waits":
                self._is(given, str, path, "what it waits for is text")
                return WaitsFor(str(given))
            case "jump":
                return Jump()
            case "cancel":
                return Cancel()
            case "retry":
                return Retry()
        words = ("approve", "reject", "event", "resume", "advance", "jump", "waits", "cancel", "retry")
        self._report(path, f"{word!r} is no step", suggest(word, words) or f"steps: {', '.join(words)}")
        return None

    def _seconds(self, value: Json, path: str) -> float:
        try:
            if not isinstance(value, dict):
                return parse_duration_ms(value) / 1000
            self._keys(value, path, UNITS)
            count = {key: number for key, number in value.items() if key in UNITS}
            for key, number in count.items():
                number = None if isinstance(number, bool) else number
                self._is(number, int | float, f"{path}.{key}", f"{key} are a number, not {_shown(count[key])}")
            seconds = timedelta(**count).total_seconds()
            return parse_duration_ms(seconds * 1000) / 1000
        except TypeError:
            return 1
        except (ValueError, OverflowError) as e:
            text = str(e) if isinstance(e, ValueError) else f"{_shown(value)} is out of range"
            self._report(path, text, "for example PT1H, or {hours: 1}")
            return 1

    def _expect(self, raw: dict[str, Json], path: str) -> dict[str, Json]:
        path = f"{path}.expect"
        expect = self._object(raw.get("expect"), path)
        self._keys(expect, path, EXPECT_KEYS)
        if "expect" in raw and not expect:
            self._report(path, "a case expects something", f"one or more of {', '.join(EXPECT_KEYS)}")
        if expect.get("status", "completed") not in STATUSES:
            self._report(f"{path}.status", f"{_shown(expect['status'])} is none of {', '.join(STATUSES)}")
        error = self._object(expect.get("error"), f"{path}.error")
        self._keys(error, f"{path}.error", ("code", "kind", "message"))
        self._texts(error, f"{path}.error", ("kind", "message"))
        waits = expect.get("waits", [])
        if not isinstance(waits, str) and not (isinstance(waits, list) and all(isinstance(w, str) for w in waits)):
            self._report(f"{path}.waits", "waits is what it waits for, or a list of that")
        self._is(expect.get("path", []), list, f"{path}.path", "a path is a list of nodes")
        for name, calls in self._object(expect.get("calls"), f"{path}.calls").items():
            where = step_of(f"{path}.calls", name)
            self._node(name, where)
            fits = isinstance(calls, list) or (type(calls) is int and calls >= 0)
            text = "calls are a list of what each was given, or their number"
            self._is(calls if fits else None, list | int, where, text)
        return expect

    # What all parts are made of.

    def _node(self, name: str, path: str) -> None:
        if problem := self._nodes.problem(name):
            self._report(path, problem)

    def _texts(self, value: Mapping[str, Json], path: str, keys: Sequence[str]) -> None:
        for key in keys:
            if value.get(key) is not None:
                self._is(value[key], str, step_of(path, key), f"{key} is text, not {_shown(value[key])}")

    def _object(self, value: Json, path: str) -> dict[str, Json]:
        if value is not None and self._is(value, dict, path, f"{path.rpartition('.')[2]} is an object"):
            found: dict[str, Json] = value
            return found
        return {}

    def _items(self, value: Json, path: str) -> Iterator[tuple[str, Json]]:
        if self._is(value, list, path, f"{path.rpartition('.')[2]} is a list"):
            for i, item in enumerate(value):
                yield f"{path}[{i}]", item

    def _keys(self, value: Mapping[str, Json], path: str, known: Sequence[str]) -> bool:
        unknown = [key for key in value if key not in known]
        for key in unknown:
            self._report(
                step_of(path, key), f"{key!r} is not a known key", suggest(key, known) or f"keys: {', '.join(known)}"
            )
        return not unknown

    def _is(self, value: Json, kind: Any, path: str, text: str, hint: str = "") -> bool:
        if not isinstance(value, kind):
            self._report(path, text, hint)
        return isinstance(value, kind)

    def _report(self, path: str, message: str, hint: str = "") -> None:
        issue = Issue("error", "bad_case", path, message, hint)
        if issue not in self.issues:
            self.issues.append(issue)


def _shown(value: Json) -> str:
    """A value as it may stand in the file, cut short."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
