"""Rows and flows of the published system under their documented keys; nothing of it is changed here."""

from __future__ import annotations

from plaita.backends.redis.keys import partition
from plaita.backends.redis.refusals import OtherType
from plaita.backends.redis.talk import Talk

_AT_ONCE = 200
LATEST = "latest"


class PublishedLayout:
    """The documented layout of one Redis. Every method raises ``Unavailable``."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk

    async def flow_names(self, tenant: str) -> list[str]:
        return await self._members(self._key("published_flows", tenant))

    async def flow_versions(self, tenant: str, flow_id: str) -> list[str]:
        if not await self._talk.foreign("SISMEMBER", self._key("published_flows", tenant), flow_id):
            return []
        return sorted(await self._members(self._key("published_versions", tenant, flow_id)), key=_rank)

    async def flow_document(self, tenant: str, flow_id: str, version: str) -> bytes | None:
        versions = await self.flow_versions(tenant, flow_id)
        chosen = version or (versions[-1] if versions else "")
        if chosen not in versions:
            return None
        found: bytes | None = await self._talk.foreign(
            "GET", self._key("published_flow", tenant, f"{flow_id}:{chosen}")
        )
        return found

    async def tenants(self) -> list[str]:
        index = self._key("execution_index", "default")
        found = {"default"} if await self._talk.call("EXISTS", index) else set[str]()
        head, tail = self._key("execution_index", "*").split("*")
        cursor = b"0"
        while True:
            cursor, keys = await self._talk.call(
                "SCAN", cursor, "MATCH", f"{head}*{tail}", "COUNT", 1_000, "TYPE", "zset"
            )
            names = [key.decode(errors="replace").removeprefix(head).removesuffix(tail) for key in keys]
            found.update(name for name in names if name and ":" not in name)
            if cursor == b"0":
                return sorted(found)

    async def page(self, tenant: str, cursor: str = "") -> tuple[list[str], str]:
        index = self._key("execution_index", tenant)
        there = await self._talk.foreign("ZSCAN", index, cursor or "0", "COUNT", _AT_ONCE)
        following, flat = there or (b"0", ())
        return [name.decode(errors="replace") for name in flat[::2]], "" if following == b"0" else following.decode()

    async def row(self, tenant: str, execution_id: str) -> bytes | None:
        try:
            found: bytes | None = await self._talk.call("GET", self._key("execution", tenant, execution_id))
        except OtherType:
            # There is something, and it is no row.
            return b""
        return found

    async def lease(self, tenant: str, execution_id: str) -> str:
        found = await self._talk.foreign("GET", self._key("execution_lease", tenant, execution_id))
        return "" if found is None else found.decode(errors="replace")

    def _key(self, name: str, tenant: str, *rest: str) -> str:
        return self._talk.key(name, partition(tenant), *rest)

    async def _members(self, key: str) -> list[str]:
        return sorted(name.decode(errors="replace") for name in await self._talk.foreign("SMEMBERS", key) or ())


def _rank(version: str) -> tuple[int, list[int], str]:
    """``latest`` counts most, then the highest number, then whatever else there is."""
    parts = version.split(".")
    if version == LATEST:
        return 2, [], version
    numbered = all(part.isascii() and part.isdecimal() for part in parts)
    return (1, [int(part) for part in parts], version) if numbered else (0, [], version)
