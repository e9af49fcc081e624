"""What a process says of itself, as JSON bytes."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Final

from plaita.base.json import decode, encode
from plaita.ports.processes import Facts, Process
from plaita.ports.values import RunId

_KNOWN: Final = frozenset(one.name for one in fields(Facts))


def facts_bytes(facts: Facts) -> bytes:
    return encode({**asdict(facts), "setup": dict(facts.setup)})


def facts_of(data: bytes | str) -> Facts:
    """What this release does not know is left out; what the writer did not know is empty."""
    return Facts(**{name: value for name, value in decode(data).items() if name in _KNOWN})


def process_bytes(process: Process) -> bytes:
    return encode(
        [
            process.holder, process.pid, list(process.queues), process.only, list(process.imports), process.started_ms,
            facts_bytes(process.facts).decode(),
        ]
    )  # fmt: skip


def process_of(data: bytes) -> Process:
    holder, pid, queues, only, imports, started_ms, *more = decode(data)
    facts = facts_of(more[0]) if more else Facts()
    only = None if only is None else RunId(only)
    return Process(holder, pid, tuple(queues), only, tuple(imports), started_ms, facts)
