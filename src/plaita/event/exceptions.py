"""What an event bus raises, under its documented path."""

from plaita.base.errors import EventError, EventNotFoundError, EventStorageError, EventTimeoutError

__all__ = ["EventError", "EventNotFoundError", "EventStorageError", "EventTimeoutError"]
