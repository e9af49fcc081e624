"""What goes into the scripts and what comes out: arguments, headers, waits and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from typing import Any, Final

from plaita.backends.redis.keys import is_mirrored
from plaita.backends.redis.messagepack import texts_of
from plaita.backends.redis.records import Record
from plaita.backends.redis.scripts import Arg, sources
from plaita.backends.rows import RunRow, WaitRow
from plaita.backends.task_codec import spec_bytes, spec_of, vote_of
from plaita.base.clock import new_id
from plaita.base.json import decode, encode
from plaita.base.tenancy import DEFAULT_TENANT_ID
from plaita.ports.queries import Entry
from plaita.ports.runs import Adoption, Arm, Block, Claim, End, Header, Next, Park, Step, Submission
from plaita.ports.tasks import Task
from plaita.ports.values import By, Mail, Parent, RunId, Token, WaitId

TASK_ID_LENGTH = 10
KINDS_MAX: Final = 1_000
"""Kinds that are kept as they were read: a process meets the same few again and again."""
COUNTED_LENGTH: Final = 17
"""Of the names of kinds that are counted, as ``lua/starts.lua`` makes them."""
NO_INPUT: Final = b"{}"
"""An input that is not kept: none says the same."""
EVERYBODY = ""
"""Stands for all actors among the approvers of a task."""


def facts_bytes(s: Submission) -> bytes:
    """What a run was started with, without its input: the scripts read this, and never what a user wrote."""
    return encode(
        {
            "digest": s.digest, "flow_id": s.flow_id, "closure": s.closure, "flow_version": s.flow_version,
            "entry": s.entry, "tenant": s.tenant, "business_key": s.business_key, "tags": list(s.tags),
            "not_before": s.not_before_ms, "priority": s.priority, "queue": s.queue, "imports": list(s.imports),
            "mirrored": is_mirrored(s.run_id, s.tenant),
        }
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """What a run shares with the other runs of its definition."""

    flow_id: str
    closure: str
    flow_version: str
    entry: str
    imports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """A run as its header says it; ``kind`` is the name of its kind."""

    row: RunRow
    kind: str
    digest: str
    submitted_ms: int
    not_before_ms: int | None
    business_key: str
    tags: tuple[str, ...]
    failures: int
    wakeups: int
    lost_worker: bool
    box: list[list[Any]]
    live: list[WaitRow]
    """Waits that are kept in the header."""
    consumed: list[int]
    """Events that are kept there as consumed."""


_NULLABLE: Final = ("nonce", "due", "ended", "last_nonce", "retry", "not_before")
_TIMES: Final = ("due", "retry", "not_before")
"""Late ones are texts."""
_ROW: Final = tuple(field.name for field in fields(RunRow) if field.name != "run_id")


def stored_of(run_id: str, header: bytes) -> Stored:
    """Read a header as ``lua/rows.lua`` writes it."""
    said = _said(header)
    row = RunRow(run_id=RunId(run_id), **{name: said[name] for name in _ROW})
    return Stored(
        row, said["kind"], said["digest"], said["submitted"], said["not_before"], said["business_key"],
        tuple(said["tags"]), said["failures"], said["wakeups"], said["lost_worker"], list(said["box"]),
        [wait_row(entry) for entry in said["live"] if isinstance(entry, list)], list(said["consumed"])[::2],
    )  # fmt: skip


def entries_of(lines: Sequence[bytes], first: int) -> list[Entry]:
    """History entries as ``lua/rows.lua`` writes them; the number of the first."""
    parts = (line.partition(b"|") for line in lines)
    return [Entry(seq, int(at_ms), data) for seq, (at_ms, _, data) in enumerate(parts, first)]


def _said(header: bytes) -> dict[str, Any]:
    """A header by names."""
    said = _records()["run"].named(decode(header))
    said |= {name: None for name in _NULLABLE if said[name] is False}
    said |= {name: int(said[name]) for name in _TIMES if said[name] is not None}
    said["tenant"] = said["tenant"] or DEFAULT_TENANT_ID
    return said


@lru_cache(maxsize=KINDS_MAX)
def kind_of(raw: bytes) -> Kind:
    """Read a kind as ``lua/starts.lua`` writes it."""
    flow_id, closure, flow_version, entry, imports = decode(raw)
    return Kind(flow_id, closure, flow_version, entry, tuple(imports))


@cache
def _records() -> dict[str, Record]:
    return {record.name: record for record in sources()["rows"].records}


def mails_of(reply: Sequence[Any]) -> tuple[Mail, ...]:
    return tuple(
        Mail(number, kind.decode(), WaitId(wait.decode()), data or b"", event)
        for number, kind, wait, event, data in reply
    )


def claim_of(reply: Sequence[Any], lease_ms: int) -> Claim:
    """One answer of ``lua/headers.lua``."""
    run_id, raw, shared, data, mails, cancel, now_ms, takeover, packed = reply
    said, kind = _said(raw), kind_of(shared)
    token = Token(said["nonce"], said["generation"], said["incarnation"])
    header = Header(
        RunId(run_id.decode()), said["incarnation"], said["seq"], kind.flow_id, kind.flow_version, kind.closure,
        kind.entry, data, said["submitted"], said["not_before"], said["tries"], kind.imports, said["tenant"],
        said["queue"], bool(said["reopened"]),
    )  # fmt: skip
    frames = None if packed is None else pairs(texts_of(packed))
    return Claim(header, token, mails_of(mails), bool(cancel), now_ms, lease_ms, bool(takeover), frames)


def start_args(s: Submission) -> dict[str, Arg | None]:
    """A start, with the incarnation it gets if it is new."""
    return {
        "id": s.run_id, "incarnation": new_id(), "facts": facts_bytes(s), "input": s.input, "digest": s.digest,
    }  # fmt: skip


def step_args(step: Step) -> dict[str, Any]:
    """A settle. The ids it may mint are minted here, so that the same bytes can be sent again."""
    put: list[Arg] = []
    cut: list[Arg] = []
    for key, value in step.delta.items():
        if value is None:
            cut.append(key)
        else:
            put += (key, value)
    token = step.token
    return {
        "id": step.run_id, "nonce": token.nonce, "generation": token.generation, "incarnation": token.incarnation,
        "seq": step.seq, "digest": step.digest, "ack": step.ack, "progress": step.progress, **next_args(step.next),
        "put": put, "cut": cut,
        "closes": [value for c in step.closes for value in (c.wait_id, c.why, c.event)],
        "arms": arm_args(step.arms),
        "spawns": [
            value
            for spawn in step.spawns
            for value in (
                spawn.wait_id or "", spawn.submission.run_id, new_id(), facts_bytes(spawn.submission),
                spawn.submission.digest, spawn.submission.input,
            )
        ],
        "history": step.history,
    }  # fmt: skip


def adoption_args(state: Adoption) -> dict[str, Any]:
    put = [value for item in state.frames.items() for value in item]
    return {**next_args(state.next), "put": put, "arms": arm_args(state.arms)}


def next_args(following: Next) -> dict[str, Arg | None]:
    match following:
        case Park(due_ms, retry_ms):
            return _next("park", due_ms, retry_ms)
        case Block(reason):
            return _next("block", reason)
        case End(status, output, error):
            return _next("end", status, output, error)
    return _next({"Keep": "keep", "HandBack": "hand_back"}[type(following).__name__])


def _next(kind: str, a: Arg | None = None, b: Arg | None = None, c: bytes | None = None) -> dict[str, Arg | None]:
    return {"kind": kind, "a": a, "b": b, "c": c, "failed_node": failed_node(c)}


def failed_node(error: bytes | None) -> str | None:
    """The node an error came from, as the documented row names it."""
    found = decode(error) if error else None
    path = found.get("path") if isinstance(found, dict) else None
    return str(path[-1]) if path else None


def arm_args(arms: Sequence[Arm]) -> list[Arg]:
    """Fourteen values an arm; what is absent or false is empty."""
    args: list[Arg] = []
    for arm in arms:
        task = arm.task
        args += (
            arm.wait_id, arm.kind, arm.node_id, arm.address, arm.event_type, "" if arm.key is None else 1,
            arm.key or "", 1 if arm.by_filter else "", 1 if arm.reuse else "",
            "" if arm.deadline_ms is None else arm.deadline_ms,
        )  # fmt: skip
        if task is None:
            args += ("", "", "")
        else:
            approvers = encode(sorted(set(task.approvers)) or [EVERYBODY])
            args += (new_id()[:TASK_ID_LENGTH], spec_bytes(task), approvers)
        args.append(arm.wanted)
    return args


def wait_of(raw: bytes) -> WaitRow:
    """Read a wait as ``lua/match.lua`` writes it."""
    return wait_row(decode(raw))


def wait_row(values: list[Any]) -> WaitRow:
    said = _records()["wait"].named(values)
    return WaitRow(
        WaitId(said["id"]), said["kind"], said["node"], said["address"], said["type"], _none(said["key"]),
        said["by_filter"], said["reuse"], said["arm"], said["low"], said["since"], _time(said["deadline"]),
        _none(said["task"]), _none(said["child"]), said["state"], by_of(said["by"]), _none(said["cand"]),
    )  # fmt: skip


def _none(value: Any) -> Any:
    return None if value is False else value


def _time(value: Any) -> int | None:
    return None if value is False else int(value)


def by_of(value: Any) -> By | None:
    if not value:
        return None
    return By(value["kind"], value.get("event", 0), value.get("digest", ""), value.get("actor", ""))


def parent_bytes(parent: Parent | None) -> bytes | None:
    """Whom a run tells of its end, as ``parent_of`` reads it."""
    return None if parent is None else encode([parent.run_id, parent.incarnation, parent.wait_id])


def parent_of(raw: bytes | None) -> Parent | None:
    return None if raw is None else Parent(*decode(raw))


def task_of(task_id: str, said: dict[str, bytes]) -> Task:
    """Read a task from its hash."""
    voters = len(decode(said["voters"])) if "voters" in said else 0
    votes = tuple(vote_of(said[f"vote:{i}"]) for i in range(1, voters + 1))
    status: Any = said["status"].decode()
    return Task(
        task_id, RunId(said["run"].decode()), WaitId(said["wait"].decode()), said["flow"].decode(),
        said["node"].decode(), spec_of(said["spec"]), status, int(said["version"]), int(said["created"]),
        int(said["deadline"]) if "deadline" in said else None, votes,
    )  # fmt: skip


def pairs(reply: Sequence[bytes]) -> dict[str, bytes]:
    """A flat list of names and values, as the server answers a hash."""
    return {reply[i].decode(): reply[i + 1] for i in range(0, len(reply), 2)}


def pairs_of_text(reply: Sequence[bytes]) -> dict[str, bytes]:
    """The same for names that others chose."""
    return {reply[i].decode(errors="replace"): reply[i + 1] for i in range(0, len(reply), 2)}
