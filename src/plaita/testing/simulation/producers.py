"""Everybody outside of the workers: who starts, answers, publishes, cancels and operates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from plaita.backends.rows import WaitRow
from plaita.base.json import Json, encode
from plaita.policy.approval import Ballot, Count, TaskFacts, decide_vote
from plaita.ports.runs import Claim, Submission
from plaita.ports.tasks import Decision, Task, Vote
from plaita.ports.values import TERMINAL, RunId
from plaita.testing.simulation.flows import KEYS, Planned
from plaita.testing.simulation.random_flows import weigh

if TYPE_CHECKING:
    from plaita.testing.simulation.world import World

TYPES = ("pay", "pay", "pay", "pay", "news", "crowd", "paid", "fork", "again")
PEOPLE = ("ann", "bob", "eve", "mallory")


def answer_of(seed: int, run_id: str, wait: WaitRow) -> Json:
    """What a wait is answered with by hand: always the same for one wait of one run."""
    return {"ok": True, "approved": True, "v": weigh(seed, run_id, wait.wait_id) % 7}


class Producers:
    """Acts on the store at once; what goes wrong on their way is that they repeat themselves."""

    def __init__(self, world: World, planned: list[Planned]) -> None:
        self._world, self._dice, self.planned = world, world.dice, planned
        self._events = self._messages = 0
        self._acts: tuple[tuple[int, Callable[[], None]], ...] = (
            (16, self.start), (22, self.answer), (26, self.publish), (14, self.vote), (5, self.cancel),
            (6, self.reopen), (6, self.delete), (10, self.message), (2, self.start_another), (1, self.prune),
        )  # fmt: skip

    def act(self) -> None:
        """One thing happens."""
        drawn = self._dice.below(sum(weight for weight, _ in self._acts))
        for weight, act in self._acts:
            if drawn < weight:
                return act()
            drawn -= weight
        return None

    def start(self) -> None:
        self._submit(self._dice.pick(self.planned).submission)

    def start_all(self) -> None:
        for planned in self.planned:
            self._world.execute("submit", planned.submission)

    def start_another(self) -> None:
        """Another input under the same id."""
        planned = self._dice.pick(self.planned)
        start = planned.submission
        if planned.calm and start.run_id not in self._world.auditor.picture.runs:
            return
        data = encode({"key": "other", "list": [0]})
        self._submit(Submission(start.run_id, "another", data, start.flow_id, start.closure, imports=start.imports))

    def answer(self) -> None:
        """A person or a callback answers by wait id, at times too late or for nothing."""
        waits = self._waits(lambda wait: wait.state == "open") if self._dice.chance(80) else self._waits()
        if not waits:
            return
        run_id, wait = self._dice.pick(waits)
        data = encode(answer_of(self._world.seed, run_id, wait))
        if not self._world.planned(run_id).calm and self._dice.chance(30):
            data = encode({"ok": False, "v": self._dice.below(9)})
        self._twice("wake", run_id, wait.wait_id, data, "callback")

    def interfere(self, claims: list[Claim]) -> None:
        """Somebody answers, publishes or cancels while a holder decides what it was claimed for."""
        for claim in claims:
            run_id = claim.header.run_id
            waits = [w for r, w in self._waits() if r == run_id and w.state == "open"]
            if waits and self._dice.chance(30):
                self._world.at(self._dice.below(14), self._interference(run_id, self._dice.pick(waits)))

    def _interference(self, run_id: RunId, wait: WaitRow) -> Callable[[], object]:
        execute, calm = self._world.execute, self._world.planned(run_id).calm
        data = encode(answer_of(self._world.seed, run_id, wait))
        if not calm and self._dice.chance(10):
            return lambda: execute("cancel", run_id, "operator")
        if wait.kind == "event" and not calm and self._dice.chance(60):
            self._events += 1
            event = (f"e{self._events}", wait.event_type, wait.key, data)
            return lambda: execute("publish", *event)
        return lambda: execute("wake", run_id, wait.wait_id, data, "callback")

    def publish(self) -> None:
        self._events += 1
        event_id = f"e{self._events}" if self._dice.chance(88) else f"e{1 + self._dice.below(self._events)}"
        key = None if self._dice.chance(25) else self._dice.pick(KEYS)
        data = encode({"ok": self._dice.chance(60), "v": self._dice.below(9)})
        self._twice("publish", event_id, self._dice.pick(TYPES), key, data)

    def vote(self) -> None:
        tasks: list[Task] = self._world.ask("inbox")[0]
        tasks = [t for t in tasks if not self._world.planned(t.run_id).calm]
        if not tasks:
            return
        task, actor = self._dice.pick(tasks), self._dice.pick(PEOPLE)
        votes = tuple(Ballot(v.actor, v.approved, v.comment, v.form, v.at_ms) for v in task.votes)
        facts = TaskFacts(task.status, task.spec.approvers, task.spec.strategy, votes)
        match decide_vote(facts, actor, self._dice.chance(60), "", None, int(self._world.now)):
            case Count(ballot, missing, outcome, answer):
                vote = Vote(actor, ballot.approved, ballot.comment, ballot.form, ballot.at_ms)
                self._twice("decide", task.task_id, task.version, Decision(vote, missing, outcome, answer))
            case _:
                nobody = Decision(Vote(actor, True, "", None, 0), 1, None, None)
                self._world.execute("decide", task.task_id, task.version, nobody)

    def cancel(self) -> None:
        self._twice("cancel", self._a_run(), "operator")

    def reopen(self) -> None:
        """An operator tries a failed run again."""
        failed = [r for r, run in self._world.auditor.picture.runs.items() if run.row.status == "error"]
        if failed:
            self._twice("reopen", self._dice.pick(failed))

    def delete(self) -> None:
        """Mostly of runs that have ended; some ids are used again at once."""
        runs = self._world.auditor.picture.runs
        ended = [r for r, run in runs.items() if run.row.status in TERMINAL and not self._world.planned(r).calm]
        run_id = self._dice.pick(ended) if ended and self._dice.chance(85) else self._a_run()
        self._world.execute("delete", run_id)

    def prune(self) -> None:
        self._world.execute("prune", self._world.clock.now_ms() - 40_000)

    def message(self) -> None:
        """What a producer sends in place of a call."""
        dice, body = self._dice, self._body()
        if dice.chance(25):
            long_ago = (self._world.clock.now_ms() - 200_000) / 1000
            body["timestamp"] = datetime.fromtimestamp(long_ago, UTC).isoformat()
        self._messages += 1
        message_id = f"m{self._messages}"
        self._world.premises.sent[message_id] = body
        self._twice("offer", message_id, encode(body))

    def _body(self) -> dict[str, Any]:
        dice = self._dice
        kind = dice.pick(("start", "start", "resume", "resume", "resume", "event", "cancel", "junk"))
        body: dict[str, Any] = {"type": kind, "execution_id": self._a_run()}
        if kind == "start":
            planned = dice.pick(self.planned)
            body |= {"execution_id": planned.run_id, "flow_id": planned.submission.flow_id, "params": planned.value}
        elif kind == "resume":
            waits = self._waits(lambda wait: wait.state == "open") or self._waits()
            if waits:
                run_id, wait = dice.pick(waits)
                body |= {"execution_id": run_id, "wait_id": wait.wait_id}
                body["data"] = answer_of(self._world.seed, run_id, wait)
        elif kind == "event":
            self._events += 1
            body |= {"event_type": dice.pick(TYPES), "event_id": f"e{self._events}", "key": dice.pick(KEYS)}
        return body

    def _submit(self, start: Submission) -> None:
        self._twice("submit", start)

    def _twice(self, verb: str, *args: Any) -> None:
        """Carry out, and at times once more, now or later: the first answer may have been lost."""
        self._world.execute(verb, *args)
        if self._dice.chance(12):
            self._world.coverage.saw("producer repeated itself")
            self._world.at(self._dice.pick((0, 5, 800, 6_000)), lambda: self._world.execute(verb, *args))

    def _a_run(self) -> RunId:
        known = [r for r in self._world.auditor.picture.runs if not self._world.planned(r).calm]
        return self._dice.pick([*known, RunId("unknown")])

    def _waits(self, wanted: Callable[[WaitRow], bool] = lambda _: True) -> list[tuple[RunId, WaitRow]]:
        runs = self._world.auditor.picture.runs
        waits = [(r, wait) for r, run in runs.items() for wait in run.waits.values() if wanted(wait)]
        return [(r, wait) for r, wait in waits if self._world.answerable(r, wait)]
