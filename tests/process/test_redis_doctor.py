"""What doctor says of a Redis: every promise in words, and what endangers it."""

from __future__ import annotations

import redis

from plaita.backends.redis import RedisBackend
from plaita.ports.backend import Finding
from tests.servers import redis_at


async def findings(url: str) -> dict[str, Finding]:
    store = RedisBackend(url)
    try:
        return {finding.name: finding for finding in await store.examine()}
    finally:
        await store.close()


async def test_what_a_commit_survives_is_said_in_words() -> None:
    with (
        redis_at("--appendonly", "yes", "--appendfsync", "everysec") as server,
        redis.Redis.from_url(server.url) as client,
    ):
        everysec = await findings(server.url)
        client.config_set("appendfsync", "always")
        always = await findings(server.url)
        client.config_set("appendfsync", "no")
        never = await findings(server.url)
        client.config_set("appendonly", "no")
        client.config_set("save", "900 1")
        snapshots = await findings(server.url)
    told = [found["durability"] for found in (everysec, always, never, snapshots)]
    assert [finding.status for finding in told] == ["ok", "ok", "warning", "warning"]
    assert [finding.message.rpartition("(")[2].partition(")")[0] for finding in told] == [
        "appendfsync everysec", "appendfsync always", "appendfsync no", "save 900 1",
    ]  # fmt: skip
    assert everysec["server"].message.startswith("Redis ")
    assert {everysec[name].status for name in ("eviction", "memory", "latency")} == {"ok"}


async def test_a_server_that_may_evict_or_is_full_fails() -> None:
    with redis_at("--maxmemory-policy", "allkeys-lru") as server, redis.Redis.from_url(server.url) as client:
        await findings(server.url)
        client.config_set("maxmemory", "800kb")
        found = await findings(server.url)
    assert (found["eviction"].status, found["memory"].status) == ("failed", "failed")
    assert found["eviction"].hint == "CONFIG SET maxmemory-policy noeviction"
    assert "maxmemory" in found["memory"].message


async def test_a_user_who_may_not_ask_is_told_what_stays_unknown() -> None:
    with redis_at("--appendonly", "yes") as server, redis.Redis.from_url(server.url) as client:
        rights = ["~*", "&*", "+@all", "-info", "-config"]
        client.execute_command("ACL", "SETUSER", "some", "on", ">word", *rights)
        without_info = await findings(server.url.replace("unix://", "unix://some:word@"))
        client.execute_command("ACL", "SETUSER", "some", "+info")
        without_config = await findings(server.url.replace("unix://", "unix://some:word@"))
    assert (without_info["server"].status, without_info["latency"].status) == ("warning", "ok")
    assert "this user may not ask" in without_config["durability"].message
