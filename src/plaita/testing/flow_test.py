"""``FlowTest``: a flow in a world of its own, in virtual time, with everything outside in the hands of the test."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Self

from plaita.base.clock import new_id
from plaita.base.errors import Conflict, ResumeRefused
from plaita.base.json import Json, admit, decode, encode
from plaita.control import acting, looking, starting
from plaita.control.acting import Verdict
from plaita.control.flow_files import FlowFile, of_object, read_flow_file
from plaita.control.shapes import Shape, task_shape
from plaita.core.flow import Flow, merge_input
from plaita.ports.queries import WaitView
from plaita.ports.values import RunId
from plaita.testing.doubles import Cast
from plaita.testing.kills import Kills
from plaita.testing.performed import Performed
from plaita.testing.saying import NotAsExpected, state_in_words
from plaita.testing.stage import Scene, Stage

NOW = "2030-01-07T09:00:00Z"
"""When a test begins unless it says otherwise: a Monday morning."""
ANYBODY = "anybody"
PAGE = 1000
JUMPS_MAX = 10_000

Moment = datetime | str | int
FlowSource = str | Path | Flow | dict[str, Any]


class FlowTest:
    """A flow under test: a real worker and a store in memory, under virtual time.

        with FlowTest("expense.yaml", mocks={"notify": {"to": "dora"}}) as test:
            run = test.start(employee="dora", amount=480)
            run.waits_for("approval")
            run.approve(by="ann")
            run.approve(by="bob")
            assert run.output["result"] == "approved"

    ``mocks`` says what effectful nodes answer, by node id or address (``loop/pay``; ``loop:1/pay`` in one round): a
    value; an exception to fail with; a list of successive answers; a function of the evaluated fields (a second
    parameter gets the execution). Sub-flows and waits may be mocked too. ``real`` names nodes or node types that run as
    they are, ``True`` all; a node that is neither fails the test. ``now`` is a time, ISO text or ms since 1970; ``env``
    what ``$ENV`` may read of.
    """

    def __init__(
        self,
        flow: FlowSource,
        *,
        mocks: Mapping[str, Any] | None = None,
        real: bool | Collection[str] = (),
        now: Moment = NOW,
        env: Mapping[str, str] | None = None,
        timezone: str | None = None,
    ) -> None:
        scene = Scene(moment_ms(now), dict(env or {}), timezone)
        self._begin(flow_file(flow), Cast(mocks, real), scene, Kills())

    @classmethod
    def on(cls, file: FlowFile, cast: Cast, scene: Scene, kills: Kills) -> Self:
        """A world in which processes die and messages come twice."""
        test = cls.__new__(cls)
        test._begin(file, cast, scene, kills)
        return test

    def _begin(self, file: FlowFile, cast: Cast, scene: Scene, kills: Kills) -> None:
        cast.check(file.flow.program)
        self._file, self.stage = file, Stage(scene, cast, kills)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing outlives a test: there is nothing to give back."""

    @property
    def now(self) -> datetime:
        """Virtual time."""
        return datetime.fromtimestamp(self.stage.now_ms() / 1000, UTC)

    def start(self, value: Mapping[str, Json] | None = None, /, **more: Json) -> FlowRun:
        """Start a run and let it go to its first wait or its end. The input is ``value`` and the keywords.

        Backoffs of retries pass at once; delays and deadlines pass when the test advances. Raises ``InputError``.
        """
        given = merge_input(None if value is None else dict(value), more)
        stage, file = self.stage, self._file
        options = starting.StartOptions(execution_id=stage.ask(_fresh()), imports=file.imports)
        for _ in range(2 if stage.scene.twice else 1):
            answer = stage.ask(starting.start_flow(stage.store, file.flow, given, options, file.name))
        stage.play()
        return FlowRun(self, answer.run_id)

    def publish(self, event_type: str, data: Json = None, *, key: str | None = None) -> int:
        """Publish an event and let what it wakes go on; how many waits it matched."""
        stage = self.stage
        event_id = stage.ask(_fresh())
        found = stage.ask(acting.publish_event(stage.store, event_type, data, key, event_id))
        self.settle(lambda: stage.ask(acting.publish_event(stage.store, event_type, data, key, event_id)))
        return found.matched

    def advance(self, **duration: float) -> None:
        """Let time pass, as ``timedelta`` counts it (``hours=1, minutes=30``), and everything happen that is due."""
        step = timedelta(**duration)
        if step <= timedelta(0):
            raise ValueError(f"advance({duration}) is no time: say for example hours=1")
        self.stage.play(self.stage.now_ms() + int(step.total_seconds() * 1000))

    def jump(self) -> timedelta:
        """Let time pass until the next delay or deadline is over; how long that was. Fails when there is none."""
        before, due = self.stage.now_ms(), self.stage.next_due(10**17)
        if due is None:
            raise NotAsExpected("there is nothing to let time pass for: no delay and no deadline is open")
        self.stage.play(due)
        return timedelta(milliseconds=self.stage.now_ms() - before)

    def settle(self, again: Any) -> None:
        """Go on after something came from outside; in a world where everything comes twice, it does."""
        if self.stage.scene.twice:
            again()
        self.stage.play()
        if self.stage.scene.twice:
            again()
            self.stage.play()


class FlowRun:
    """One run of a flow under test. Whatever is not as the test says raises ``AssertionError`` and tells what is."""

    def __init__(self, test: FlowTest, run_id: RunId) -> None:
        self.test, self.id = test, run_id

    def __repr__(self) -> str:
        return f"FlowRun({self.state})"

    @property
    def shape(self) -> Shape:
        """The run as ``plaita inspect --json`` shows it."""
        stage = self.test.stage
        return stage.ask(looking.inspect(stage.store, self.id))

    @property
    def status(self) -> str:
        """``completed``, ``error``, ``cancelled``, or ``suspended`` while it waits."""
        status: str = self.shape["status"]
        return status

    @property
    def state(self) -> str:
        """Where it is now, and what it waits for, in words."""
        stage, shape = self.test.stage, self.shape
        wanted = [wait["task_id"] for wait in shape["waits"] if "task_id" in wait]
        tasks = {task_id: task_shape(stage.ask(looking.task_of(stage.store, task_id))) for task_id in wanted}
        return state_in_words(shape, tasks)

    @property
    def output(self) -> Json:
        """The output of a completed run."""
        shape = self.shape
        if shape["status"] != "completed":
            raise NotAsExpected(f"there is no output: {self.state}")
        return shape["output"]

    @property
    def error(self) -> Shape:
        """How a failed run failed: ``kind code message error_type path``."""
        shape = self.shape
        if shape["status"] != "error":
            raise NotAsExpected(f"it did not fail: {self.state}")
        error: Shape = shape["error"]
        return error

    @property
    def waits(self) -> list[Shape]:
        """The open waits: ``kind node since deadline``, and what each waits for."""
        waits: list[Shape] = self.shape["waits"]
        return waits

    @property
    def history(self) -> list[Shape]:
        """Every entry of the history, oldest first."""
        stage, found = self.test.stage, list[Shape]()
        while entries := stage.ask(stage.store.history(self.id, after=found[-1]["seq"] if found else 0, limit=PAGE)):
            found += [{"seq": entry.seq, "at_ms": entry.at_ms, **decode(entry.data)} for entry in entries]
        return found

    @property
    def path(self) -> list[str]:
        """The addresses of the nodes it took, in order: a sub-flow stands behind what is in it, a retry counts once.

        Of a long stretch of nodes without effects the first 100 are named.
        """
        return path_of(self.history)

    @property
    def made(self) -> list[Performed]:
        """Every call of an effectful node, in order."""
        return [call for call in self.test.stage.ledger.performed if call.run_id == self.id]

    def calls(self, node: str) -> list[dict[str, Json]]:
        """What a node (id or address) was given, call by call: the fields of the flow, evaluated. Retries count."""
        return [call.fields for call in self.made if call.is_of(node)]

    def waits_for(self, what: str) -> Shape:
        """The open wait at a node (id or address), or of a kind or event type; fails when there is none."""
        found = next((wait for wait in self.waits if is_about(wait, what)), None)
        if found is None:
            raise NotAsExpected(f"it does not wait for {what!r}: {self.state}")
        return found

    def approve(self, by: str = "", comment: str = "", form: Json = None, at: str = "") -> str:
        """Vote yes on the open task (``at`` a node when there are several), by the next approver unless named.

        ``recorded`` while votes are missing, else the outcome. Raises ``ResumeRefused`` when the vote cannot count.
        """
        return self._vote(at, by, partial(Verdict, approved=True, comment=comment, form=form))

    def reject(self, by: str = "", comment: str = "", form: Json = None, at: str = "") -> str:
        """Vote no; as ``approve``."""
        return self._vote(at, by, partial(Verdict, approved=False, comment=comment, form=form))

    def resume(self, data: Json = None, at: str = "") -> None:
        """Answer the open wait (``at`` a node when there are several)."""
        stage = self.test.stage
        wait = _open(self, at, "wait")
        answer = partial(stage.store.wake, self.id, wait.wait_id, encode(admit(data)), "test")
        stage.ask(answer())
        self.test.settle(lambda: stage.ask(answer()))

    def cancel(self) -> None:
        """End it."""
        stage = self.test.stage
        stage.ask(acting.cancel(stage.store, self.id, "test"))
        self.test.settle(lambda: stage.ask(acting.cancel(stage.store, self.id, "test")))

    def retry(self) -> None:
        """Open a failed run again at the failed node. Raises ``Conflict`` when it cannot be."""
        stage = self.test.stage
        stage.ask(acting.retry(stage.store, self.id))
        stage.reopened(self.id)
        stage.play()

    def finish(self) -> Self:
        """Let time pass until it has ended, through every delay and deadline; fails when it waits without one."""
        for _ in range(JUMPS_MAX):
            if self.status in ("completed", "error", "cancelled"):
                return self
            if self.test.stage.next_due(10**17) is None:
                raise NotAsExpected(f"it does not end by itself: {self.state}")
            self.test.jump()
        raise NotAsExpected(f"it has not ended after {JUMPS_MAX} delays and deadlines: {self.state}")

    def _vote(self, at: str, by: str, verdict: Any) -> str:
        stage = self.test.stage
        task_id = _open(self, at, "task", tasks=True).task_id or ""
        task = stage.ask(looking.task_of(stage.store, task_id))
        voted = {vote.actor for vote in task.votes}
        actor = by or next((name for name in task.spec.approvers if name not in voted), ANYBODY)
        decide = partial(acting.decide, stage.store, task_id, verdict(actor), clock=stage.clock)
        _, answer = stage.ask(decide())
        self.test.settle(partial(_once_more, stage, decide))
        return getattr(answer, "outcome", "recorded")


def _open(run: FlowRun, at: str, what: str, *, tasks: bool = False) -> WaitView:
    """The open wait, or the one at a node; one with a task if ``tasks``."""
    stage = run.test.stage
    waits = [w for w in stage.ask(stage.store.waits(run.id)) if w.task_id is not None or not tasks]
    found = [w for w in waits if not at or at in (w.address, w.node_id, w.wait_id)]
    if len(found) != 1:
        where = f" at {at!r}" if at else ""
        wrong = f"there are several {what}s{where}; at=NODE chooses" if found else f"there is no open {what}{where}"
        raise NotAsExpected(f"{wrong}: {run.state}")
    return found[0]


def _once_more(stage: Stage, decide: Any) -> None:
    """The same vote again counts for nothing."""
    try:
        stage.ask(decide())
    except (ResumeRefused, Conflict):
        return


async def _fresh() -> str:
    return new_id()


def is_about(wait: Shape, what: str) -> bool:
    """Is it the wait at this node, or one of this kind or event type?"""
    return what in (wait["node"], wait["node"].rpartition("/")[2], wait["kind"], wait.get("event_type"))


def path_of(history: list[Shape]) -> list[str]:
    """The nodes a history names, in the order they were taken."""
    path: list[str] = []
    for entry in history:
        match entry["event"]:
            case "nodes":
                path += entry["nodes"]
                more = entry["count"] - len(entry["nodes"])
                path += [f"… {more} more"] if more else []
            case "node_start" if entry["attempt"] == 1:
                path.append(entry["node"])
            case "wait":
                path.append(entry["node"])
    return path


def flow_file(flow: FlowSource) -> FlowFile:
    """A flow of a file, an object or a document, with what loading it needs."""
    if isinstance(flow, dict):
        flow = Flow.model_validate(flow)
    return of_object(flow) if isinstance(flow, Flow) else read_flow_file(flow)


def moment_ms(moment: Moment) -> int:
    """A time as ms since 1970; without a zone it is UTC. Raises ``ValueError``."""
    if isinstance(moment, int):
        return moment
    at = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return int(at.timestamp() * 1000)
