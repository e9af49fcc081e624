"""Keys that hold something that the store cannot have written: whoever needs one of them gets no further."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final

from plaita.backends.redis.keys import NAMES
from plaita.backends.redis.talk import Talk

OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "hash": (
        "run", "frames", "waits", "consumed", "grave", "kinds", "kinds_counted", "promotions", "pulse", "event", "task",
        "offered", "shown_latest",
    ),
    "list": ("log", "outbox"),
    "set": ("names", "queues", "tenants"),
    "string": ("name", "event_id", "closure", "version", "process"),
    "zset": (
        "due", "leases", "priorities", "held", "deferred", "parked", "kin", "ended", "by_status", "by_flow", "by_key",
        "by_tag", "by_tenant", "event_times", "typed", "keyed", "waiting", "waiting_keyed", "tasks", "tasks_of",
        "closures_used", "versions", "flows", "processes",
    ),
}  # fmt: skip
"""Names of keys that are ours, by the type of what the store keeps there."""
DOCUMENTED: Final = (
    ("stream", "inbox"), ("stream", "dlq"), ("stream", "replay_audit"), ("hash", "counters"),
    ("hash", "tenant_quota"), ("hash", "tenant_status"), ("string", "tenant_epoch"), ("zset", "running", "default"),
    ("zset", "execution_index", ""), ("set", "published_flows", ""),
)  # fmt: skip
"""The type of each documented key that there is once, and what it is made of. Others may be anything: they are only
looked at."""
TYPES: Final = (*OWN, "stream")
SCANNED: Final = 1_000


async def mistyped(talk: Talk) -> AsyncIterator[tuple[str, str, str]]:
    """Key, its type, and the type of what the store keeps there. Goes through all names of keys."""
    for expected, *parts in DOCUMENTED:
        name = talk.key(*parts)
        kind = (await talk.call("TYPE", name)).decode()
        if kind not in ("none", expected):
            yield name, kind, expected
    head = talk.key("run", "").removesuffix(NAMES["run"].format(""))
    expectations = _Expectations(head)
    for kind in TYPES:
        cursor = b"0"
        while True:
            cursor, page = await talk.call("SCAN", cursor, "MATCH", f"{head}*", "COUNT", SCANNED, "TYPE", kind)
            for name in (key.decode(errors="replace") for key in page):
                wanted = expectations.of(name)
                if wanted not in (None, kind):
                    yield name, kind, str(wanted)
            if cursor == b"0":
                break


class _Expectations:
    """What is kept under a key of ours, by its name."""

    def __init__(self, head: str) -> None:
        kinds = {f"{head}{NAMES[name]}": kind for kind, names in OWN.items() for name in names}
        self._whole = {template: kind for template, kind in kinds.items() if "{" not in template}
        begun = {template.partition("{")[0]: kind for template, kind in kinds.items() if "{" in template}
        self._begun = sorted(begun.items(), key=lambda item: -len(item[0]))

    def of(self, name: str) -> str | None:
        if name in self._whole:
            return self._whole[name]
        return next((kind for begin, kind in self._begun if name.startswith(begin)), None)
