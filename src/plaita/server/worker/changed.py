"""Whether the definition of a flow was published anew, otherwise, since an execution began with it."""

from __future__ import annotations

from typing import Final, Literal

from plaita.base.json import encode
from plaita.core.closure import definition_of
from plaita.core.fingerprint import FLOW_HASH_ALGO, classify_flow_hash_change, compute_flow_definition_hash
from plaita.engine.failure import FLOW_CODE, Failure
from plaita.ports.flows import FlowStore
from plaita.ports.runs import Header

DefinitionChange = Literal["pinned", "refuse"]
UNCHANGED: Final = b""


async def refusal_of(store: FlowStore, header: Header) -> bytes:
    """The error that ends the execution, with the documented members, or ``UNCHANGED``.

    What is published under its flow id and version is compared with what it began with; where nothing is, or either
    text is gone, nothing is refused. Raises ``Unavailable``.
    """
    found = await store.flow(header.flow_id, header.flow_version) if header.flow_version else None
    if found is None or found.closure == header.closure:
        return UNCHANGED
    begun, now = await store.closure(header.closure), await store.closure(found.closure)
    if begun is None or now is None:
        return UNCHANGED
    stored, current = (compute_flow_definition_hash(definition_of(document)) for document in (begun, now))
    verdict = classify_flow_hash_change(
        stored_hash=stored,
        current_hash=current,
        stored_algo=FLOW_HASH_ALGO,
        current_algo=FLOW_HASH_ALGO,
        allow_change=False,
    )
    return _error(header, stored, current) if verdict == "mismatch" else UNCHANGED


def _error(header: Header, stored: str, current: str) -> bytes:
    message = f"flow {header.flow_id!r} version {header.flow_version!r} was published anew with another definition"
    failure = Failure("conflict", FLOW_CODE, message, "flow_hash_mismatch")
    return encode({
        **failure.as_json(),
        "stored_flow_hash": stored,
        "current_flow_hash": current,
        "stored_flow_hash_algo": FLOW_HASH_ALGO,
        "current_flow_hash_algo": FLOW_HASH_ALGO,
        "upgrade_suspected": False,
        "hint": "publish the earlier definition again, or set PLAITA_DEFINITION_CHANGE=pinned; then retry it",
    })  # fmt: skip
