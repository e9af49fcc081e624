"""Executions, waits and times in words, with the command that lets each go on."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from plaita.base.json import Json
from plaita.base.moment import iso
from plaita.cli.screen import coloured
from plaita.control.shapes import Shape, may_vote, votes_missing, ways_to_decide

LABELS = {"suspended": "waiting", "error": "failed"}
TIMES = {"deadline_ms": "until", "at_ms": "again"}
"""Times in entries of a history, with the words for them."""
WAITS_MAX = 20
"""So many waits of one execution, or reasons why it rests, are shown to a person one by one."""
CELL_MAX = 3
"""And so many in a cell of a table."""
STEPS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True, slots=True)
class Wording:
    """Words for one store: ``store`` is the ``--store`` that was given, ``now_ms`` the store's time. ``stays``: whoever
    reads them waits already, and needs no command for that."""

    store: str | None
    now_ms: int
    stays: bool = False

    def command(self, *words: str) -> str:
        """A command that can be pasted."""
        flag = ("--store", self.store) if self.store else ()
        return shlex.join(("plaita", *words, *flag))

    def when(self, iso: str | None) -> str:
        """A time in local time, and how far it is: ``2026-05-04 17:30 (in 3 days)``."""
        if iso is None:
            return "no limit"
        at = datetime.fromisoformat(iso)
        return f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({self.distance(int(at.timestamp() * 1000))})"

    def distance(self, at_ms: int) -> str:
        """How far a time is from now."""
        seconds = (at_ms - self.now_ms) / 1000
        for size, word in STEPS:
            if abs(seconds) >= 0.95 * size:
                count = round(abs(seconds) / size)
                text = f"{count} {word}{'' if count == 1 else 's'}"
                return f"in {text}" if seconds > 0 else f"{text} ago"
        return "now"

    def age(self, iso: str) -> str:
        """How long ago a time is, in short: ``16m``."""
        seconds = max(0, (self.now_ms - int(datetime.fromisoformat(iso).timestamp() * 1000)) // 1000)
        size, word = next((step for step in STEPS if seconds >= step[0]), STEPS[-1])
        return f"{seconds // size}{word[0]}"

    def execution(self, shape: Shape, tasks: dict[str, Shape]) -> list[str]:
        """What an execution is now, and what can be done."""
        name = f"{shape['flow_id']} {shape['execution_id']}"
        match shape["status"]:
            case "completed":
                return [f"{coloured('completed')}: {name}"]
            case "cancelled":
                return [f"{coloured('cancelled')}: {name}"]
            case "error":
                return [*self._failure(name, shape["error"]), f"  {self.command('retry', shape['execution_id'])}"]
            case "suspended" if shape.get("retry_at"):
                first = f"{coloured('waiting', 'retries')}: {name}, next try {self.when(shape['retry_at'])}"
                return [first, f"  {self.command('wait', shape['execution_id'])}"]
            case "suspended":
                return self._waits(name, shape, tasks)
            case status:
                return self._goes_on(name, status, shape)

    def _failure(self, name: str, error: Json) -> list[str]:
        path = "/".join(map(str, error.get("path") or ()))
        where = f" at {path}" if path else ""
        kind = error.get("kind") or error.get("type") or error.get("error_type")
        return [f"{coloured('failed')}: {name}{where}: {error.get('message')} ({kind}, code {error.get('code')})"]

    def _goes_on(self, name: str, status: str, shape: Shape) -> list[str]:
        lines = [f"{status}: {name}"]
        if shape.get("not_before"):
            lines.append(f"  begins {self.when(shape['not_before'])}")
        if shape.get("blocked_reason"):
            lines.append(f"  blocked: {shape['blocked_reason']}")
            return [*lines, f"  {self.command('explain', shape['execution_id'])}"]
        return lines if self.stays else [*lines, f"  {self.command('wait', shape['execution_id'])}"]

    def _waits(self, name: str, shape: Shape, tasks: dict[str, Shape]) -> list[str]:
        lines = [f"{coloured('waiting')}: {name}"]
        if shape.get("blocked_reason"):
            lines.append(f"  blocked: {shape['blocked_reason']}")
        for wait in shape["waits"][:WAITS_MAX]:
            since, until = self.when(wait["since"]), self.when(wait["deadline"])
            lines.append(f"  {wait['node']} waits for {_what(wait)} since {since}, until {until}")
            task = tasks.get(wait.get("task_id", ""))
            lines += [f"    {line}" for line in self._ways(shape["execution_id"], wait, task)]
        return lines + self.more(len(shape["waits"]) - WAITS_MAX, "inspect", shape["execution_id"])

    def more(self, count: int, *words: str) -> list[str]:
        """That there are so many that are not shown, if there are, and the command that shows all of them."""
        return [] if count <= 0 else [f"  and {count} more", f"    {self.command(*words, '--json')}"]

    def _ways(self, execution_id: str, wait: Json, task: Shape | None) -> list[str]:
        match wait["kind"]:
            case "approval" if task is not None:
                return self.task(task)
            case "event":
                key = ("--key", wait["key"]) if "key" in wait else ()
                return [self.command("event", "publish", wait["event_type"], *key, "--data", "{}")]
            case "delay" | "child" if self.stays:
                return []
            case "delay" if self._is_ahead(wait["deadline"]):
                return [f"{self.command('wait', execution_id)}  # stays until then; a worker goes on by itself"]
            case "delay" | "child":
                return [self.command("wait", execution_id)]
            case _:
                return [self.command("resume", execution_id, "--wait", wait["node"], "--data", "{}")]

    def _is_ahead(self, iso: str | None) -> bool:
        return iso is not None and datetime.fromisoformat(iso).timestamp() * 1000 > self.now_ms

    def task(self, task: Shape) -> list[str]:
        """A task: title, content, votes, and the commands of those who may still vote."""
        lines = [*(str(task["title"] or "").splitlines() or ["(no title)"]), *str(task["content"] or "").splitlines()]
        for field in task["form"]:
            lines.append(f"form: {_field(field)}")
        lines += [f"{v['by']}: {'yes' if v['approved'] else 'no'} {v['comment']}".rstrip() for v in task["votes"]]
        missing = votes_missing(task)
        if candidates := may_vote(task):
            people = ", ".join(candidates)
            lines.append(f"needs {missing} {'vote' if missing == 1 else 'votes'} of {people}")
        return [*lines, *(self.command(*words) for words in ways_to_decide(task))]


def label(shape: Shape) -> str:
    """The status as people call it."""
    if shape["status"] == "suspended" and shape.get("retry_at"):
        return "retrying"
    return LABELS.get(shape["status"], str(shape["status"]))


def facts_of(entry: Shape, head: Collection[str], time: Callable[[str], str] = str) -> Iterator[tuple[str, Json]]:
    """What an entry of a history says beside its ``head``; ``time`` writes times, which are given in ISO 8601."""
    for name, value in entry.items():
        if name in TIMES and (at := iso(value)) is not None:
            yield TIMES[name], time(at)
        elif name not in head and name not in TIMES:
            yield name, value


def waits_in_short(shape: Shape) -> str:
    """What an execution waits for, in one cell."""
    if shape.get("blocked_reason"):
        return "somebody: it is blocked"
    waits: Sequence[Json] = shape["waits"]
    shown = [f"{w['node']} ({_what(w)})" for w in waits[:CELL_MAX]]
    return ", ".join([*shown, f"{len(waits) - CELL_MAX} more"] if len(waits) > CELL_MAX else shown)


def _what(wait: Json) -> str:
    match wait["kind"]:
        case "event":
            key = f" with key {wait['key'] or repr('')}" if "key" in wait else ""
            return f"the event {wait['event_type']}{key}"
        case "approval":
            return "an approval"
        case "delay":
            return "its time"
        case "child":
            return "a child execution"
        case _:
            return "an answer"


def _field(field: Json) -> str:
    if not isinstance(field, dict):
        return str(field)
    name = field.get("name") or field.get("id") or field.get("label")
    kind = field.get("type")
    return f"{name} ({kind})" if kind else str(name)
