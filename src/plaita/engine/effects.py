"""What goes into the machine and what comes out of one ``advance``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from plaita.base.json import Json
from plaita.base.record import record
from plaita.engine.failure import Failure

if TYPE_CHECKING:
    from plaita.engine.frames import Frame
    from plaita.engine.program import CNode


@record
class Returned:
    """A call came back; ``state`` holds the roots it set, without prefix."""

    id: str
    value: Json
    state: Mapping[str, Json] = field(default_factory=dict)


@record
class Raised:
    """A call failed."""

    id: str
    failure: Failure


@record
class Wake:
    """A wait was answered."""

    id: str
    data: Json


@dataclass(frozen=True, slots=True)
class Elapsed:
    """A wait is over as at its deadline, whether it has one or not."""

    id: str


@dataclass(frozen=True, slots=True)
class Offer:
    """An event is offered to a wait with a filter; the machine accepts or refuses it."""

    id: str
    event: int
    data: Json


@dataclass(frozen=True, slots=True)
class Given:
    """A wait was closed from outside with the whole result of its node."""

    id: str
    value: Json


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the run."""


Event: TypeAlias = Returned | Raised | Wake | Elapsed | Offer | Given | Cancel


@dataclass(slots=True)
class Call:
    """An effectful node to perform: ``node`` in the scope of ``frame``, with the times and dice it was issued under.

    ``key`` is the idempotency key without the incarnation; it stays over retries and restarts.
    ``fingerprint`` identifies the arguments it was first issued with.
    """

    id: str
    node: CNode
    frame: Frame
    attempt: int
    key: str
    issued_ms: int
    dice: float
    deadline_ms: int | None
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class WaitSpec:
    """What a waiting node waits for. ``pending`` is the documented node state while it waits.

    ``deadline_ms`` is absolute. ``matches`` of the node judges events when ``by_filter`` is set. ``task`` describes
    a human task (title, content, approvers, strategy, form, allow_comments, require_comments).
    """

    kind: Literal["hand", "event"]
    pending: dict[str, Json]
    event_type: str = ""
    key: str | None = None
    by_filter: bool = False
    reuse: bool = False
    deadline_ms: int | None = None
    task: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A wait to arm."""

    id: str
    node_id: str
    address: str
    spec: WaitSpec
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class Closed:
    """A wait to close, and why."""

    id: str
    why: Literal["read", "event", "timeout", "cut"]
    event: int = 0


@dataclass(frozen=True, slots=True)
class Detached:
    """A branch nobody joins: a run of its own that sees the scope as it was when its node began.

    ``key`` names it within the run, the same after a crash. The run starts under ``Conditions(entry=entry)`` with
    ``document`` as its input.
    """

    key: str
    entry: str
    document: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Done:
    output: Json


@dataclass(frozen=True, slots=True)
class Failed:
    failure: Failure


@dataclass(slots=True)
class Effects:
    """The outcome of one ``advance``. ``more``: fuel ran out, advance again. ``drops``: calls to abandon.

    ``limits`` names the ``while`` nodes that their round limit stopped.
    """

    calls: dict[str, Call] = field(default_factory=dict)
    drops: list[str] = field(default_factory=list)
    opened: dict[str, Opened] = field(default_factory=dict)
    closed: list[Closed] = field(default_factory=list)
    detached: list[Detached] = field(default_factory=list)
    retries: list[tuple[str, int, Failure]] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    ended: Done | Failed | None = None
    more: bool = False
    fired: bool = False
