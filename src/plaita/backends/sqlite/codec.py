"""Values that are stored as text or JSON in one column."""

from __future__ import annotations

from typing import Any, Final

from plaita.backends.rows import RunRow, StartRow
from plaita.base.json import decode, encode
from plaita.ports.runs import Submission
from plaita.ports.values import Parent, RunId


def to_list(items: tuple[str, ...]) -> str:
    """A list of texts in one column; the empty one is the empty text."""
    return encode(list(items)).decode() if items else ""


def from_list(text: str) -> tuple[str, ...]:
    return tuple(decode(text)) if text else ()


def start_row(rid: int, row: StartRow) -> tuple[Any, ...]:
    """The columns of ``starts``."""
    s = row.start
    parent = (s.parent.run_id, s.parent.incarnation, s.parent.wait_id) if s.parent is not None else (None, None, None)
    return (
        rid, s.digest, s.flow_id, s.closure, s.flow_version, s.entry, s.business_key, to_list(s.tags), s.not_before_ms,
        *parent, to_list(s.imports), row.submitted_ms, s.input,
    )  # fmt: skip


def start_of(run: RunRow, row: tuple[Any, ...]) -> StartRow:
    """``start_row`` backwards; what the header holds comes from there."""
    (_, digest, flow_id, closure, version, entry, business_key, tags, not_before, parent_run, parent_incarnation,
     parent_wait, imports, submitted, data) = row  # fmt: skip
    parent = None if parent_run is None else Parent(parent_run, parent_incarnation, parent_wait)
    start = Submission(
        run.run_id, digest, data, flow_id, closure, version, entry, run.tenant, business_key, from_list(tags),
        not_before, run.priority, run.queue, parent, from_list(imports),
    )  # fmt: skip
    return StartRow(start, submitted)


CLOSURE_AT: Final = "$[4]"
"""Where ``submission_bytes`` has the closure, as SQLite names a place in a list."""


def submission_bytes(s: Submission) -> bytes:
    """A start that waits in the outbox; its parent is known from the entry."""
    return encode(
        [
            s.run_id, s.digest, s.input.decode(), s.flow_id, s.closure, s.flow_version, s.entry, s.tenant,
            s.business_key, list(s.tags), s.not_before_ms, s.priority, s.queue, list(s.imports),
        ]
    )  # fmt: skip


def submission_of(data: bytes) -> Submission:
    """``submission_bytes`` backwards."""
    (run_id, digest, text, flow_id, closure, version, entry, tenant, business_key, tags, not_before, priority, queue,
     imports) = decode(data)  # fmt: skip
    return Submission(
        RunId(run_id), digest, text.encode(), flow_id, closure, version, entry, tenant, business_key, tuple(tags),
        not_before, priority, queue, None, tuple(imports),
    )  # fmt: skip
