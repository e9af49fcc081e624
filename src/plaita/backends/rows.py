"""What one transaction of a store offers to the verbs: mutable rows and the few look-ups the protocol needs.

The verbs in ``backends.verbs`` are written once over these seams, so every row store has the same semantics. A
``RunRow`` is loaded once per transaction and written back when it ends; everything else is written when it is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from plaita.backends.limits import Limits
from plaita.ports.flows import FlowVersion
from plaita.ports.inbox import DeadLetter, Deed, Message
from plaita.ports.processes import Process
from plaita.ports.queries import Entry
from plaita.ports.runs import Submission
from plaita.ports.tasks import Task
from plaita.ports.values import By, Mail, Parent, RunId, Status, Token, WaitId

Takeovers: TypeAlias = Literal["none", "proven", "all"]
"""Which runs whose lease is over: none, those that made progress since they were claimed last, or all."""
BESIDE: Final = 2
"""The slot of a run whose producer asked not to wait for one."""


@dataclass(slots=True)
class RunRow:
    """The header of a run: what changes while it moves. ``rid`` is the store's own number of the row.

    ``nonce`` and ``generation`` are the claim, ``None`` when nobody holds it; ``last_*`` name the last accepted settle
    (its number is ``seq``). ``boxn`` is the last mailbox number given, ``unread`` how many entries wait, ``armed`` how
    many waits were ever armed, ``entries`` the length of the history. ``parked`` says it waits for a slot, ``blocked``
    that only an operator lifts it. ``slot``: 1 counts for the cap, 2 (``BESIDE``) was given beside it.
    """

    rid: int
    run_id: RunId
    incarnation: str
    tenant: str
    queue: str
    priority: int
    born: int
    status: Status = "queued"
    nonce: str | None = None
    due: int | None = None
    slot: int = 0
    generation: int = 0
    cancel: bool = False
    parked: bool = False
    blocked: bool = False
    ended: int | None = None
    lost: int = 0
    tries: int = 0
    seq: int = 0
    last_nonce: str | None = None
    last_generation: int = 0
    last_digest: str = ""
    boxn: int = 0
    unread: int = 0
    armed: int = 0
    entries: int = 0
    retry: int | None = None
    blocked_reason: str = ""
    reopened: bool = False

    @property
    def token(self) -> Token | None:
        return None if self.nonce is None else Token(self.nonce, self.generation, self.incarnation)

    def held_under(self, token: Token) -> bool:
        return (
            self.nonce is not None
            and self.nonce == token.nonce
            and self.generation == token.generation
            and self.incarnation == token.incarnation
        )


@dataclass(slots=True)
class WaitRow:
    """A wait. ``low``: only events with a higher number are in its window; ``cand``: the event on offer."""

    wait_id: WaitId
    kind: Literal["hand", "event", "child"]
    node_id: str
    address: str
    event_type: str
    key: str | None
    by_filter: bool
    reuse: bool
    arm: int
    low: int
    since: int
    deadline: int | None
    task_id: str | None
    child: str | None = None
    state: Literal["open", "resolved", "closed"] = "open"
    by: By | None = None
    cand: int | None = None


@dataclass(frozen=True, slots=True)
class StartRow:
    """What a run was started with; never changes."""

    start: Submission
    submitted_ms: int


@dataclass(slots=True)
class OutcomeRow:
    """How a run ended, and how often it was reopened after which sort of end."""

    output: bytes | None = None
    error: bytes | None = None
    failures: int = 0
    wakeups: int = 0
    lost_worker: bool = False


@dataclass(frozen=True, slots=True)
class EventRow:
    number: int
    event_id: str
    event_type: str
    key: str | None
    data: bytes
    at_ms: int
    matched: int = 0
    woken: int = 0


@dataclass(frozen=True, slots=True)
class OutRow:
    """One thing still to be done to another run. ``number`` orders the outbox; ``cursor`` is how far a fan-out got.

    ``spawn`` and ``wake`` name the parent by run, incarnation and wait; ``cancel`` its target by run.
    """

    number: int
    kind: Literal["event", "spawn", "wake", "cancel"]
    run_id: RunId = RunId("")
    incarnation: str = ""
    wait_id: WaitId | None = None
    event: int = 0
    cursor: int = 0
    data: bytes = b""
    submission: Submission | None = None


@dataclass(slots=True)
class Pulse:
    """The store's pulse; ``contact_ms`` 0 means never."""

    contact_ms: int = 0
    grace_until_ms: int = 0


@dataclass(frozen=True, slots=True)
class Grave:
    """What is left of a deleted id: its generation goes on, its tombstone refuses new starts."""

    generation: int
    buried_ms: int


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Empty fields match everything; ``beyond`` is the ``rid`` after which, in the order asked for, the page begins."""

    status: str = ""
    flow_id: str = ""
    business_key: str = ""
    tag: str = ""
    tenant: str = ""
    limit: int = 100
    beyond: int | None = None
    oldest_first: bool = False


class RunTable(Protocol):
    """The headers."""

    def load(self, run_id: RunId) -> RunRow | None:
        """The run of that id, or of that other name."""

    def give_name(self, name: str, run_id: RunId) -> None:
        """Let a run be found under one more name, as long as it exists."""

    def at(self, rid: int) -> RunRow: ...
    def add(self, start: StartRow, incarnation: str, generation: int, born: int) -> RunRow: ...
    def drop(self, run: RunRow) -> None:
        """Remove the run and everything that belongs to it."""

    def due(self, queues: Sequence[str], only: RunId | None, *, takeovers: Takeovers, limit: int) -> list[RunRow]:
        """Runs due now by priority, then due time; of those whose lease is over the ones ``takeovers`` names."""

    def next_due(self) -> int | None: ...
    def due_within(self, after: int, until: int) -> list[RunRow]:
        """Runs, held or not, that are due later than the one time and not later than the other."""

    def held(self, nonce: str) -> list[RunRow]: ...
    def held_by(self, holder: str) -> list[RunRow]: ...
    def slots(self, tenant: str) -> int: ...
    def ended_before(self, at_ms: int, limit: int) -> list[RunRow]: ...
    def page(self, wanted: RunFilter) -> list[RunRow]: ...
    def live(self) -> list[RunRow]: ...


class RecordTable(Protocol):
    """What hangs on one run alone: its start, outcome, frames and history."""

    def start(self, run: RunRow) -> StartRow: ...
    def parent(self, run: RunRow) -> Parent | None: ...
    def outcome(self, run: RunRow) -> OutcomeRow: ...
    def save_outcome(self, run: RunRow, outcome: OutcomeRow) -> None: ...
    def frames(self, run: RunRow) -> dict[str, bytes]: ...
    def put_frames(self, run: RunRow, delta: Mapping[str, bytes | None]) -> None: ...
    def drop_frames(self, run: RunRow) -> None: ...
    def log(self, run: RunRow, entries: Iterable[bytes]) -> None: ...
    def history(self, run: RunRow, after: int, limit: int) -> list[Entry]: ...


class WaitTable(Protocol):
    """Waits, the mailbox, and the event numbers a run consumed."""

    def of(self, run: RunRow) -> dict[WaitId, WaitRow]:
        """All waits of a run in the order they were armed, loaded once."""

    def add(self, run: RunRow, wait: WaitRow) -> None: ...
    def save(self, run: RunRow, wait: WaitRow) -> None: ...
    def listening(self, event: EventRow, after: int, limit: int) -> list[tuple[RunRow, WaitId, int]]:
        """Open event waits the event may concern with ``after < arm < number``, by arm: (run, wait, arm)."""

    def mailbox(self, run: RunRow) -> tuple[Mail, ...]: ...
    def post(self, run: RunRow, mail: Mail) -> None: ...
    def unpost(self, run: RunRow, numbers: Sequence[int]) -> None: ...
    def consume(self, run: RunRow, number: int) -> None: ...
    def release(self, run: RunRow, number: int) -> None: ...
    def forget_consumed(self, run: RunRow) -> None: ...


class EventTable(Protocol):
    """The one number sequence, and the event log."""

    def current(self) -> int: ...
    def next(self) -> int: ...
    def find(self, event_id: str) -> EventRow | None: ...
    def at(self, number: int) -> EventRow: ...
    def put(self, event: EventRow) -> None: ...
    def lowest(self, event_type: str, key: str | None, above: int, unconsumed_by: RunRow | None) -> int | None:
        """The lowest event of a type (and key, unless ``None``) above a number, not consumed by that run."""

    def forget(self, older_than_ms: int) -> None:
        """Drop events older than that which no live run and no fan-out can still want."""


class LedgerTable(Protocol):
    """What belongs to the store as a whole: outbox, quota queue, pulse, graves."""

    def push(self, entry: OutRow) -> None: ...
    def first(self) -> OutRow | None: ...
    def entries(self) -> list[OutRow]:
        """The whole outbox in order."""

    def event_pending(self, number: int) -> bool: ...
    def move(self, number: int, cursor: int) -> None: ...
    def pop(self, number: int) -> None: ...
    def enqueue(self, run: RunRow, kind: int) -> None: ...
    def dequeue(self, run: RunRow) -> None: ...
    def head(self, tenant: str, kind: int | None) -> RunRow | None:
        """Who gets the next slot: resumes (0) before starts (1), first come first; or the first of one kind."""

    def parked(self) -> list[tuple[str, int]]:
        """The quota queue: (tenant, rid)."""

    def promotions(self, tenant: str) -> int:
        """Counts one more promotion of the tenant and answers how many there were."""

    def pulse(self) -> Pulse: ...
    def save_pulse(self, pulse: Pulse) -> None: ...
    def grave(self, run_id: RunId) -> Grave | None: ...
    def bury(self, run_id: RunId, grave: Grave) -> None: ...
    def forget_graves(self, older_than_ms: int) -> None: ...
    def by_status(self) -> dict[Status, int]:
        """How many runs there are, the statuses with none left out."""

    def unheld(self) -> tuple[int, int | None]:
        """How many runs are due now and held by nobody, and the earliest of their due times."""


class MessageTable(Protocol):
    """What producers sent and nobody has accepted yet, oldest first; and what could not be accepted."""

    def holds(self, message_id: str) -> bool: ...
    def add(self, message: Message) -> None: ...
    def first(self, n: int) -> list[Message]: ...
    def remove(self, message: Message) -> None: ...
    def count(self) -> int: ...
    def count_dead(self) -> int: ...
    def bury(self, letter: DeadLetter) -> None:
        """Keep a dead letter under an id of its own, which is not its to choose."""

    def dead(self, limit: int, after: str) -> list[DeadLetter]:
        """Dead letters, oldest first, behind the one of that id."""

    def dead_letter(self, letter_id: str) -> DeadLetter | None: ...
    def save_dead(self, letter: DeadLetter) -> None: ...
    def drop_dead(self, letter_id: str) -> None: ...
    def record(self, deed: Deed) -> None: ...
    def deeds(self, letter_id: str) -> list[Deed]:
        """What was done with a dead letter, oldest first."""

    def forget_dead(self, older_than_ms: int) -> None: ...


class TaskTable(Protocol):
    def load(self, task_id: str) -> Task | None: ...
    def add(self, task: Task) -> None: ...
    def save(self, task: Task) -> None: ...
    def inbox(self, actor: str, limit: int, after: str) -> list[tuple[str, Task]]:
        """Open tasks, oldest first, each with the cursor behind it."""


class ShelfTable(Protocol):
    """Definitions and processes: no part of the protocol, in the same store."""

    def put_closure(self, closure: str, document: bytes, at_ms: int) -> None:
        """Keep a closure that is used at that time."""

    def use_closure(self, closure: str, at_ms: int) -> None:
        """Note that a closure was used, if it is there. A use may be noted as half of ``SPARED_MS`` earlier."""

    def closure(self, closure: str) -> bytes | None: ...
    def forget_closures(self, older_than_ms: int, limit: int) -> int:
        """Drop so many closures that were used last before that time and that no version, run or promised child has;
        answers how many there were."""

    def put_flow(self, version: FlowVersion) -> None: ...
    def flow(self, flow_id: str, version: str) -> FlowVersion | None: ...
    def versions(self, flow_id: str) -> list[FlowVersion]: ...
    def flows(self) -> list[FlowVersion]: ...
    def add_process(self, process: Process) -> int:
        """Answers the number of the row, never given twice."""

    def renew_process(self, process: Process) -> bool:
        """Replace what a process said before; false when there is no row of it."""

    def drop_process(self, holder: str) -> None: ...
    def processes(self) -> list[tuple[int, Process]]: ...


class Rows(Protocol):
    """One transaction. ``now`` is the store's time in it, ms since 1970."""

    now: int
    limits: Limits

    @property
    def runs(self) -> RunTable: ...
    @property
    def record(self) -> RecordTable: ...
    @property
    def waits(self) -> WaitTable: ...
    @property
    def events(self) -> EventTable: ...
    @property
    def ledger(self) -> LedgerTable: ...
    @property
    def messages(self) -> MessageTable: ...
    @property
    def tasks(self) -> TaskTable: ...
    @property
    def shelf(self) -> ShelfTable: ...
