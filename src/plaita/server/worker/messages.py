"""The part of intake that takes what producers sent."""

from __future__ import annotations

from typing import Final

from plaita.base.errors import Unavailable
from plaita.ports.backend import Backend
from plaita.ports.inbox import DeadLettered, Passed, Resumed, Retried
from plaita.ports.runs import NotRetryable, Woken
from plaita.telemetry import events as told
from plaita.telemetry.sink import Telemetry

ACCEPT_MAX: Final = 32


async def accept_messages(store: Backend, telemetry: Telemetry) -> int:
    """Accept one portion of the inbox and report what had no effect; answers how many messages there were."""
    try:
        accepted = await store.accept(ACCEPT_MAX)
    except Unavailable as e:
        # The inbox keeps what was not accepted; the next look takes it.
        telemetry.emit(told.STORE_UNAVAILABLE, store=store.name, verb="accept", error=str(e))
        return 0
    if accepted:
        telemetry.emit(told.MESSAGES_ACCEPTED, count=len(accepted))
    for message in accepted:
        match message.outcome:
            case DeadLettered(reason):
                telemetry.emit(told.MESSAGE_REFUSED, message_id=message.message_id, reason=reason)
            case Resumed(answer) if not isinstance(answer, Woken):
                telemetry.emit(told.MESSAGE_LATE, message_id=message.message_id, answer=type(answer).__name__)
            case Passed(why):
                telemetry.emit(told.MESSAGE_LATE, message_id=message.message_id, answer=why)
            case Retried(NotRetryable(reason)):
                telemetry.emit(told.MESSAGE_LATE, message_id=message.message_id, answer=reason)
    return len(accepted)
