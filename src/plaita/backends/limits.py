"""Numbers and names that a store is opened with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plaita.base.duration import DAY_MS
from plaita.policy.lease import DEFAULT_LEASE, LeasePlan

SPARED_MS: Final = 3_600_000
"""A closure that nobody needs goes when it was unused for so long before the time that ``prune`` is given: between
storing it and what it is stored for lies a moment. A store may note a use as half of that earlier."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The stream of producers on Redis by its documented names; an empty key is the one of the store's prefix.

    ``group`` reads it, from ``begin`` on when the group is new: ``0`` (all), ``$`` (what comes) or the id of an entry.
    """

    inbox: str = ""
    dead: str = ""
    group: str = "plaita-workers"
    begin: str = "0"

    def keys(self, prefix: str = "plaita") -> dict[str, str]:
        """The keys that follow from it, by their names in the table of keys."""
        inbox = self.inbox or f"{prefix}:flow:queue"
        return {"inbox": inbox, "offered": f"{inbox}:offered", "dlq": self.dead or f"{inbox}:dlq"}


@dataclass(frozen=True, slots=True)
class Fleet:
    """Who puts messages into a stream that several fleets share, and which of them are carried out here.

    ``family``, ``generation`` and ``budget`` are the ids that messages sent from here carry; one with another family is
    left to others. Empty: messages carry none, and those of every family are carried out. ``epoch`` is the one this
    deployment was made for: where tenants are of another one, it starts nothing for them. Empty: it is not compared.
    """

    family: str = ""
    generation: str = ""
    budget: str = ""
    epoch: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of the protocol. ``cap`` is the running runs of one tenant, ``None`` for no bound.

    ``start_every``: of so many promotions one takes the oldest start, so that resumes cannot starve starts (0: never).
    ``message_age_ms``: a producer's message older than that starts, answers and cancels nothing but a live run
    (0: none is too old).
    ``chunk``: how many waits an event reaches in one step.
    ``lock_wait_ms``: how long a verb waits while another process writes.

    On Redis, ``chunk_deferred``: how many waits it reaches in a later step that is no claim, where only ``chunk`` are
    decided at once; ``history_max``: how many entries of its history a run keeps, the newest ones; ``mirrored``:
    whether runs that start are shown in the documented keys; ``row_ttl_ms``: how long the documented row of an ended
    run is kept; ``claim_min_idle_ms``: when a message is taken from a process that took it and never came to an end;
    ``deliveries_max``: so many processes may try that; ``dlq_max``: how many entries the documented stream of dead
    letters has; ``confirm_ms``: how long what comes from outside waits for a replica (0: not); ``streams``: what the
    documented streams are called; ``fleet``: what messages are stamped with and compared with.
    """

    lease: LeasePlan = DEFAULT_LEASE
    tries_max: int = 5
    lost_max: int = 100
    cap: int | None = None
    chunk: int = 100
    chunk_deferred: int = 200
    outbox_per_claim: int = 16
    start_every: int = 8
    failures_max: int = 12
    wakeups_max: int = 2
    tombstone_ms: int = 30 * DAY_MS
    generation_ms: int = 90 * DAY_MS
    row_ttl_ms: int = 30 * DAY_MS
    message_age_ms: int = 30 * DAY_MS
    message_bytes_max: int = 16_000_000
    claim_min_idle_ms: int = 60_000
    deliveries_max: int = 5
    dlq_max: int = 1_000
    history_max: int = 10_000
    mirrored: bool = True
    confirm_ms: int = 0
    streams: Streams = Streams()
    fleet: Fleet = Fleet()
    lock_wait_ms: int = 5_000
