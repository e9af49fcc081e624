"""``assert_survives_crashes``: a flow is the same however often its process dies and its messages come twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypedDict, Unpack

from plaita.base.json import Json
from plaita.control.flow_files import FlowFile
from plaita.control.shapes import Shape
from plaita.testing.actions import Action
from plaita.testing.doubles import Cast
from plaita.testing.flow_test import NOW, FlowRun, FlowSource, FlowTest, Moment, flow_file, moment_ms, path_of
from plaita.testing.kills import ALL, WHENS, Kills, Place, read_place
from plaita.testing.performed import Performed
from plaita.testing.saying import NotAsExpected, difference
from plaita.testing.stage import Scene

TWICE = "twice"
PLACES_MAX = 400
Mocks: TypeAlias = "Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None"
Answers: TypeAlias = "Sequence[Action] | Action"
Played: TypeAlias = "tuple[Mocks, bool | Collection[str]]"


class Circumstances(TypedDict, total=False):
    """What else a crash test may say.

    ``down``: seconds a killed process is missed. ``compared``: what of the outcome counts, a function of the output.
    ``place``: only this one (``after-3``, ``before-all``, ``twice``), to repeat a failure. ``places_max``: a flow with
    more settles is killed at so many places, evenly spread.
    """

    real: bool | Collection[str]
    now: Moment
    env: Mapping[str, str]
    timezone: str | None
    down: float
    compared: Callable[[Json], Json]
    place: str
    places_max: int


class NotSurvived(NotAsExpected):
    """A flow is not the same after a crash; ``place`` is where to look at it again."""

    def __init__(self, message: str, place: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class Survival:
    """What a crash test did: settles of the undisturbed run, worlds it was repeated in, calls that were made again."""

    settles: int
    worlds: int
    repeated: int


@dataclass(frozen=True, slots=True)
class _Subject:
    """Everything that is the same in each of the worlds."""

    file: FlowFile
    value: Mapping[str, Json]
    answers: Answers
    mocks: Mocks
    real: bool | Collection[str]
    scene: Scene
    compared: Callable[[Json], Json]

    def world(self, place: Place | None, *, twice: bool) -> _World:
        """Play it once more, with a fault."""
        mocks = self.mocks() if callable(self.mocks) else self.mocks
        kills = Kills(place)
        test = FlowTest.on(self.file, Cast(mocks, self.real), replace(self.scene, twice=twice), kills)
        world = _World(test, kills)
        try:
            run = test.start(dict(self.value))
            for answer in [self.answers] if callable(self.answers) else self.answers:
                answer(test, run)
        except AssertionError as e:
            world.failed = str(e)
        world.runs = _runs(test, self.compared)
        return world


@dataclass(slots=True)
class _World:
    """One way it went. ``runs``: by id, what is compared of each; ``failed``: what an answer or node complained of."""

    test: FlowTest
    kills: Kills
    runs: dict[str, Shape] = field(default_factory=dict)
    failed: str = ""

    @property
    def calls(self) -> list[Performed]:
        return self.test.stage.ledger.performed

    @property
    def repeated(self) -> list[Performed]:
        """Calls that were performed more than once."""
        count = Counter(call.identity for call in self.calls)
        return [call for call in self.calls if count[call.identity] > 1]


def assert_survives_crashes(
    flow: FlowSource,
    value: Mapping[str, Json] | None = None,
    *,
    answers: Answers = (),
    mocks: Mocks = None,
    **more: Unpack[Circumstances],
) -> Survival:
    """Run a flow undisturbed; then again with every message sent twice, and with its process killed at every commit.

    At each settle: killed before it, killed after it, and only its answer lost; then at every settle in one run. Each
    run must give the same output or error, take the same nodes in every part of the flow and ask for the same in every
    call; a finished call never runs again, and a kill repeats the calls under way at most once each.

    ``answers`` is what happens from outside: actions such as ``Approve("ann")``, or one function of the test and the
    run. ``mocks`` are those of ``FlowTest``; a function without parameters makes them anew for each run, which those
    with a state of their own need. Raises ``AssertionError`` that names the place and how to repeat it.
    """
    down_ms = int(more.get("down", 1.0) * 1000)
    scene = Scene(moment_ms(more.get("now", NOW)), dict(more.get("env") or {}), more.get("timezone"), down_ms)
    cast = (mocks, more.get("real", ()))
    file, compared = flow_file(flow), more.get("compared", _whole)
    subject = _Subject(file, dict(value or {}), answers, *cast, scene, compared)
    try:
        return _judge(subject, more.get("place", ""), more.get("places_max", PLACES_MAX))
    except NotSurvived as e:
        again = f"assert_survives_crashes(…, place={e.place!r})"
        raise NotSurvived(f"{e}\nto repeat it: {again}", e.place) from None


def survive(
    file: FlowFile, value: Mapping[str, Json], scene: Scene, answers: Answers, cast: Played, *, place: str = ""
) -> Survival:
    """``assert_survives_crashes`` for what has been read already; ``cast`` are the mocks and who may run as it is."""
    return _judge(_Subject(file, value, answers, *cast, scene, _whole), place, PLACES_MAX)


def _judge(subject: _Subject, only: str, places_max: int) -> Survival:
    peace = subject.world(None, twice=False)
    if peace.failed:
        raise NotAsExpected(f"undisturbed, without any crash: {peace.failed}")
    _refuse_moody(peace, subject.world(None, twice=False))
    repeated = worlds = 0
    for name in _places(len(peace.kills.settles), only, places_max):
        place = None if name == TWICE else read_place(name)
        world = subject.world(place, twice=True)
        problems = _problems(peace, world)
        if problems:
            raise NotSurvived(_report(place, peace, world, problems), name)
        worlds, repeated = worlds + 1, repeated + world.test.stage.ledger.repeated
    return Survival(len(peace.kills.settles), worlds, repeated)


def _whole(output: Json) -> Json:
    return output


def _places(settles: int, only: str, most: int) -> Iterator[str]:
    """Where the faults strike, each in a world of its own."""
    if only:
        if only != TWICE:
            read_place(only)
        yield only
        return
    yield TWICE
    found = [Place(when, number) for number in range(1, settles + 1) for when in WHENS]
    step = max(1.0, len(found) / most)
    yield from (str(found[int(i * step)]) for i in range(int(len(found) / step)))
    yield from (str(Place(when, ALL)) for when in WHENS)


def _runs(test: FlowTest, compared: Callable[[Json], Json]) -> dict[str, Shape]:
    """Every run of a world, the branches it left behind too, as far as it must not change."""
    stage, found = test.stage, dict[str, Shape]()
    views, _ = stage.ask(stage.store.runs(limit=10_000))
    for view in views:
        run = FlowRun(test, view.run_id)
        shape = run.shape
        output = compared(shape["output"]) if shape["status"] == "completed" else None
        waits = [[w["kind"], w["node"], w.get("event_type"), w.get("key")] for w in shape["waits"]]
        found[view.run_id] = {
            "status": shape["status"], "output": output, "error": shape["error"], "waits": waits,
            "path": _by_level(path_of(run.history)),
        }  # fmt: skip
    return found


def _by_level(path: Sequence[str]) -> dict[str, list[str]] | None:
    """The nodes of each level in order; levels that go on side by side have no order between them.

    ``None`` when a stretch was too long to be named: which part of it was is no fact about the flow.
    """
    if any(node.startswith("…") for node in path):
        return None
    levels: dict[str, list[str]] = {}
    for node in path:
        levels.setdefault(node.rpartition("/")[0], []).append(node)
    return levels


def _refuse_moody(peace: _World, again: _World) -> None:
    """A flow that differs from itself in peace tells nothing about crashes."""
    problems = _problems(peace, again)
    if problems:
        hint = (
            "let nodes answer the same in each run: no random ids, no time of the machine; "
            "mocks with a state of their own are made anew for each: mocks=a function that makes them"
        )
        raise NotAsExpected("\n".join(["two undisturbed runs differ, without any crash", *problems, hint]))


def _problems(peace: _World, world: _World) -> list[str]:
    """Everything that is not as it is in peace."""
    if world.failed:
        return [f"  {line}" for line in world.failed.split("\n")]
    problems: list[str] = []
    for run_id in sorted(peace.runs.keys() | world.runs.keys()):
        expected, actual = peace.runs.get(run_id, {}), world.runs.get(run_id, {})
        who = "" if "." not in run_id else f" of the branch {run_id} that was left behind"
        for part in ("status", "output", "error", "waits", "path"):
            if part == "path" and None in (expected.get(part), actual.get(part)):
                continue
            lines = difference(expected.get(part), actual.get(part))
            problems += [f"  {part}{who}:", *(f"    {line}" for line in lines)] if lines else []
    return problems + _other_requests(peace, world)


def _other_requests(peace: _World, world: _World) -> list[str]:
    """Calls that ask for something else than the same call asks for in peace."""
    asked = {call.identity: call.fields for call in peace.calls}
    problems: list[str] = []
    for call in world.calls:
        lines = difference(asked.get(call.identity, call.fields), call.fields)
        if lines:
            problems += [f"  what {call.node} is asked for, under one key ({call.key}):", *(f"    {x}" for x in lines)]
    return problems


def _report(place: Place | None, peace: _World, world: _World, problems: Sequence[str]) -> str:
    what = "everything from outside comes twice" if place is None else place.in_words(peace.kills.settles)
    lines = [f"the flow is not the same when {what}:", *problems]
    cut = sorted({call.node for call in world.repeated})
    if cut:
        lines.append(f"  performed again: {', '.join(cut)}")
    return "\n".join(lines)
