"""``redis_queue``: waits for a message of a Redis list, stream or channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from plaita.base.json import Json
from plaita.node.credentials import stored_secret
from plaita.node.service_wait import Given, Rule, ServiceNode


class RedisQueueNode(ServiceNode):
    """Waits for a message of ``queue_name``, at most ``timeout_seconds`` (0: for ever).

    ``redis_password`` is ``env:NAME`` or ``file:PATH``; the state holds that reference.

    Result: the documented event state with ``service_config``; ``status`` is ``completed`` with ``event_data``, or
    ``timeout``. The execution id is the key of the event that answers it.
    """

    node_type: ClassVar[str] = "redis_queue"
    node_name: ClassVar[str] = "Redis queue"
    rules: ClassVar[Mapping[str, Rule]] = {
        "queue_name": Rule("text"),
        "redis_host": Rule("text"),
        "redis_port": Rule("whole", least=1, most=65_535),
        "redis_db": Rule("whole", most=1_000_000),
        "redis_password": Rule("secret", optional=True),
        "queue_type": Rule("choice", ("list", "stream", "pubsub")),
        "timeout_seconds": Rule("whole", unit_ms=1000),
        "batch_size": Rule("whole", least=1, most=10_000),
        "message_format": Rule("choice", ("json", "text", "raw")),
    }

    queue_name: Any
    redis_host: Any = "localhost"
    redis_port: Any = 6379
    redis_db: Any = 0
    redis_password: Any = None
    queue_type: Any = "list"
    timeout_seconds: Any = 0
    batch_size: Any = 1
    message_format: Any = "json"
    event_type: str = "redis_message"

    def config(self, given: Given) -> dict[str, Json]:
        values, password = given.values, given.values["redis_password"]
        if password is not None:
            password = stored_secret(password, "redis_password", literal="redis_password" in given.literal)
        return {
            "redis_config": {
                "host": values["redis_host"],
                "port": values["redis_port"],
                "db": values["redis_db"],
                "password": password,
            },
            "queue_config": {
                "name": values["queue_name"],
                "type": values["queue_type"],
                "message_format": values["message_format"],
            },
            "listen_config": {"timeout_seconds": values["timeout_seconds"], "batch_size": values["batch_size"]},
        }

    def limit_ms(self, values: Mapping[str, Json]) -> int | None:
        seconds: int = values["timeout_seconds"]
        return seconds * 1000 or None
