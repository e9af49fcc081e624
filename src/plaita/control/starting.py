"""Publishing definitions and starting executions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from plaita.base.clock import new_id
from plaita.base.errors import Conflict, FlowLoadError
from plaita.base.ids import check_id, check_list, check_queue, check_texts, check_whole, start_digest
from plaita.base.json import Json, admit, encode
from plaita.control.definitions import find, published
from plaita.core.closure import close_over, open_closure
from plaita.core.flow import Flow
from plaita.core.imports import import_all
from plaita.core.published import complete, name_of, publish
from plaita.engine.types import Property, conform
from plaita.ports.backend import Backend
from plaita.ports.runs import Submission, SubmitConflict, Submitted, Tombstoned
from plaita.ports.values import RunId

__all__ = ["StartOptions", "check_input", "declared_input", "publish", "start_flow", "start_published"]

PRIORITY_MAX = 1_000_000_000
MOMENT_MAX_MS = 2 * 10**15
"""Further than a duration from now reaches."""


@dataclass(frozen=True, slots=True)
class StartOptions:
    """How to start: ``execution_id`` makes the start idempotent, times are ms since 1970. Raises ``InputError``."""

    execution_id: str = ""
    business_key: str = ""
    tags: tuple[str, ...] = ()
    not_before_ms: int | None = None
    priority: int = 0
    queue: str = "default"
    tenant: str = "default"
    imports: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """What a caller gives in Python is checked here, before a store is asked for anything."""
        check_id(self.execution_id, "execution_id")
        check_queue(self.queue, "queue")
        check_texts(business_key=self.business_key, tenant=self.tenant)
        for name in ("tags", "imports"):
            object.__setattr__(self, name, check_list(getattr(self, name), name))
        if self.not_before_ms is not None:
            check_whole(self.not_before_ms, "not_before_ms", 0, MOMENT_MAX_MS)
        check_whole(self.priority, "priority", -PRIORITY_MAX, PRIORITY_MAX)


async def start_flow(
    store: Backend, flow: Flow, value: Json, options: StartOptions, fallback: str = "flow"
) -> Submitted:
    """Start a definition as it is, without publishing it.

    Raises ``InputError`` when the input violates the flow's type, ``Conflict`` when the id is taken by another start.
    """
    value = check_input(flow, value)
    await complete(store, flow)
    closure, document = close_over(flow)
    definition = _Definition(name_of(flow, fallback), str(flow.version or ""), closure, document)
    return await _submit(store, definition, value, options)


async def start_published(
    store: Backend, flow_id: str, value: Json, options: StartOptions, version: str = ""
) -> Submitted:
    """Start a published flow. Raises ``NotFound`` for an unknown flow or version."""
    found, document = await find(store, flow_id, version)
    import_all(options.imports)
    try:
        value = check_input(open_closure(document), value)
    except FlowLoadError:
        # A definition this process cannot load is checked by the worker that can.
        value = admit(value)
    return await _submit(store, _Definition(found.flow_id, found.version, found.closure), value, options)


async def declared_input(store: Backend, flow_id: str, version: str, imports: Sequence[str]) -> Property | None:
    """The input type of a published flow; ``None`` when undeclared or not loadable here. Raises ``NotFound``."""
    try:
        flow = await published(store, flow_id, version, imports)
    except FlowLoadError:
        return None
    found: Property | None = flow.declared_input()
    return found


def check_input(flow: Flow, value: Json) -> Json:
    """The input with defaults applied. Raises ``InputError`` with the path."""
    declared = flow.declared_input()
    value = admit(value)
    return value if declared is None else conform(declared, value, "$")


@dataclass(frozen=True, slots=True)
class _Definition:
    """What is started. ``document``: its text, where the store may not have it."""

    flow_id: str
    version: str
    closure: str
    document: bytes | None = None


async def _submit(store: Backend, definition: _Definition, value: Json, options: StartOptions) -> Submitted:
    data = encode(value)
    start = Submission(
        RunId(options.execution_id or new_id()),
        start_digest(definition.closure, data),
        data,
        definition.flow_id,
        definition.closure,
        definition.version,
        "",
        options.tenant,
        options.business_key,
        options.tags,
        options.not_before_ms,
        options.priority,
        options.queue,
        None,
        options.imports,
    )
    answer = await store.submit(start, definition.document)
    match answer:
        case Submitted():
            return answer
        case SubmitConflict(run_id):
            raise Conflict(f"execution {run_id!r} exists with another flow or input", "choose another id")
        case Tombstoned(run_id):
            raise Conflict(f"execution {run_id!r} existed and was deleted; its id stays taken", "choose another id")
