"""Taking over an execution that began elsewhere: whether it can be, and how a store begins it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from plaita.base.errors import FlowLoadError, InputError, NotFound, NotSupported, ResumeError
from plaita.base.ids import start_digest
from plaita.base.json import Json, encode, parse
from plaita.core.closure import close_over, open_closure
from plaita.core.fingerprint import FLOW_HASH_ALGO, classify_flow_hash_change, compute_flow_definition_hash
from plaita.core.flow import Flow
from plaita.core.published import complete
from plaita.core.saved import Kept, kept_run
from plaita.engine.program import Program
from plaita.ports.flows import FlowStore, FlowVersion
from plaita.ports.published import PublishedFlows, PublishedRows
from plaita.ports.queries import RunView
from plaita.ports.runs import Adopted, Adoption, End, Park, Submission, SubmitConflict, Tombstoned
from plaita.ports.values import RunId

Verdict = Literal[
    "take_over", "taken_over", "ours", "ended", "running", "no_definition", "other_definition", "unreadable", "refused"
]


class Store(FlowStore, Protocol):
    """What a store offers to whoever brings an execution."""

    async def now_ms(self) -> int: ...

    async def run(self, run_id: RunId) -> RunView | None: ...

    async def adopt(self, start: Submission, state: Adoption) -> Adopted | SubmitConflict | Tombstoned: ...


@dataclass(frozen=True, slots=True)
class Brought:
    """An execution as another place kept it. ``context`` is the documented checkpoint."""

    execution_id: str
    flow_id: str
    version: str
    status: str
    context: Mapping[str, Any]
    tenant: str = "default"
    error: Mapping[str, Any] | None = None
    output: Json = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What is done with an execution, and why not."""

    execution_id: str
    tenant: str
    flow_id: str
    status: str
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of the published system as a closure, and its documented fingerprint."""

    found: FlowVersion
    document: bytes
    fingerprint: str


async def adoption_of(
    store: Store, brought: Brought, found: FlowVersion | None, document: bytes | None = None
) -> tuple[Submission, Adoption]:
    """How the execution is submitted, and the state it is put in; ``found`` is its definition, ``document`` that of the
    store when it is not given.

    Raises ``NotFound`` without one, and ``InputError`` for a context that makes no sense.
    """
    closure = "" if found is None else found.closure
    given = encode(brought.context.get("$INPUT"))
    start = Submission(
        RunId(brought.execution_id),
        start_digest(closure, given),
        given,
        brought.flow_id,
        closure,
        "" if found is None else found.version,
        tenant=brought.tenant,
    )
    if brought.status == "completed":
        return start, Adoption({}, End("completed", output=encode(_output(brought))))
    if brought.status == "cancelled":
        return start, Adoption({}, End("cancelled"))
    if brought.status not in ("running", "suspended", "error"):
        raise InputError("status", f"{brought.status!r} is not a status that can be taken over")
    if found is None:
        what = f"flow {brought.flow_id!r}"
        raise NotFound(f"{what} of execution {brought.execution_id!r} is not published here", "publish it first")
    now_ms = await store.now_ms()
    program = await _program(store, found, document)
    return start, _under_way(brought, kept_run(program, brought.context, now_ms), now_ms)


def _under_way(brought: Brought, kept: Kept, now_ms: int) -> Adoption:
    if brought.status == "error":
        return Adoption(kept.frames, End("error", error=encode(_failure(brought.error or {}))))
    if brought.status == "suspended" and not kept.arms:
        raise InputError("status", "the state says suspended, but its context has no pending node")
    return Adoption(kept.frames, Park(kept.due_ms if kept.arms else now_ms), kept.arms)


async def _program(store: Store, found: FlowVersion, document: bytes | None) -> Program:
    document = document or await store.closure(found.closure)
    if document is None:
        raise NotFound(f"the definition of flow {found.flow_id!r} is missing in the store", "publish it again")
    return open_closure(document).program


def _output(brought: Brought) -> Json:
    last = brought.context.get("$LAST_NODE")
    return brought.output if brought.output is not None else (brought.context.get("$NODE") or {}).get(last)


def _failure(error: Mapping[str, Any]) -> dict[str, Json]:
    """The error in the shape that a store keeps."""
    node = error.get("failed_node")
    return {
        "kind": error.get("kind") or "node_error",
        "code": error.get("code", -500),
        "message": error.get("message") or "the execution failed elsewhere",
        "error_type": error.get("error_type") or "flow_error",
        "path": error.get("path") or ([] if node is None else [node]),
    }


async def definition_of_row(
    store: FlowStore, flows: PublishedFlows, tenant: str, flow_id: str, version: str
) -> Definition | None:
    """A definition of the published system, not stored here yet; ``None`` when there is none.

    Raises ``FlowLoadError``, ``InputError``.
    """
    text = await flows.flow_document(tenant, flow_id, version)
    if text is None and tenant != "default":
        text = await flows.flow_document("default", flow_id, version)
    if text is None:
        return None
    document = parse(text, f"flow {flow_id!r}")
    if not isinstance(document, dict):
        raise InputError(f"flow {flow_id!r}", "is no object")
    flow = Flow.model_validate(document)
    await complete(store, flow)
    closure, body = close_over(flow)
    return Definition(FlowVersion(flow_id, version, closure, 0), body, compute_flow_definition_hash(document))


async def judge(
    store: Store, rows: PublishedRows, tenant: str, execution_id: str, *, dry_run: bool = False
) -> Judged | None:
    """Take over an execution of the published system, or say why not; ``None``: there is no such row.

    One that has ended, or that a process there still holds, is left alone.
    """
    raw = await rows.row(tenant, execution_id)
    if raw is None:
        return None
    if await store.run(RunId(execution_id)) is not None:
        return Judged(execution_id, tenant, "", "", "ours")
    brought, row = None, dict[str, Any]()
    try:
        row = _object(parse(raw, "the row"), "the row")
        brought = _brought(row, tenant, execution_id)
        verdict, reason = await _bring(store, rows, brought, row, dry_run=dry_run)
    except FlowLoadError as e:
        verdict, reason = "no_definition", str(e.issues[0])
    except NotFound as e:
        verdict, reason = "no_definition", str(e)
    except (InputError, ResumeError, NotSupported) as e:
        verdict, reason = "unreadable", str(e)
    flow_id = str(row.get("flow_id") or "") if brought is None else brought.flow_id
    return Judged(execution_id, tenant, flow_id, str(row.get("status") or ""), verdict, reason)


async def _bring(
    store: Store, rows: PublishedRows, brought: Brought, row: Mapping[str, Any], *, dry_run: bool
) -> tuple[Verdict, str]:
    if brought.status in ("completed", "cancelled"):
        return "ended", "it has ended; its row stays as it is"
    holder = await rows.lease(brought.tenant, brought.execution_id)
    if holder:
        return "running", f"{holder} holds it; stop that worker, or wait for the end of its lease"
    definition = await definition_of_row(store, rows, brought.tenant, brought.flow_id, brought.version)
    if definition is None:
        raise NotFound(f"there is no flow {brought.flow_id!r} {brought.version}".rstrip())
    changed = _change(row, definition.fingerprint)
    if changed:
        return "other_definition", changed
    start, state = await adoption_of(store, brought, definition.found, definition.document)
    if dry_run:
        return "take_over", ""
    await store.put_closure(definition.found.closure, definition.document)
    answer = await store.adopt(start, state)
    if isinstance(answer, Adopted):
        return "taken_over", ""
    return "refused", "the id is taken" if isinstance(answer, SubmitConflict) else "the id belongs to a deleted one"


def _change(row: Mapping[str, Any], fingerprint: str) -> str:
    """Why the definition is not the one it began with; empty when it is."""
    verdict = classify_flow_hash_change(
        stored_hash=row.get("flow_hash"),
        current_hash=fingerprint,
        stored_algo=row.get("flow_hash_algo"),
        current_algo=FLOW_HASH_ALGO,
        allow_change=False,
    )
    return "the definition is not the one with which it began" if verdict == "mismatch" else ""


def _brought(row: Mapping[str, Any], tenant: str, execution_id: str) -> Brought:
    context = _object(row.get("context"), "context")
    flow_id = row.get("flow_id") or context.get("$FLOW_ID")
    if not isinstance(flow_id, str):
        raise InputError("flow_id", "the row names no flow")
    if row.get("execution_id") != execution_id:
        raise InputError("execution_id", f"the row is of {row.get('execution_id')!r}")
    if not context:
        raise InputError(
            "context", "is empty: it stopped before its first step, so nothing is lost by starting it anew"
        )
    return Brought(
        execution_id, flow_id, str(row.get("flow_version") or ""), str(row.get("status")), context,
        str(row.get("tenant_id") or tenant),
        row.get("error") if isinstance(row.get("error"), dict) else None,
    )  # fmt: skip


def _object(value: Json, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(what, "is no object")
    return value
