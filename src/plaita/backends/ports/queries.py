"""``QueryStore`` over a gate."""

from __future__ import annotations

from plaita.backends.audit import audit
from plaita.backends.gate import Gate
from plaita.backends.rows import Rows, RunFilter, RunRow, WaitRow
from plaita.ports.queries import Counts, Entry, RunView, WaitView
from plaita.ports.values import STATUSES, RunId


class GatedQueries:
    """What operators look at."""

    _gate: Gate

    async def run(self, run_id: RunId) -> RunView | None:
        def question(rows: Rows) -> RunView | None:
            run = rows.runs.load(run_id)
            return None if run is None else view(rows, run)

        return self._gate.read(question)

    async def input(self, run_id: RunId) -> bytes | None:
        def question(rows: Rows) -> bytes | None:
            run = rows.runs.load(run_id)
            return None if run is None else rows.record.start(run).start.input

        return self._gate.read(question)

    async def runs(
        self, *, status: str = "", flow_id: str = "", business_key: str = "", tag: str = "", tenant: str = "",
        limit: int = 100, cursor: str = "", oldest_first: bool = False,
    ) -> tuple[list[RunView], str]:  # fmt: skip
        beyond = int(cursor) if cursor else None
        wanted = RunFilter(status, flow_id, business_key, tag, tenant, limit + 1, beyond, oldest_first)

        def question(rows: Rows) -> tuple[list[RunView], str]:
            found = rows.runs.page(wanted)
            following = str(found[limit - 1].rid) if len(found) > limit else ""
            return [view(rows, run) for run in found[:limit]], following

        return self._gate.read(question)

    async def waits(self, run_id: RunId, *, open_only: bool = True) -> list[WaitView]:
        def question(rows: Rows) -> list[WaitView]:
            run = rows.runs.load(run_id)
            waits = [] if run is None else list(rows.waits.of(run).values())
            return [wait_view(w) for w in waits if not open_only or w.state == "open"]

        return self._gate.read(question)

    async def history(self, run_id: RunId, *, after: int = 0, limit: int = 1000) -> list[Entry]:
        def question(rows: Rows) -> list[Entry]:
            run = rows.runs.load(run_id)
            return [] if run is None else rows.record.history(run, after, limit)

        return self._gate.read(question)

    async def counts(self) -> Counts:
        return self._gate.read(counts)

    async def now_ms(self) -> int:
        return self._gate.read(lambda rows: rows.now)

    async def audit(self) -> list[str]:
        return self._gate.read(audit)


def counts(rows: Rows) -> Counts:
    """Numbers of one moment. An inbox whose messages are accepted in the step that takes them has none pending."""
    counted = rows.ledger.by_status()
    due, since = rows.ledger.unheld()
    waiting = next((message.at_ms for message in rows.messages.first(1)), None)
    by_status = {status: counted.get(status, 0) for status in STATUSES}
    return Counts(by_status, due, since, rows.messages.count(), 0, waiting, rows.messages.count_dead())


def view(rows: Rows, run: RunRow) -> RunView:
    """A run as people see it."""
    row, outcome = rows.record.start(run), rows.record.outcome(run)
    s = row.start
    return RunView(
        run.run_id, run.incarnation, s.flow_id, s.flow_version, s.closure, run.status, run.queue, run.tenant,
        s.business_key, s.tags, run.priority, s.imports, row.submitted_ms, run.ended, s.not_before_ms, run.due,
        run.retry, run.blocked_reason, outcome.output, outcome.error, run.token, run.seq, run.tries, run.lost,
        bool(run.cancel), bool(run.slot), s.parent.run_id if s.parent is not None else None,
    )  # fmt: skip


def wait_view(wait: WaitRow) -> WaitView:
    """A wait as people see it."""
    return WaitView(
        wait.wait_id, wait.kind, wait.node_id, wait.address, wait.event_type, wait.key, wait.state, wait.since,
        wait.deadline, wait.by, wait.task_id,
    )  # fmt: skip
