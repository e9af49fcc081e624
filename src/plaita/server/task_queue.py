"""The documented stream of tasks for programs: producers put messages in, tools look at it, workers accept from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from plaita.base.clock import SystemClock
from plaita.base.moment import iso

DEFAULT_CONSUMER_GROUP: Final = "plaita-workers"
DEFAULT_DLQ_MAX_LEN: Final = 1000
SCHEMA_VERSION: Final = 1
_HINTS: Final = {"plaita:flow:queue": "plaita:hints"}
_GROUP_SCRIPT: Final = "return redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], '0', 'MKSTREAM') and 1"
_BURY_SCRIPT: Final = """
if #redis.call('XRANGE', KEYS[1], ARGV[2], ARGV[2]) == 0 then return -1 end
redis.call('XADD', KEYS[2], '*', 'payload', ARGV[4])
local trimmed = redis.call('XTRIM', KEYS[2], 'MAXLEN', ARGV[3])
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return trimmed
"""
_TEXT_MAX = 500
_GENERATIONS: Final = ("config_family", "config_generation", "budget_generation")


def enqueue_task(
    redis_client: Any,
    stream_key: str,
    task: dict[str, Any],
    *,
    schema_version: int | None = None,
    default_timestamp: str | None = None,
    config_family: str | None = None,
    config_generation: str | None = None,
    budget_generation: str | None = None,
    config_effective_at: str | None = None,
) -> str:
    """Append a message; the id of its entry. A ``timestamp`` is added unless it has one.

    The generations are carried as they are given; without them a message is of the first kind, which every reader
    takes. Raises what the client raises.
    """
    stamped = dict(task)
    if not str(stamped.get("timestamp") or "").strip():
        stamped["timestamp"] = default_timestamp or iso(SystemClock().now_ms())
    envelope = {
        "config_family": config_family,
        "config_generation": config_generation,
        "budget_generation": budget_generation,
        "config_effective_at": config_effective_at,
    }
    fields = {
        "payload": json.dumps(stamped, ensure_ascii=False),
        "schema_version": str(SCHEMA_VERSION if schema_version is None else schema_version),
        **{name: text for name, text in envelope.items() if text is not None},
    }
    entry = _text(redis_client.xadd(stream_key, fields))
    if stream_key in _HINTS:
        # A worker that sleeps looks at once.
        redis_client.publish(_HINTS[stream_key], "")
    return entry


@dataclass(frozen=True, slots=True)
class QueueTask:
    """One delivery. ``body`` is the message, ``delivery_count`` how often it was delivered before."""

    message_id: str
    body: dict[str, Any]
    delivery_count: int
    fields: dict[str, str]


class RedisStreamTaskQueue:
    """A stream of tasks with a group of consumers, for programs that take tasks themselves.

    An entry belongs to its reader until ``ack``. When that takes longer than ``claim_min_idle_ms`` another reader gets
    it; after ``max_deliveries`` deliveries it is a dead letter, unless ``dlq_guard`` (asked with the task) answers
    ``False`` or raises: then it stays. The workers of a store read its stream by themselves: do not read it with this.
    """

    def __init__(
        self,
        redis_client: Any,
        stream_key: str,
        *,
        group_name: str = DEFAULT_CONSUMER_GROUP,
        consumer_name: str = "worker-1",
        claim_min_idle_ms: int = 60_000,
        reclaim_window: int = 8,
        max_deliveries: int = 5,
        dlq_key: str | None = None,
        dlq_max_len: int | None = None,
        dlq_guard: Callable[[QueueTask], bool] | None = None,
    ) -> None:
        self.redis_client, self.stream_key, self.group_name = redis_client, stream_key, group_name
        self.consumer_name, self.claim_min_idle_ms = consumer_name, claim_min_idle_ms
        self.reclaim_window, self.max_deliveries = reclaim_window, max_deliveries
        self.dlq_key = dlq_key or f"{stream_key}:dlq"
        self.dlq_max_len = max(1, _dlq_max_len() if dlq_max_len is None else dlq_max_len)
        self._guard = dlq_guard
        self._counts = dict.fromkeys(
            ("enqueued", "acked", "reclaimed", "dead_lettered", "dlq_guard_skipped", "dlq_trimmed"), 0
        )
        self._cursor = "-"
        redis_client.eval(_GROUP_SCRIPT, 1, stream_key, group_name)

    def enqueue(self, task: dict[str, Any], **envelope: Any) -> str:
        """Append a message, as ``enqueue_task`` does."""
        entry = enqueue_task(self.redis_client, self.stream_key, task, **envelope)
        self._counts["enqueued"] += 1
        return entry

    def read(self, block_ms: int = 1_000) -> QueueTask | None:
        """The next task: one that another reader left, else a new one. ``None``: there was none, or it went to the
        dead letters."""
        taken, is_done = self._reclaim()
        if taken is not None or is_done:
            return taken
        reply = self.redis_client.xreadgroup(
            self.group_name, self.consumer_name, {self.stream_key: ">"}, count=1, block=max(1, min(block_ms, 1_000))
        )
        streams = list(reply.values()) if isinstance(reply, dict) else [entries for _, entries in reply or []]
        found = next((entry for entries in streams for entry in entries), None)
        return None if found is None else self._task(found, 0)

    def ack(self, message_id: str | QueueTask) -> None:
        """The task is done; its entry goes."""
        self._remove(message_id.message_id if isinstance(message_id, QueueTask) else message_id)
        self._counts["acked"] += 1

    def dead_letter(self, task: QueueTask, *, reason: str) -> None:
        """Move a task to the dead letters in one step, of which the newest are kept. One that is gone stays gone."""
        self._bury(task.message_id, task.delivery_count, task.fields, {"payload": task.body, "reason": reason})

    def stats(self) -> dict[str, Any]:
        """What this reader did, and what the stream holds."""
        pending = self.redis_client.xpending(self.stream_key, self.group_name)
        return {
            **self._counts,
            "stream_key": self.stream_key,
            "stream_length": self.redis_client.xlen(self.stream_key),
            "pending": int(pending["pending"]),
            "dlq_key": self.dlq_key,
            "dlq_length": self.redis_client.xlen(self.dlq_key),
            "dlq_max_len": self.dlq_max_len,
        }

    def _reclaim(self) -> tuple[QueueTask | None, bool]:
        """A task that its reader left; or whether one became a dead letter instead."""
        waiting = self.redis_client.xpending_range(
            self.stream_key, self.group_name, self._cursor, "+", self.reclaim_window, idle=self.claim_min_idle_ms
        )
        # The next look begins behind this one, so that entries that stay hold up nobody.
        self._cursor = f"({_text(waiting[-1]['message_id'])}" if len(waiting) == self.reclaim_window else "-"
        for entry in waiting:
            delivered = int(entry["times_delivered"])
            claimed = self.redis_client.xclaim(
                self.stream_key, self.group_name, self.consumer_name, self.claim_min_idle_ms, [entry["message_id"]]
            )
            task = self._task(claimed[0], delivered) if claimed and claimed[0][1] else None
            if task is None:
                continue
            self._counts["reclaimed"] += 1
            if delivered < self.max_deliveries:
                return task, False
            if self._may_bury(task):
                self.dead_letter(task, reason=f"max_deliveries={self.max_deliveries}")
                return None, True
        return None, False

    def _may_bury(self, task: QueueTask) -> bool:
        try:
            allowed = self._guard is None or self._guard(task)
        except Exception:  # noqa: BLE001 - foreign code
            allowed = False
        self._counts["dlq_guard_skipped"] += not allowed
        return allowed

    def _task(self, entry: Any, delivered: int) -> QueueTask | None:
        """The task of an entry; what cannot be read is a dead letter."""
        message_id, fields = _text(entry[0]), {_text(name): _text(value) for name, value in entry[1].items()}
        text = fields.get("payload", "")
        try:
            body = json.loads(text)
            wrong = "" if isinstance(body, dict) else "the payload is no object"
        except ValueError as e:
            body, wrong = None, str(e)
        if isinstance(body, dict):
            return QueueTask(message_id, body, delivered, fields)
        raw = {name[:_TEXT_MAX]: value[:_TEXT_MAX] for name, value in fields.items()}
        said = {"payload": text[:_TEXT_MAX], "raw_fields": raw, "truncated": any(map(_is_long, fields.values()))}
        self._bury(message_id, delivered, fields, {**said, "reason": f"invalid_payload: {wrong}"[:_TEXT_MAX]})
        return None

    def _bury(self, message_id: str, delivered: int, fields: Mapping[str, str], said: dict[str, Any]) -> None:
        version = fields.get("schema_version", "")
        letter = {
            "source_stream": self.stream_key,
            "source_id": message_id,
            "delivery_count": delivered,
            "dead_lettered_at": SystemClock().now_ms() / 1000,
            "schema_version": int(version) if version.isdecimal() else SCHEMA_VERSION,
            **{name: fields.get(name) or "legacy" for name in _GENERATIONS},
            "config_effective_at": fields.get("config_effective_at"),
            **said,
        }
        text = json.dumps(letter, ensure_ascii=False)
        trimmed = self.redis_client.eval(
            _BURY_SCRIPT, 2, self.stream_key, self.dlq_key, self.group_name, message_id, self.dlq_max_len, text
        )
        self._counts["dead_lettered"] += trimmed >= 0
        self._counts["dlq_trimmed"] += max(0, trimmed)

    def _remove(self, message_id: str) -> None:
        self.redis_client.xack(self.stream_key, self.group_name, message_id)
        self.redis_client.xdel(self.stream_key, message_id)


def _dlq_max_len() -> int:
    from plaita.settings import current_settings

    return current_settings().store.dlq_max_len


def _is_long(text: str) -> bool:
    return len(text) > _TEXT_MAX


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
