"""The verbs that move a run. Semantics, step by step: ``docs/explain/protocol.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from plaita.base.record import record
from plaita.ports.tasks import TaskSpec
from plaita.ports.values import By, Close, Mail, Parent, RunId, Status, Token, WaitId


@record
class Submission:
    """A start. Two submissions of one id are the same when ``digest`` agrees (flow closure and input).

    ``input`` is JSON bytes; ``closure`` the hash of a stored definition closure; ``entry`` the graph inside it that
    runs (empty: the flow itself); times are ms since 1970; a larger ``priority`` goes first. ``imports`` are module
    paths the driver imports before it loads the closure.
    """

    run_id: RunId
    digest: str
    input: bytes
    flow_id: str
    closure: str
    flow_version: str = ""
    entry: str = ""
    tenant: str = "default"
    business_key: str = ""
    tags: tuple[str, ...] = ()
    not_before_ms: int | None = None
    priority: int = 0
    queue: str = "default"
    parent: Parent | None = None
    imports: tuple[str, ...] = ()


@record
class Submitted:
    run_id: RunId
    incarnation: str
    deduplicated: bool
    durability: str


@dataclass(frozen=True, slots=True)
class SubmitConflict:
    """The id exists with another payload."""

    run_id: RunId


@dataclass(frozen=True, slots=True)
class Tombstoned:
    """The id belonged to a deleted run."""

    run_id: RunId


@record
class Header:
    """What a holder needs of a claimed run besides its frames. ``reopened``: it ended in an error before, and no settle
    changed its frames since."""

    run_id: RunId
    incarnation: str
    seq: int
    flow_id: str
    flow_version: str
    closure: str
    entry: str
    input: bytes
    submitted_ms: int
    not_before_ms: int | None
    tries: int
    imports: tuple[str, ...]
    tenant: str
    queue: str
    reopened: bool = False


@record
class Claim:
    """A run this process may move. ``now_ms`` is the store's time of the answer, ``lease_ms`` how long it holds.
    ``takeover``: another process held it and was lost. ``frames`` where they came along; ``None``: ask for them."""

    header: Header
    token: Token
    mailbox: tuple[Mail, ...]
    cancel: bool
    now_ms: int
    lease_ms: int
    takeover: bool = False
    frames: Mapping[str, bytes] | None = field(default=None, compare=False)


@record
class Arm:
    """A wait to open. ``key`` ``None`` means uncorrelated; ``by_filter`` makes events candidates the machine judges.

    ``address`` names the wait for people (``l:0/c/w``), ``deadline_ms`` is shown to them; the timer itself is ``due``.
    ``wanted`` is what the data of an event must be, JSON for programs that look at who waits for what.
    """

    wait_id: WaitId
    kind: Literal["hand", "event", "child"]
    node_id: str
    address: str
    event_type: str = ""
    key: str | None = None
    by_filter: bool = False
    reuse: bool = False
    deadline_ms: int | None = None
    task: TaskSpec | None = None
    wanted: bytes = b""


@record
class Closing:
    """A wait to close by compare-and-set. ``read``: the answer in the mailbox; ``event``: the candidate ``event``."""

    wait_id: WaitId
    why: Close
    event: int = 0


@dataclass(frozen=True, slots=True)
class Spawn:
    """A child run to submit. With ``wait_id`` the parent is told of its end; without, it is detached.

    The wait is answered with ``{"run_id", "status", "output", "error"}``; besides the terminal states the status may
    be ``tombstoned`` or ``conflict``: the child could not be started.
    """

    submission: Submission
    wait_id: WaitId | None


@dataclass(frozen=True, slots=True)
class Keep:
    """The run stays claimed."""


@dataclass(frozen=True, slots=True)
class Park:
    """The run is given back. ``due_ms``: the earliest timer, ``None`` without one. ``retry_ms`` when in backoff."""

    due_ms: int | None
    retry_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """The run is parked until an operator or a capable process lifts it; nothing is due."""

    reason: str


@dataclass(frozen=True, slots=True)
class End:
    """The run ends. ``output`` and ``error`` are JSON bytes."""

    status: Literal["completed", "error", "cancelled"]
    output: bytes | None = None
    error: bytes | None = None


@dataclass(frozen=True, slots=True)
class HandBack:
    """A draining worker returns the run, due at once."""


Next: TypeAlias = Keep | Park | Block | End | HandBack


@record
class Step:
    """One settle. ``delta`` maps frame keys to JSON bytes, ``None`` removes a key. ``ack``: mailbox read up to here.

    ``digest`` covers everything else in the step: the same (token, seq) with another digest is a holder's mistake.
    ``history`` entries are JSON bytes, appended in order.
    """

    run_id: RunId
    token: Token
    seq: int
    digest: str
    delta: Mapping[str, bytes | None]
    next: Next
    closes: tuple[Closing, ...] = ()
    arms: tuple[Arm, ...] = ()
    spawns: tuple[Spawn, ...] = ()
    ack: int = 0
    progress: bool = False
    history: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Adoption:
    """The state of a run that began elsewhere: all its frame keys, its open waits, and what comes next."""

    frames: Mapping[str, bytes]
    next: Park | End
    arms: tuple[Arm, ...] = ()


@dataclass(frozen=True, slots=True)
class Adopted:
    """The run is there, in that state."""

    run_id: RunId
    incarnation: str


@record
class Settled:
    """Accepted. ``held`` says whether the run is still ours (a park with mail becomes a keep)."""

    seq: int
    held: bool
    cancel: bool
    mailbox: tuple[Mail, ...]
    now_ms: int


@record
class Dup:
    """The same bytes were accepted before; the values are those of now. Act exactly as on ``Settled``."""

    seq: int
    held: bool
    cancel: bool
    mailbox: tuple[Mail, ...]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Stale:
    """Refused: not the holder, or not the next sequence number. What the store has."""

    token: Token | None
    seq: int | None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The same (token, seq) came with other bytes."""

    seq: int


@dataclass(frozen=True, slots=True)
class WaitConflict:
    """A wait of the step was closed or answered by somebody else first; nothing was written."""

    wait_id: WaitId


SettleAnswer: TypeAlias = Settled | Dup | Stale | Mismatch | WaitConflict


@dataclass(frozen=True, slots=True)
class Renewed:
    cancel: bool
    mailbox: tuple[Mail, ...]
    now_ms: int
    lease_ms: int


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease belongs to somebody else, or the run is over. ``seq``: what a renewal found stored of the same
    incarnation."""

    seq: int | None = None


@dataclass(frozen=True, slots=True)
class Woken:
    run_id: RunId


@dataclass(frozen=True, slots=True)
class AlreadyResolved:
    by: By


@dataclass(frozen=True, slots=True)
class NoSuchWait:
    wait_id: WaitId


WakeAnswer: TypeAlias = Woken | AlreadyResolved | NoSuchWait


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Terminal at once."""


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """A holder is told; its next settle ends the run ``cancelled``."""


@dataclass(frozen=True, slots=True)
class AlreadyTerminal:
    status: Status


@dataclass(frozen=True, slots=True)
class NoRun:
    run_id: RunId


@dataclass(frozen=True, slots=True)
class Deleted:
    run_id: RunId


@dataclass(frozen=True, slots=True)
class NotTerminal:
    status: Status


@dataclass(frozen=True, slots=True)
class Reopened:
    run_id: RunId


@dataclass(frozen=True, slots=True)
class NotRetryable:
    reason: str


class RunStore(Protocol):
    """One method is one atomic step. Expected outcomes are return values; ``Unavailable`` means: outcome unknown."""

    async def submit(self, start: Submission, document: bytes | None = None) -> Submitted | SubmitConflict | Tombstoned:
        """Create a ``queued`` run, due at ``not_before_ms`` or now, or queued for a slot.

        ``document`` is the definition whose hash ``start`` names; no run is made without it being stored. ``None``: it
        is there already.
        """

    async def adopt(self, start: Submission, state: Adoption) -> Adopted | SubmitConflict | Tombstoned:
        """Create a run in a state that somebody else kept. Any run with that id is a ``SubmitConflict``."""

    async def claim(
        self,
        nonce: str,
        n: int,
        *,
        queues: Sequence[str] = ("default",),
        lacks: frozenset[str] = frozenset(),
        only: RunId | None = None,
        alone: bool = True,
    ) -> list[Claim]:
        """Take up to ``n`` due runs that nobody holds, by priority, then due time.

        ``lacks``: closure hashes this process failed to load; such runs are set back one second. ``only``: this run
        and its children, nothing else. ``alone``: this process holds nothing, so a run in its second fruitless claim
        may be handed to it (and then nothing beside it). The same ``nonce`` again answers what it already holds.
        """

    async def frames(self, run_id: RunId) -> dict[str, bytes]:
        """All frame keys of a run."""

    async def reload(self, run_id: RunId, token: Token) -> Claim | Lost:
        """The header under a claim one already has; used after ``WaitConflict``."""

    async def settle(self, step: Step) -> SettleAnswer:
        """The only write of a holder."""

    async def renew(self, leases: Sequence[tuple[RunId, Token]]) -> list[Renewed | Lost]:
        """Extend leases; one answer each, in order. Revives an expired lease that nobody took."""

    async def release(self, holder: str) -> int:
        """A process is known to be dead: its leases end now, the claims stay counted. Answers how many."""

    async def wake(self, run_id: RunId, wait_id: WaitId, data: bytes, actor: str = "") -> WakeAnswer:
        """Answer an open wait; ``data`` is JSON bytes."""

    async def cancel(self, run_id: RunId, actor: str = "") -> Cancelled | CancelRequested | AlreadyTerminal | NoRun:
        """End a run; a live holder is asked, everybody else is not."""

    async def delete(self, run_id: RunId) -> Deleted | NotTerminal | NoRun:
        """Remove a terminal run and leave a tombstone."""

    async def reopen(self, run_id: RunId) -> Reopened | NotRetryable | NoRun:
        """Make a run that ended in ``error`` due again at the failed node."""

    async def carry_on(self, entries: int = 1) -> int:
        """Do what steps promised to do to other runs, without claiming: at most so many entries, where a chunk of a
        fan-out is one. How many there were; every claim does it too."""

    async def prune(self, older_than_ms: int) -> int:
        """Remove terminal runs that ended before that time, and closures that nobody needs; answers how many runs."""
