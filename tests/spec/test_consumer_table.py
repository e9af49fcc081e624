"""Each row of the documented decisions that can occur, on a real server: ``consumer_table.py`` says which is where."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio
import redis

from plaita.backends.limits import Fleet, Limits
from plaita.backends.redis import RedisBackend
from plaita.ports.runs import End, Keep, NotTerminal, Park, Stale
from plaita.ports.values import RunId
from plaita.server.worker.messages import accept_messages
from plaita.telemetry import LogTelemetry
from plaita.testing.conformance import HandClock
from plaita.testing.conformance.inbox import publish_flows, word
from plaita.testing.conformance.stage import START_MS, Stage, hand, listen, start
from tests.servers import free_port
from tests.spec.consumer_table import ROWS, Row

QUEUE, GROUP, DLQ = "plaita:flow:queue", "plaita-workers", "plaita:flow:queue:dlq"
R = RunId("r")
OURS, THEIRS = "cf1-00000000aaaa", "cf1-00000000bbbb"
START = {"type": "start", "flow_id": "flow", "params": {"x": 1}, "execution_id": "r", "tenant_id": "default"}
RESUME = {"type": "resume", "flow_id": "flow", "execution_id": "r", "tenant_id": "default"}
EVENT = {**RESUME, "resume_type": "event", "data": {"subscription_id": "w", "event_type": "pay", "event_data": 1}}


def test_all_rows_are_there() -> None:
    assert [row.number for row in ROWS] == list(range(1, 49))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.number))
def test_a_row_that_can_occur_names_its_test_and_what_replaces_it(row: Row) -> None:
    here = vars(sys.modules[__name__])
    tests = [name for name in here if row.test and name.startswith(f"test_{row.test}_")]
    assert (len(tests) == 1) == (row.verdict != "impossible")
    assert bool(row.by) == (row.verdict == "replaced")
    assert row.words


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest_asyncio.fixture
async def stage(redis_url: str, clock: HandClock) -> AsyncIterator[Stage]:
    limits = Limits(cap=2, claim_min_idle_ms=0, fleet=Fleet(OURS, "cfg1-00000000aaaa", "bg1-00000000aaaa", "7"))
    store = RedisBackend(redis_url, clock, limits=limits)
    stage = Stage(store, clock)
    await publish_flows(stage)
    yield stage
    await store.close()


def produce(server: redis.Redis, body: Any, **fields: str) -> str:
    payload = body if isinstance(body, str) else json.dumps(body)
    carried: Any = {"payload": payload, "schema_version": "1", "config_family": OURS, "at": str(START_MS), **fields}
    return str(server.xadd(QUEUE, {**carried, "message_id": fields.get("message_id", "m")}))


async def accepted(stage: Stage) -> list[str]:
    return [word(one.outcome) for one in await stage.backend.accept(9)]


async def sent(stage: Stage, server: redis.Redis, body: Any, **fields: str) -> list[str]:
    """Send a message and accept it; nothing of it is left in the stream."""
    produce(server, body, **fields)
    found = await accepted(stage)
    assert server.xlen(QUEUE) == 0
    return found


def status(server: redis.Redis) -> str:
    """What the documented row says."""
    row = server.get("plaita:execution:r")
    return str(json.loads(str(row))["status"]) if row else ""


def counted(server: redis.Redis, name: str) -> int:
    found: Any = server.hget("plaita:counters", name)
    return int(found or 0)


def reasons(server: redis.Redis) -> list[str]:
    found: Any = server.xrange(DLQ)
    return [json.loads(fields["payload"])["reason"].partition(":")[0] for _, fields in found]


async def parked(stage: Stage) -> None:
    await stage.settle(await stage.hold(), Park(None), arms=(listen(),))


async def test_row_01_the_row_says_what_was_reached(stage: Stage, server: redis.Redis) -> None:
    assert await sent(stage, server, START) == ["Started"]
    [claim] = await stage.take()
    await stage.settle(claim, End("completed", b"1"))
    assert (status(server), server.zcard("plaita:tenant_running:default")) == ("completed", 0)


async def test_row_02_a_failure_with_budget_left_is_due_again(stage: Stage, server: redis.Redis) -> None:
    due_ms = START_MS + 60_000
    await stage.settle(await stage.hold(), Park(due_ms, retry_ms=due_ms))
    view = await stage.backend.run(R)
    assert view is not None
    assert (status(server), view.retry_ms, server.xlen(QUEUE)) == ("running", due_ms, 0)


async def test_row_04_a_backoff_outlives_its_process(stage: Stage) -> None:
    due_ms = START_MS + 1_000
    claim = await stage.hold()
    await stage.settle(claim, Park(due_ms, retry_ms=due_ms))
    await stage.backend.release(claim.token.nonce.partition(".")[0])
    stage.clock.advance(1_000)
    assert len(await stage.take()) == 1


async def test_row_05_a_run_that_is_under_way_is_not_deleted(stage: Stage) -> None:
    await stage.settle(await stage.hold(), Park(START_MS + 1_000, retry_ms=START_MS + 1_000))
    assert await stage.backend.delete(R) == NotTerminal("running")


async def test_row_06_a_failure_without_budget_ends_in_error(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("error", error=b'{"message":"no","path":["pay"]}'))
    row = json.loads(str(server.get("plaita:execution:r")))
    assert (row["status"], row["error"]["message"], row["error"]["failed_node"]) == ("error", "no", "pay")


async def test_row_08_retries_of_a_deterministic_failure_are_counted(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("error", error=b"{}"))
    assert await sent(stage, server, {**RESUME, "resume_type": "retry"}) == ["Reopened"]
    assert server.get("plaita:execution:nofail:r") == "1"


async def test_row_09_a_failing_start_ends_once_and_leaves_no_dead_letter(stage: Stage, server: redis.Redis) -> None:
    await sent(stage, server, START)
    [claim] = await stage.take()
    await stage.settle(claim, End("error", error=b"{}"))
    assert (status(server), await stage.take(), reasons(server)) == ("error", [], [])


async def test_row_10_a_held_run_needs_nobody_to_go_on(stage: Stage, server: redis.Redis) -> None:
    await stage.keep(await stage.hold())
    before = await stage.backend.run(R)
    assert await sent(stage, server, START) == ["Started again"]
    assert await sent(stage, server, {**RESUME, "resume_type": "continue"}) == ["goes_on"]
    assert await sent(stage, server, {**RESUME, "resume_type": "retry"}) == ["goes_on"]
    assert await stage.backend.run(R) == before


async def test_row_11_a_run_whose_holder_is_gone_is_taken_when_its_lease_is_over(
    stage: Stage, server: redis.Redis
) -> None:
    await stage.hold()
    assert await sent(stage, server, {**RESUME, "resume_type": "continue"}) == ["goes_on"]
    early = await stage.take()
    await stage.lease_over()
    assert (early, len(await stage.take())) == ([], 1)


async def test_row_14_a_decision_waits_for_the_holder_to_read_it(stage: Stage, server: redis.Redis) -> None:
    claim = await stage.keep(await stage.hold(), listen())
    assert await sent(stage, server, EVENT) == ["Woken"]
    assert [mail.data for mail in (await stage.keep(claim)).mailbox] == [b"1"]


async def test_row_15_who_lost_the_lease_writes_nothing(stage: Stage) -> None:
    lost = await stage.hold()
    await stage.lease_over()
    await stage.take()
    before = await stage.backend.run(R)
    assert isinstance(await stage.settle(lost, Keep()), Stale)
    assert await stage.backend.run(R) == before


async def test_row_16_a_stale_binding_changes_nothing_and_is_counted(stage: Stage, server: redis.Redis) -> None:
    await parked(stage)
    data = {"subscription_id": "w", "event_type": "refund"}
    assert await sent(stage, server, {**RESUME, "resume_type": "event", "data": data}) == ["not_bound"]
    assert await sent(stage, server, {**EVENT, "data": {"subscription_id": "old"}}) == ["NoSuchWait"]
    assert (status(server), counted(server, "message_passed"), counted(server, "message_late")) == ("suspended", 1, 1)


async def test_row_17_an_event_for_a_wait_that_is_past_changes_nothing(stage: Stage, server: redis.Redis) -> None:
    await parked(stage)
    assert await sent(stage, server, EVENT) == ["Woken"]
    assert await sent(stage, server, EVENT, message_id="m2") == ["AlreadyResolved"]
    assert len(await stage.take()) == 1


async def test_row_18_what_cannot_be_read_leaves_its_message(stage: Stage, server: redis.Redis) -> None:
    await parked(stage)
    header = str(server.hget("plaita:run:r", "h"))
    server.hset("plaita:run:r", "h", "broken")
    produce(server, {**RESUME, "resume_type": "cancel"})
    with pytest.raises(Exception, match=r"JSON|parse|decode|answered|Expecting|invalid|input"):
        await stage.backend.accept(9)
    assert (server.xlen(QUEUE), reasons(server)) == (1, [])
    server.hset("plaita:run:r", "h", header)
    assert await accepted(stage) == ["Cancelled"]


async def test_row_23_a_process_that_cannot_load_a_definition_leaves_the_run(stage: Stage) -> None:
    await stage.backend.submit(start())
    assert await stage.take(lacks=frozenset({"closure"})) == []
    stage.clock.advance(1_000)
    assert len(await stage.take()) == 1


async def test_row_24_a_start_of_no_flow_ends_in_error(stage: Stage, server: redis.Redis) -> None:
    assert await sent(stage, server, {**START, "flow_id": "none"}) == ["Started"]
    assert (status(server), reasons(server)) == ("error", [])


async def test_row_25_a_message_for_nobody_is_a_dead_letter(stage: Stage, server: redis.Redis) -> None:
    assert await sent(stage, server, EVENT) == ["no_run"]
    await parked(stage)
    assert await sent(stage, server, {**EVENT, "flow_id": "other"}) == ["conflict"]
    assert (status(server), reasons(server)) == ("suspended", ["no_run", "conflict"])


async def test_row_26_a_start_under_the_id_of_another_flow_is_a_dead_letter(stage: Stage, server: redis.Redis) -> None:
    await stage.backend.publish_flow("other", "1", "closure9")
    await parked(stage)
    for flow_id in ("other", "nowhere"):
        assert await sent(stage, server, {**START, "flow_id": flow_id}) == ["conflict"]
    assert status(server) == "suspended"


async def test_row_27_a_run_goes_on_with_the_definition_it_began_with(stage: Stage, server: redis.Redis) -> None:
    await parked(stage)
    await stage.backend.publish_flow("flow", "9", "closure9")
    await sent(stage, server, EVENT)
    [claim] = await stage.take()
    assert claim.header.closure == "closure"


async def test_row_28_a_malformed_message_is_quoted(stage: Stage, server: redis.Redis) -> None:
    assert await sent(stage, server, "[" * 600) == ["invalid_payload"]
    found: Any = server.xrange(DLQ)
    assert json.loads(found[0][1]["payload"])["payload"] == "[" * 500


async def test_row_29_an_unknown_type_is_a_dead_letter(stage: Stage, server: redis.Redis) -> None:
    assert await sent(stage, server, {**START, "type": "dance"}) == ["unknown_type"]
    assert await sent(stage, server, {**RESUME, "resume_type": "dance"}) == ["unknown_resume_type"]


async def test_row_30_a_newer_envelope_is_a_dead_letter_and_touches_nothing(stage: Stage, server: redis.Redis) -> None:
    await parked(stage)
    assert await sent(stage, server, {**RESUME, "resume_type": "cancel"}, schema_version="2") == ["unsupported_schema"]
    assert status(server) == "suspended"


async def test_row_31_a_message_of_another_family_is_left_for_it(stage: Stage, server: redis.Redis) -> None:
    produce(server, START, config_family=THEIRS)
    assert (await accepted(stage), await accepted(stage)) == ([], [])
    assert (server.xlen(QUEUE), status(server), counted(server, "config_family_mismatch")) == (1, "", 1)


async def test_row_32_limits_of_others_keep_no_message(stage: Stage, server: redis.Redis) -> None:
    await accepted(stage)
    produce(server, START, budget_generation="bg1-6a07ef4af763")
    server.xreadgroup(GROUP, "somebody who died", {QUEUE: ">"})
    assert await accepted(stage) == ["Started"]


async def test_row_33_a_start_over_the_quota_waits_for_its_slot(stage: Stage, server: redis.Redis) -> None:
    first = await stage.hold("a")
    await stage.hold("b")
    assert await sent(stage, server, START) == ["Started"]
    assert (await stage.take(), status(server)) == ([], "queued")
    await stage.settle(first, End("completed", b"1"))
    assert [claim.header.run_id for claim in await stage.take()] == ["r"]


async def test_row_34_nothing_starts_for_a_tenant_that_is_off(stage: Stage, server: redis.Redis) -> None:
    server.set("plaita:tenant_status:epoch", "7")
    server.hset("plaita:tenant_status", "acme", "disabled")
    assert await sent(stage, server, {**START, "tenant_id": "acme"}) == ["tenant_disabled"]
    server.set("plaita:tenant_status:epoch", "8")
    assert await sent(stage, server, START) == ["stale_epoch"]
    assert (status(server), counted(server, "tenant_status_stale_epoch")) == ("", 1)


async def test_row_40_what_was_deleted_stays_deleted(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("completed", b"1"))
    await stage.backend.delete(R)
    assert await sent(stage, server, START) == ["tombstoned"]
    assert await sent(stage, server, EVENT) == ["no_run"]


async def test_row_41_an_old_message_starts_nothing(stage: Stage, server: redis.Redis) -> None:
    assert await sent(stage, server, {**START, "timestamp": "2020-01-01T00:00:00"}) == ["too_old"]
    assert await sent(stage, server, {**START, "timestamp": "soon"}) == ["Started"]
    assert counted(server, "time_unreadable") == 1


async def test_row_42_what_has_ended_stays_as_it_is(stage: Stage, server: redis.Redis) -> None:
    await stage.settle(await stage.hold(), End("completed", b"1"))
    assert await sent(stage, server, {**RESUME, "resume_type": "continue"}) == ["already_terminal"]
    assert await sent(stage, server, {**RESUME, "resume_type": "retry"}) == ["already_terminal"]
    assert await sent(stage, server, EVENT) == ["NoSuchWait"]
    assert (status(server), counted(server, "message_passed")) == ("completed", 2)


@pytest.mark.parametrize("kind", ["continue", "retry"])
async def test_row_43_a_run_that_waits_goes_on_waiting(stage: Stage, server: redis.Redis, kind: str) -> None:
    await parked(stage)
    assert await sent(stage, server, {**RESUME, "resume_type": kind}) == ["already_suspended"]
    assert (status(server), await stage.take()) == ("suspended", [])


@pytest.mark.parametrize("kind", ["continue", "retry"])
async def test_row_44_a_flagged_run_is_cancelled(stage: Stage, server: redis.Redis, kind: str) -> None:
    await parked(stage)
    server.set("plaita:execution:cancel:r", "now")
    assert await sent(stage, server, {**RESUME, "resume_type": kind}) == ["Cancelled"]
    assert status(server) == "cancelled"


async def test_row_46_what_nobody_finishes_dies_unless_its_run_is_under_way(stage: Stage, server: redis.Redis) -> None:
    await accepted(stage)
    await stage.settle(await stage.hold(), Park(None), arms=(hand(),))
    for message_id, body in (("m1", {**EVENT, "execution_id": "gone"}), ("m2", EVENT)):
        entry = produce(server, body, message_id=message_id)
        server.xreadgroup(GROUP, "m", {QUEUE: ">"})
        server.xclaim(QUEUE, GROUP, "m", 0, [entry], retrycount=5)
    assert await accepted(stage) == ["max_deliveries"]
    assert (server.xlen(QUEUE), counted(server, "dlq_guard_skipped"), status(server)) == (1, 1, "suspended")


async def test_row_47_a_store_that_is_away_stops_no_worker() -> None:
    away, telemetry = RedisBackend(f"redis://127.0.0.1:{free_port()}/0"), LogTelemetry()
    assert await accept_messages(away, telemetry) == 0
    assert telemetry.numbers()["plaita_store_unavailable"] == 1
    await away.close()
