"""``kafka_queue``: waits for a message of a Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from plaita.base.json import Json
from plaita.node.credentials import stored_secret
from plaita.node.service_wait import Given, Rule, ServiceNode


class KafkaQueueNode(ServiceNode):
    """Waits for a message of ``topic``, at most ``timeout_ms`` (0: for ever).

    ``sasl_password`` is ``env:NAME`` or ``file:PATH``; the state holds that reference.

    Result: the documented event state with ``service_config``; ``status`` is ``completed`` with ``event_data``, or
    ``timeout``. The execution id is the key of the event that answers it.
    """

    node_type: ClassVar[str] = "kafka_queue"
    node_name: ClassVar[str] = "Kafka queue"
    rules: ClassVar[Mapping[str, Rule]] = {
        "bootstrap_servers": Rule("servers"),
        "topic": Rule("text"),
        "group_id": Rule("text"),
        "security_protocol": Rule("choice", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        "sasl_mechanism": Rule("choice", ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"), optional=True),
        "sasl_username": Rule("text", optional=True),
        "sasl_password": Rule("secret", optional=True),
        "partition": Rule("whole", optional=True),
        "auto_offset_reset": Rule("choice", ("earliest", "latest")),
        "enable_auto_commit": Rule("flag"),
        "max_poll_records": Rule("whole", least=1, most=10_000),
        "message_format": Rule("choice", ("json", "text")),
        "timeout_ms": Rule("whole", most=10**12, unit_ms=1),
    }

    bootstrap_servers: Any
    topic: Any
    group_id: Any
    security_protocol: Any = "PLAINTEXT"
    sasl_mechanism: Any = None
    sasl_username: Any = None
    sasl_password: Any = None
    partition: Any = None
    auto_offset_reset: Any = "latest"
    enable_auto_commit: Any = True
    max_poll_records: Any = 1
    message_format: Any = "json"
    timeout_ms: Any = 30_000
    event_type: str = "kafka_message"

    def config(self, given: Given) -> dict[str, Json]:
        values, password = given.values, given.values["sasl_password"]
        needed = (values["sasl_mechanism"], values["sasl_username"], password)
        if values["security_protocol"].startswith("SASL") and None in needed:
            raise ValueError(f"{values['security_protocol']} needs sasl_mechanism, sasl_username and sasl_password")
        if password is not None:
            password = stored_secret(password, "sasl_password", literal="sasl_password" in given.literal)
        return {
            "kafka_config": {
                "bootstrap_servers": values["bootstrap_servers"],
                "security_protocol": values["security_protocol"],
                "sasl_mechanism": values["sasl_mechanism"],
                "sasl_username": values["sasl_username"],
                "sasl_password": password,
            },
            "topic_config": {
                "topic": values["topic"],
                "partition": values["partition"],
                "message_format": values["message_format"],
            },
            "consumer_config": {
                "group_id": values["group_id"],
                "auto_offset_reset": values["auto_offset_reset"],
                "enable_auto_commit": values["enable_auto_commit"],
                "max_poll_records": values["max_poll_records"],
                "timeout_ms": values["timeout_ms"],
            },
        }

    def limit_ms(self, values: Mapping[str, Json]) -> int | None:
        timeout: int = values["timeout_ms"]
        return timeout or None
