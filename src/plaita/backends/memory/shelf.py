"""Tasks, definitions and processes in memory."""

from __future__ import annotations

from plaita.backends.memory.tables import Journal, Tables
from plaita.ports.flows import FlowVersion
from plaita.ports.processes import Process
from plaita.ports.tasks import Task


class MemoryTasks:
    """Human tasks in the order they were opened."""

    def __init__(self, tables: Tables, journal: Journal) -> None:
        self._tables, self._journal = tables, journal

    def load(self, task_id: str) -> Task | None:
        return self._tables.tasks.get(task_id)

    def add(self, task: Task) -> None:
        number = self._journal.count(self._tables.counters, "task")
        self._journal.put(self._tables.task_numbers, task.task_id, number)
        self._journal.put(self._tables.tasks, task.task_id, task)

    def save(self, task: Task) -> None:
        self._journal.put(self._tables.tasks, task.task_id, task)

    def inbox(self, actor: str, limit: int, after: str) -> list[tuple[str, Task]]:
        numbers = self._tables.task_numbers
        found = [
            (str(numbers[task.task_id]), task)
            for task in self._tables.tasks.values()
            if numbers[task.task_id] > int(after or 0)
            and task.status == "open"
            and (not actor or not task.spec.approvers or actor in task.spec.approvers)
        ]
        return found[:limit]


class MemoryShelf:
    """Definitions and processes."""

    def __init__(self, tables: Tables, journal: Journal) -> None:
        self._tables, self._journal = tables, journal

    def put_closure(self, closure: str, document: bytes, at_ms: int) -> None:
        self._journal.put(self._tables.closures, closure, document)
        self.use_closure(closure, at_ms)

    def use_closure(self, closure: str, at_ms: int) -> None:
        if closure in self._tables.closures:
            self._journal.put(self._tables.uses, closure, max(at_ms, self._tables.uses.get(closure, 0)))

    def forget_closures(self, older_than_ms: int, limit: int) -> int:
        kept = {
            *(version.closure for version in self._tables.flows.values()),
            *(run.start.start.closure for run in self._tables.belongings.values()),
            *(entry.submission.closure for entry in self._tables.outbox.values() if entry.submission is not None),
        }
        unused = [closure for closure, at_ms in self._tables.uses.items() if at_ms < older_than_ms]
        spare = [closure for closure in unused if closure not in kept][:limit]
        for closure in spare:
            self._journal.cut(self._tables.closures, closure)
            self._journal.cut(self._tables.uses, closure)
        return len(spare)

    def closure(self, closure: str) -> bytes | None:
        return self._tables.closures.get(closure)

    def put_flow(self, version: FlowVersion) -> None:
        self._journal.cut(self._tables.flows, (version.flow_id, version.version))
        self._journal.put(self._tables.flows, (version.flow_id, version.version), version)

    def flow(self, flow_id: str, version: str) -> FlowVersion | None:
        if version:
            return self._tables.flows.get((flow_id, version))
        return next((f for f in reversed(self._tables.flows.values()) if f.flow_id == flow_id), None)

    def versions(self, flow_id: str) -> list[FlowVersion]:
        return [f for f in reversed(self._tables.flows.values()) if f.flow_id == flow_id]

    def flows(self) -> list[FlowVersion]:
        latest = {f.flow_id: f for f in self._tables.flows.values()}
        return [latest[flow_id] for flow_id in sorted(latest)]

    def add_process(self, process: Process) -> int:
        number = self._journal.count(self._tables.counters, "process")
        self._journal.put(self._tables.processes, number, process)
        return number

    def renew_process(self, process: Process) -> bool:
        for number, before in list(self._tables.processes.items()):
            if before.holder == process.holder:
                self._journal.put(self._tables.processes, number, process)
                return True
        return False

    def drop_process(self, holder: str) -> None:
        for number, process in list(self._tables.processes.items()):
            if process.holder == holder:
                self._journal.cut(self._tables.processes, number)

    def processes(self) -> list[tuple[int, Process]]:
        return list(self._tables.processes.items())
