"""Flows in a store: publishing one, and finding those that it refers to."""

from __future__ import annotations

from plaita.base.errors import InputError
from plaita.base.json import Json
from plaita.core.closure import close_over, definition_of
from plaita.core.flow import Flow
from plaita.core.references import at_hand, either_of
from plaita.ports.flows import FlowStore, FlowVersion


def name_of(flow: Flow, fallback: str) -> str:
    """What a flow is called: its id, or the name of its file."""
    return flow.flow_id or fallback


async def publish(store: FlowStore, flow: Flow, fallback: str = "") -> FlowVersion:
    """Store a definition as the latest version of its id. Raises ``InputError`` when the flow has no id."""
    flow_id = name_of(flow, fallback)
    if not flow_id:
        raise InputError("$.flow_id", "a published flow needs an id")
    await complete(store, flow)
    closure, document = close_over(flow)
    await store.put_closure(closure, document)
    return await store.publish_flow(flow_id, flow.version or closure[:8], closure)


async def complete(store: FlowStore, flow: Flow) -> None:
    """Look among the published flows for those it refers to and that were not found beside it."""
    asked: dict[tuple[str, str], Json] = {}
    given = flow._resolver
    while missing := [wanted for wanted in flow.missing if wanted not in asked]:
        for flow_id, version in missing:
            found = await store.flow(flow_id, version)
            document = None if found is None else await store.closure(found.closure)
            asked[flow_id, version] = None if document is None else definition_of(document)
        known = at_hand(asked)
        flow.look_up(known if given is None else either_of(given, known))
