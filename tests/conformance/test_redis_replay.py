"""Dead letters on Redis are the documented stream: what others wrote there is shown and sent again as ours is."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita.backends.redis import RedisBackend
from plaita.ports.inbox import NotReplayed, Replayed, Replaying
from plaita.ports.values import RunId
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.inbox import publish_flows, send, word
from plaita.testing.conformance.stage import Stage

QUEUE, DLQ, AUDIT = "plaita:flow:queue", "plaita:flow:queue:dlq", "plaita:dlq:replay:audit"
START = {"type": "start", "flow_id": "flow", "params": {"x": 1}, "tenant_id": "default"}
WEEK = 7 * 86_400


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest_asyncio.fixture
async def stage(redis_url: str) -> AsyncIterator[Stage]:
    store = RedisBackend(redis_url)
    stage = Stage(store, HandClock())
    await publish_flows(stage)
    yield stage
    await store.close()


def write(server: redis.Redis, body: Any, **said: Any) -> str:
    """A letter as another program writes it."""
    letter = {
        "reason": "processing_failed:ValueError:no", "source_stream": QUEUE, "source_id": "1796000000000-3",
        "delivery_count": 5, "dead_lettered_at": 1796000000.5, "schema_version": 1, "config_family": "legacy",
        "config_generation": "legacy", "budget_generation": "legacy", "config_effective_at": None, "payload": body,
    } | said  # fmt: skip
    return str(server.xadd(DLQ, {"payload": json.dumps(letter)}))


def fields(server: redis.Redis, stream: str) -> list[dict[str, str]]:
    found: Any = server.xrange(stream)
    return [one for _, one in found]


async def again(stage: Stage, letter_id: str, **asked: Any) -> str:
    answer = await stage.backend.replay(Replaying(letter_id, "ann", **asked))
    return answer.reason if isinstance(answer, NotReplayed) else type(answer).__name__


async def test_a_letter_of_another_program_is_shown(stage: Stage, server: redis.Redis) -> None:
    letter_id = write(server, START)
    [letter], _ = await stage.backend.dead_letters()
    assert (letter.letter_id, letter.reason, letter.detail) == (letter_id, "processing_failed", "ValueError:no")
    assert (letter.message.message_id, letter.message.at_ms) == ("1796000000000-3", 1_796_000_000_000)
    assert (json.loads(letter.message.body), letter.died_ms) == (START, 1_796_000_000_500)


async def test_a_replay_is_a_documented_entry_with_marker_and_record(stage: Stage, server: redis.Redis) -> None:
    letter_id = write(server, {**START, "timestamp": "2026-11-01T00:00:00"}, config_family="cf1-00000000aaaa")
    assert await again(stage, letter_id) == "Replayed"
    [entry] = fields(server, QUEUE)
    named = json.loads(entry["payload"])["execution_id"]
    assert json.loads(entry["payload"]) == {
        **START, "timestamp": "2026-11-01T00:00:00", "execution_id": named, "dedup_key": f"dlq-replay:{named}",
    }  # fmt: skip
    assert (entry["schema_version"], entry["config_family"], entry["config_generation"]) == (
        "1", "cf1-00000000aaaa", "legacy",
    )  # fmt: skip
    marker = f"plaita:dlq:replay:{DLQ}:{letter_id}"
    said = json.loads(str(server.get(marker)))
    assert set(said) == {
        "actor", "ts", "dlq_key", "dlq_id", "tenant_id", "schema_version", "execution_id", "target_stream",
        "target_message_id", "attempts", "force",
    }  # fmt: skip
    assert (said["actor"], said["dlq_id"], said["execution_id"], said["attempts"], said["force"]) == (
        "ann", letter_id, named, 1, False,
    )  # fmt: skip
    assert WEEK - 60 < int(str(server.ttl(marker))) <= WEEK
    [record] = fields(server, AUDIT)
    assert float(record.pop("ts")) > 0
    assert record == {
        "action": "dlq.replay", "actor": "ann", "dlq_key": DLQ, "dlq_id": letter_id, "source_id": "1796000000000-3",
        "target_stream": QUEUE, "target_message_id": said["target_message_id"], "execution_id": named,
        "tenant_id": "default", "schema_version": "1", "result": "ok", "force": "0",
    }  # fmt: skip
    assert server.xlen(DLQ) == 1


async def test_a_start_without_an_id_gets_the_documented_one(stage: Stage, server: redis.Redis) -> None:
    server.xadd(DLQ, {"payload": json.dumps({"payload": START, "dead_lettered_at": 1.0})}, id="1796075103249-0")
    answer = await stage.backend.replay(Replaying("1796075103249-0", "ann"))
    assert isinstance(answer, Replayed)
    assert answer.run_id == RunId("cb57d3a0d5445a6883608538becd9921")


async def test_a_key_that_a_start_has_stays(stage: Stage, server: redis.Redis) -> None:
    await again(stage, write(server, {**START, "dedup_key": "mine"}))
    [entry] = fields(server, QUEUE)
    assert json.loads(entry["payload"])["dedup_key"] == "mine"


async def test_a_marker_of_another_program_counts(stage: Stage, server: redis.Redis) -> None:
    letter_id = write(server, {**START, "execution_id": "e"})
    server.set(f"plaita:dlq:replay:{DLQ}:{letter_id}", json.dumps({"actor": "bob", "attempts": 4}))
    assert await again(stage, letter_id) == "already_replayed"
    assert await again(stage, letter_id, force=True) == "Replayed"
    found = await stage.backend.dead_letter(letter_id)
    assert found is not None
    assert (found[0].replays, [deed.result for deed in found[1]]) == (5, ["already_replayed", "ok"])


async def test_a_letter_of_a_newer_writer_is_not_sent_again(stage: Stage, server: redis.Redis) -> None:
    assert await again(stage, write(server, START, schema_version=2)) == "schema_too_new"


async def test_a_letter_that_is_cut_is_not_sent_again(stage: Stage, server: redis.Redis) -> None:
    assert await again(stage, write(server, '{"type": "sta', truncated=True)) == "not_replayable"
    assert await again(stage, write(server, START, truncated=True)) == "not_replayable"


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"payload": 3, "reason": 7, "dead_lettered_at": "x"}'])
async def test_what_is_no_letter_is_shown_and_not_sent_again(stage: Stage, server: redis.Redis, text: str) -> None:
    letter_id = str(server.xadd(DLQ, {"payload": text}))
    [letter], _ = await stage.backend.dead_letters()
    assert letter.letter_id == letter_id
    assert await again(stage, letter_id) == "not_replayable"


@pytest.mark.parametrize("tenant", ["default", "other"])
async def test_what_others_deleted_is_not_started_again(stage: Stage, server: redis.Redis, tenant: str) -> None:
    server.set("plaita:exec_tombstone:e", json.dumps({"tenant": tenant}))
    assert await again(stage, write(server, {**START, "execution_id": "e"})) == "execution_deleted"


async def test_a_long_malformed_message_is_kept_whole(stage: Stage, server: redis.Redis) -> None:
    await send(stage, b"[" * 700)
    [letter], _ = await stage.backend.dead_letters()
    assert letter.message.body == b"[" * 700


async def test_what_is_discarded_leaves_a_record(stage: Stage, server: redis.Redis) -> None:
    letter_id = write(server, START)
    await again(stage, letter_id)
    await stage.backend.discard(letter_id, "bob")
    assert (server.xlen(DLQ), server.exists(f"plaita:dlq:replay:{DLQ}:{letter_id}")) == (0, 0)
    assert [(r["action"], r["actor"]) for r in fields(server, AUDIT)] == [("dlq.replay", "ann"), ("dlq.discard", "bob")]


async def test_a_replayed_start_runs(stage: Stage, server: redis.Redis) -> None:
    await again(stage, write(server, {**START, "execution_id": "e"}))
    [accepted] = await stage.backend.accept(9)
    assert (word(accepted.outcome), await stage.status("e")) == ("Started", "queued")


@pytest.mark.parametrize("died", [1e308, -1e308, -1, True, "yesterday", 10**15, None])
async def test_a_letter_without_a_time_that_can_be_shown_is_of_the_time_of_its_entry(
    stage: Stage, server: redis.Redis, died: Any
) -> None:
    letter_id = write(server, START, dead_lettered_at=died)
    [letter], _ = await stage.backend.dead_letters()
    assert letter.died_ms == int(letter_id.partition("-")[0])


async def test_a_deed_at_a_time_that_cannot_be_shown_is_told_of_all_the_same(stage: Stage, server: redis.Redis) -> None:
    letter_id = write(server, START)
    server.xadd(AUDIT, {"dlq_id": letter_id, "ts": "9" * 400, "action": "dlq.replay", "actor": "ann"})
    found = await stage.backend.dead_letter(letter_id)
    assert found is not None
    assert [(deed.at_ms, deed.actor) for deed in found[1]] == [(0, "ann")]
