"""The inbox on Redis is the documented stream: producers append, operators watch its group and its dead letters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita.backends.configured import limits_of
from plaita.backends.limits import Limits
from plaita.backends.redis import RedisBackend
from plaita.base.errors import Unavailable
from plaita.base.ids import derived_id
from plaita.ports.inbox import Started
from plaita.ports.runs import Park
from plaita.ports.values import RunId
from plaita.settings.load import load_settings
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.inbox import publish_flows, word
from plaita.testing.conformance.stage import Stage, hand

QUEUE, GROUP, DLQ = "plaita:flow:queue", "plaita-workers", "plaita:flow:queue:dlq"
START = {"type": "start", "flow_id": "flow", "params": {"x": 1}, "execution_id": "r", "tenant_id": "default"}
GENERATIONS = {
    "config_family": "cf1-fe07261d70a0", "config_generation": "cfg1-68311eff386e",
    "budget_generation": "bg1-6cece37a8ab0",
}  # fmt: skip
LEGACY = dict.fromkeys(GENERATIONS, "legacy")


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


@pytest_asyncio.fixture
async def eager(redis_url: str) -> AsyncIterator[RedisBackend]:
    """A store that takes over at once what another process took."""
    store = RedisBackend(redis_url, limits=Limits(claim_min_idle_ms=0, dlq_max=2))
    yield store
    await store.close()


def produce(server: redis.Redis, body: Any, entry: str = "*", **fields: str) -> str:
    payload = body if isinstance(body, str) else json.dumps(body)
    carried: Any = {"payload": payload, **fields}
    return str(server.xadd(QUEUE, carried, id=entry))


async def given_up(stage: Stage, server: redis.Redis, *, times: int) -> None:
    """A message that so many processes took without coming to an end with it."""
    await stage.backend.accept(9)
    entry = produce(server, START)
    server.xreadgroup(GROUP, "m", {QUEUE: ">"})
    server.xclaim(QUEUE, GROUP, "m", 0, [entry], retrycount=times)


def letters(server: redis.Redis) -> list[dict[str, Any]]:
    entries: Any = server.xrange(DLQ)
    return [json.loads(fields["payload"]) for _, fields in entries]


async def outcome(stage: Stage) -> str:
    [accepted] = await stage.backend.accept(9)
    return word(accepted.outcome)


async def test_an_entry_of_a_documented_producer_starts_an_execution(stage: Stage, server: redis.Redis) -> None:
    produce(server, START, schema_version="1", config_effective_at="2026-01-01T00:00:00+00:00", **GENERATIONS)
    assert await outcome(stage) == "Started"
    assert await stage.status("r") == "queued"


async def test_a_message_without_ids_is_named_after_its_entry(stage: Stage, server: redis.Redis) -> None:
    entry = produce(server, {**START, "execution_id": None})
    [accepted] = await stage.backend.accept(9)
    run_id = RunId(derived_id("message", entry))
    assert (accepted.message_id, accepted.outcome) == (entry, Started(run_id, deduplicated=False))


async def test_an_accepted_message_is_neither_in_the_stream_nor_pending(stage: Stage, server: redis.Redis) -> None:
    produce(server, START)
    await stage.backend.accept(9)
    pending: Any = server.xpending(QUEUE, GROUP)
    assert (server.xlen(QUEUE), pending["pending"]) == (0, 0)


async def test_what_was_sent_before_the_first_worker_came_is_accepted(stage: Stage, server: redis.Redis) -> None:
    for name in ("a", "b", "c"):
        produce(server, {**START, "execution_id": name})
    accepted = await stage.backend.accept(2) + await stage.backend.accept(2)
    assert [a.outcome for a in accepted] == [Started(RunId(n), deduplicated=False) for n in ("a", "b", "c")]


async def test_an_empty_inbox_has_the_documented_group(stage: Stage, server: redis.Redis) -> None:
    assert await stage.backend.accept(9) == []
    groups: Any = server.xinfo_groups(QUEUE)
    assert [group["name"] for group in groups] == [GROUP]


async def test_a_message_of_a_process_that_died_with_it_is_taken_over(
    stage: Stage, server: redis.Redis, eager: RedisBackend
) -> None:
    produce(server, START)
    await stage.backend.accept(9)
    produce(server, {**START, "execution_id": "s"})
    server.xreadgroup(GROUP, "somebody who died", {QUEUE: ">"})
    early = await stage.backend.accept(9)
    [accepted] = await eager.accept(9)
    assert early == []
    assert accepted.outcome == Started(RunId("s"), deduplicated=False)


async def test_a_message_that_nobody_ever_finished_is_a_dead_letter(
    stage: Stage, server: redis.Redis, eager: RedisBackend
) -> None:
    await given_up(stage, server, times=5)
    [accepted] = await eager.accept(9)
    [letter] = letters(server)
    assert word(accepted.outcome) == "max_deliveries"
    assert (letter["reason"], letter["delivery_count"], letter["payload"]) == ("max_deliveries=5", 6, START)


async def test_how_many_processes_may_try_a_message_is_a_setting(
    stage: Stage, server: redis.Redis, redis_url: str
) -> None:
    await given_up(stage, server, times=2)
    limits = limits_of(load_settings({"PLAITA_MAX_DELIVERIES": "2"}), {})
    store = RedisBackend(redis_url, limits=replace(limits, claim_min_idle_ms=0))
    [accepted] = await store.accept(9)
    await store.close()
    [letter] = letters(server)
    assert word(accepted.outcome) == "max_deliveries"
    assert letter["reason"] == "max_deliveries=2"


async def test_what_a_failed_look_had_taken_is_taken_again(stage: Stage, server: redis.Redis) -> None:
    await stage.backend.accept(9)
    produce(server, START)
    server.set("plaita:counters", "in the way")
    with pytest.raises(Unavailable, match="of another type"):
        await stage.backend.accept(9)
    server.delete("plaita:counters")
    assert await outcome(stage) == "Started"


async def test_a_refused_message_goes_to_the_documented_dead_letters(stage: Stage, server: redis.Redis) -> None:
    body = {**START, "type": "dance", "params": {"text": 'ü "quoted"'}}
    entry = produce(server, body, schema_version="1", config_effective_at="2026-01-01T00:00:00+00:00", **GENERATIONS)
    assert await outcome(stage) == "unknown_type"
    [letter] = letters(server)
    assert isinstance(letter.pop("dead_lettered_at"), float)
    assert letter == {
        "reason": "unknown_type: $.type: 'dance' is none of start, resume, event, cancel", "source_stream": QUEUE,
        "source_id": entry, "delivery_count": 1, "schema_version": 1, **GENERATIONS,
        "config_effective_at": "2026-01-01T00:00:00+00:00", "payload": body,
    }  # fmt: skip


async def test_a_malformed_message_is_quoted_up_to_500_characters(stage: Stage, server: redis.Redis) -> None:
    produce(server, "[" * 600, note="n")
    assert await outcome(stage) == "invalid_payload"
    [letter] = letters(server)
    assert letter["reason"].startswith("invalid_payload: ")
    assert letter["payload"] == "[" * 500
    assert (letter["raw_fields"], letter["truncated"]) == ({"payload": "[" * 500, "note": "n"}, True)
    assert {name: letter[name] for name in LEGACY} == LEGACY


async def test_an_entry_without_a_payload_is_a_dead_letter(stage: Stage, server: redis.Redis) -> None:
    server.xadd(QUEUE, {"body": "{}"})
    assert await outcome(stage) == "invalid_payload"
    assert letters(server)[0]["raw_fields"] == {"body": "{}"}


async def test_an_envelope_of_a_newer_writer_is_never_carried_out(stage: Stage, server: redis.Redis) -> None:
    produce(server, START, schema_version="2")
    assert await outcome(stage) == "unsupported_schema"
    assert letters(server)[0]["reason"] == "unsupported schema_version=2 (this build understands <= 1)"
    assert await stage.status("r") == ""


@pytest.mark.parametrize("version", ["", "one", "-3", "9" * 40])
async def test_a_version_that_is_no_number_is_the_first(stage: Stage, server: redis.Redis, version: str) -> None:
    produce(server, START, schema_version=version)
    assert await outcome(stage) == "Started"


async def test_the_dead_letters_keep_the_newest(server: redis.Redis, eager: RedisBackend) -> None:
    for number in range(4):
        produce(server, {"type": f"t{number}"})
    await eager.accept(9)
    assert [letter["payload"]["type"] for letter in letters(server)] == ["t2", "t3"]


async def test_an_entry_that_is_old_by_its_stream_id_starts_nothing(stage: Stage, server: redis.Redis) -> None:
    produce(server, START, entry="1600000000000-0")
    assert await outcome(stage) == "too_old"


@pytest.mark.parametrize("status", ["disabled", '{"status": "disabled"}'])
async def test_a_disabled_tenant_starts_nothing(stage: Stage, server: redis.Redis, status: str) -> None:
    server.hset("plaita:tenant_status", "acme", status)
    produce(server, {**START, "tenant_id": "acme"})
    assert await outcome(stage) == "tenant_disabled"
    assert letters(server)[0]["reason"] == "tenant_disabled: tenant acme is disabled"


@pytest.mark.parametrize("status", ["active", '{"status": "active"}', "nonsense"])
async def test_a_tenant_that_is_not_disabled_starts(stage: Stage, server: redis.Redis, status: str) -> None:
    server.hset("plaita:tenant_status", "acme", status)
    produce(server, {**START, "tenant_id": "acme"})
    assert await outcome(stage) == "Started"


@pytest.mark.parametrize("name", ["subscription_id", "__plaita_subscription_id"])
async def test_a_documented_event_answers_the_wait_it_names(stage: Stage, server: redis.Redis, name: str) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    data = {"event_id": "e", "event_type": "pay", "event_data": {"n": 1}, name: "w"}
    produce(server, {"type": "resume", "resume_type": "event", "flow_id": "flow", "execution_id": "r", "data": data})
    assert await outcome(stage) == "Woken"
    [claim] = await stage.take()
    assert [mail.data for mail in claim.mailbox] == [b'{"n":1}']


async def test_a_documented_cancel_cancels(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    produce(server, {"type": "resume", "resume_type": "cancel", "flow_id": "flow", "execution_id": "r", "data": None})
    assert await outcome(stage) == "Cancelled"


async def test_a_name_that_a_process_left_in_the_group_goes(
    stage: Stage, server: redis.Redis, eager: RedisBackend
) -> None:
    produce(server, START)
    await stage.backend.accept(9)
    produce(server, START)
    server.xreadgroup(GROUP, "holds one", {QUEUE: ">"})
    [left] = [c["name"] for c in consumers(server) if c["name"] != "holds one"]
    while any(c["idle"] == 0 for c in consumers(server)):
        pass
    await eager.accept(0)
    assert left not in [c["name"] for c in consumers(server)]
    assert "holds one" in [c["name"] for c in consumers(server)]


def consumers(server: redis.Redis) -> list[dict[str, Any]]:
    found: Any = server.xinfo_consumers(QUEUE, GROUP)
    return list(found)
