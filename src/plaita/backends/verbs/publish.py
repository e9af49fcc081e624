"""publish: an event gets its number and reaches the first waits; any claim carries the rest on."""

from __future__ import annotations

from dataclasses import replace

from plaita.backends.rows import EventRow, OutRow, Rows
from plaita.backends.verbs.match import match
from plaita.ports.events import Published


def publish(rows: Rows, event_id: str, event_type: str, key: str | None, data: bytes) -> Published:
    """Store an event once; a known id is answered as the first time."""
    known = rows.events.find(event_id)
    if known is not None:
        pending = rows.ledger.event_pending(known.number)
        return Published(event_id, known.number, known.matched, known.woken, pending, duplicate=True)
    event = EventRow(rows.events.next(), event_id, event_type, key, data, rows.now)
    rows.events.put(event)
    cursor, matched, woken = fan_out(rows, event, 0)
    if cursor is not None:
        rows.ledger.push(OutRow(0, "event", event=event.number, cursor=cursor))
    if matched:
        rows.events.put(replace(event, matched=matched, woken=woken))
    return Published(event_id, event.number, matched, woken, cursor is not None)


def fan_out(rows: Rows, event: EventRow, cursor: int) -> tuple[int | None, int, int]:
    """One chunk: the next cursor (``None`` when nothing is left), how many waits it reached, how many it resolved.

    A wait may be given an older unconsumed event: order is kept. Waits armed after the event look for themselves.
    """
    chunk = rows.limits.chunk
    listening = rows.waits.listening(event, cursor, chunk)
    matched = woken = 0
    for run, wait_id, _ in listening:
        found = match(rows, run, rows.waits.of(run)[wait_id])
        matched += found is not None
        woken += found == "resolved"
    return (listening[-1][2] if len(listening) == chunk else None), matched, woken
