"""Events, subscriptions and what an event bus is. Subclass the abstract classes for a bus or a storage of one's own."""

from __future__ import annotations

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator

from plaita.base.clock import SystemClock
from plaita.base.errors import EventError
from plaita.base.ids import check_list
from plaita.base.json import Json, admit
from plaita.core.buses import ask
from plaita.engine.values import json_equal


def _now() -> float:
    return SystemClock().now_ms() / 1000


def _new_id() -> str:
    return str(uuid.uuid4())


class Event(BaseModel):
    """Something that happened. ``data`` is JSON, ``timestamp`` in seconds since 1970.

    ``correlation_id`` says whom it is for.
    """

    model_config = ConfigDict(extra="ignore", defer_build=True)

    event_id: str = Field(default_factory=_new_id)
    event_type: str
    data: dict[str, Any]
    timestamp: float = Field(default_factory=_now)
    source: str = ""
    correlation_id: str | None = None
    tenant_id: str | None = None

    @field_validator("event_type")
    @classmethod
    def _event_type(cls, value: str) -> str:
        return not_blank(value)

    @field_validator("data")
    @classmethod
    def _data_is_json(cls, value: dict[str, Any]) -> Any:
        return admit(value, "data")


def not_blank(event_type: str) -> str:
    """The event type. Raises ``ValueError`` when it is blank."""
    if not event_type.strip():
        raise ValueError("an event needs a type: text that is not blank")
    return event_type


EventHandler: TypeAlias = Callable[[Event], Any]
"""Told of an event; may be a coroutine function."""
Publishable: TypeAlias = Event | str | Mapping[str, Any]


class RetryPolicy(BaseModel):
    """How often a handler is tried: ``max_retries`` times in all, at least once; delays are in seconds."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    max_retries: int = 3
    initial_delay: float = Field(1.0, ge=0)
    backoff_factor: float = Field(2.0, ge=1)
    max_delay: float = Field(60.0, ge=0)

    def delay(self, attempt: int) -> float:
        """Seconds after the attempt with that number, the first being 1."""
        return float(min(self.initial_delay * self.backoff_factor ** (attempt - 1), self.max_delay))


class EventSubscription(BaseModel):
    """Who waits for what. ``timeout`` is in seconds, ``None`` for ever; ``created_at`` in seconds since 1970."""

    model_config = ConfigDict(extra="ignore", defer_build=True)

    subscription_id: str = Field(default_factory=_new_id)
    event_type: str
    filter_condition: dict[str, Any] | None = None
    correlation_id: str | None = None
    flow_id: str | None = None
    node_id: str | None = None
    created_at: float = Field(default_factory=_now)
    timeout: float | None = None
    tenant_id: str | None = None
    processed_events: set[str] = Field(default_factory=set)

    @field_validator("event_type")
    @classmethod
    def _event_type(cls, value: str) -> str:
        return not_blank(value)

    @field_validator("filter_condition")
    @classmethod
    def _filter_is_json(cls, value: Any) -> Any:
        return admit(value, "filter_condition")

    def matches_event(self, event: Event, context: Mapping[str, Any] | None = None) -> bool:
        """Is this the event? ``context`` is that of the waiting execution: its flow and last node must be ours."""
        at = context or {}
        return (
            event.event_type == self.event_type
            and self.correlation_id in (None, event.correlation_id)
            and _same(self.tenant_id, event.tenant_id)
            and _same(self.flow_id, at.get("$FLOW_ID"))
            and _same(self.node_id, at.get("$LAST_NODE"))
            and fits(event, self.filter_condition)
        )

    def is_event_processed(self, event_id: str) -> bool:
        """Was the event handled for this subscription?"""
        return event_id in self.processed_events

    def mark_event_processed(self, event_id: str) -> None:
        """It was."""
        self.processed_events.add(event_id)


def _same(own: str | None, other: Any) -> bool:
    return own is None or other is None or own == other


def fits(event: Event, filter_condition: Mapping[str, Any] | None) -> bool:
    """Has the event those values? A dotted name walks its data; a plain one is looked for there, then in the event."""
    return all(_has(event, name, wanted) for name, wanted in (filter_condition or {}).items())


def _has(event: Event, name: str, wanted: Json) -> bool:
    if name in event.data:
        return json_equal(event.data[name], wanted)
    if "." not in name:
        return name in Event.model_fields and name != "data" and json_equal(getattr(event, name), wanted)
    found: Any = event.data
    for step in name.split("."):
        if not isinstance(found, dict) or step not in found:
            return False
        found = found[step]
    return json_equal(found, wanted)


def normalize_event(event: Publishable, data: Mapping[str, Any] | None = None, **more: Any) -> Event:
    """An event from an event, a type with its data, or a document with ``event_type``. Raises ``EventError``."""
    given = {**(data or {}), **more}
    if isinstance(event, Event):
        if given:
            raise EventError(f"the event {event.event_id!r} has its data already; {', '.join(given)} cannot be added")
        return event
    if isinstance(event, str):
        return Event(event_type=event, data=given)
    if isinstance(event, Mapping) and isinstance(event.get("event_type"), str):
        fields: dict[str, Any] = {**event, "data": {**(event.get("data") or {}), **given}}
        return Event(**fields)
    raise EventError(f"{event!r:.100} is no event: pass a type, an Event, or an object with event_type")


class EventStorage(ABC):
    """Keeps events."""

    @abstractmethod
    async def store_event(self, event: Event) -> str:
        """Keep an event; its id."""

    @abstractmethod
    async def get_event(self, event_id: str) -> Event | None:
        """The event, ``None`` when it is not kept."""

    @abstractmethod
    async def list_events(
        self,
        event_type: str | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
        limit: int = 100,
    ) -> list[Event]:
        """Events of a type within a time (seconds since 1970, both ends included), in order."""

    @abstractmethod
    async def delete_event(self, event_id: str) -> bool:
        """Forget it; was it there?"""

    async def batch_store_events(self, events: Sequence[Event]) -> list[str]:
        """Keep several; their ids."""
        return [await self.store_event(event) for event in events]


class EventSubscriptionStorage(ABC):
    """Keeps subscriptions."""

    @abstractmethod
    async def store_subscription(self, subscription: EventSubscription) -> str:
        """Keep one; its id."""

    @abstractmethod
    async def get_subscription(self, subscription_id: str) -> EventSubscription | None:
        """The subscription, ``None`` when there is none."""

    @abstractmethod
    async def list_subscriptions(
        self,
        event_type: str | None = None,
        correlation_id: str | None = None,
        flow_id: str | None = None,
        node_id: str | None = None,
    ) -> list[EventSubscription]:
        """Those with all the given values."""

    @abstractmethod
    async def delete_subscription(self, subscription_id: str) -> bool:
        """Forget it; was it there?"""

    @abstractmethod
    async def mark_event_processed(self, subscription_id: str, event_id: str) -> bool:
        """The event was handled for it; ``False`` for an unknown subscription."""

    async def batch_mark_processed(self, subscription_id: str, event_ids: Sequence[str]) -> bool:
        """The same for several events."""
        ids = check_list(event_ids, "event_ids")
        return all([await self.mark_event_processed(subscription_id, event_id) for event_id in ids])

    async def find_matching_subscriptions(
        self, event: Event, context: Mapping[str, Any] | None = None
    ) -> list[EventSubscription]:
        """Subscriptions that wait for this event."""
        found = await self.list_subscriptions(event_type=event.event_type)
        return [s for s in found if s.matches_event(event, context)]

    async def find_unprocessed_matching_subscriptions(
        self, event: Event, context: Mapping[str, Any] | None = None
    ) -> list[EventSubscription]:
        """Those of them for which it was not handled yet."""
        found = await self.find_matching_subscriptions(event, context)
        return [s for s in found if not s.is_event_processed(event.event_id)]


class EventBus(ABC):
    """Where events are published and waited for."""

    @abstractmethod
    async def publish(self, event: Publishable, prevent_duplicate_consumption: bool = True, **data: Any) -> str:
        """Publish an event, a document of one, or a type with its data; its id.

        A handler that handled this id is not told again, unless ``prevent_duplicate_consumption`` is off.
        """

    @abstractmethod
    async def get_event(self, event_id: str) -> Event:
        """A published event. Raises ``EventNotFoundError``."""

    @abstractmethod
    async def register_handler(
        self,
        event_type: str | None = None,
        handler: EventHandler | None = None,
        filter_condition: dict[str, Any] | None = None,
        retry_policy: RetryPolicy | None = None,
    ) -> str:
        """Tell a handler of the events of a type (``order.*``; nothing: all) that fit the filter; its id."""

    @abstractmethod
    async def register_subscription(
        self,
        event_type: str,
        filter_condition: dict[str, Any] | None = None,
        correlation_id: str | None = None,
        flow_id: str | None = None,
        node_id: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - kept with the subscription, not waited for
        tenant_id: str | None = None,
    ) -> str:
        """Note that a node waits; the id of the subscription."""

    @abstractmethod
    async def unregister_subscription(self, subscription_id: str) -> bool:
        """It waits no more; did it?"""

    @abstractmethod
    async def wait_for_event(
        self,
        event_type: str,
        timeout: float | None = None,  # noqa: ASYNC109 - documented
        condition: Callable[[Event], bool] | None = None,
    ) -> Event:
        """The next event of a type that satisfies the condition. Raises ``EventTimeoutError`` after ``timeout`` s."""

    def publish_sync(self, event: Publishable, prevent_duplicate_consumption: bool = True, **data: Any) -> str:
        """``publish`` where no loop runs. Raises ``EventError`` where one does."""
        if loop_runs():
            raise EventError("a loop runs in this thread: await publish(…) instead")
        published: str = asyncio.run(_as_coroutine(self.publish(event, prevent_duplicate_consumption, **data)))
        return published

    async def batch_publish(
        self, events: Sequence[Publishable], prevent_duplicate_consumption: bool = True
    ) -> list[str]:
        """Publish several; their ids."""
        return [await self.publish(event, prevent_duplicate_consumption) for event in events]

    @staticmethod
    def matches_event_type(handler_event_type: str | None, actual_event_type: str) -> bool:
        """Is a handler of that type told? Nothing and ``*`` mean all, ``order.*`` those that begin so."""
        return not handler_event_type or fnmatchcase(actual_event_type, handler_event_type)


def loop_runs() -> bool:
    """Does an event loop run in this thread?"""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _as_coroutine(work: Any) -> Any:
    return await work


def event_handler(
    event_bus: EventBus,
    event_type: str | None = None,
    filter_condition: dict[str, Any] | None = None,
    retry_policy: RetryPolicy | None = None,
) -> Callable[[EventHandler], EventHandler]:
    """Decorates a function that is told of events from then on."""

    def register(handler: EventHandler) -> EventHandler:
        ask(event_bus.register_handler(event_type, handler, filter_condition, retry_policy))
        return handler

    return register
