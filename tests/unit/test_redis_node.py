"""``redis``: commands, replies, failures, against a real server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError, NodeExecutionError, PlaitaError
from plaita.core.flow import Flow
from plaita.engine.failure import FailureRaised
from plaita.node.redis import CLIENTS_MAX, Clients, as_json
from tests.servers import redis_over_tcp


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with redis_over_tcp() as url:
        yield url


def flow_with(given: dict[str, Any], **more: Any) -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "n"},
        {"type": "redis", "id": "n", "next": "e", **given},
        {"type": "end", "id": "e", "output": "$NODE.n"},
    ]
    return Flow.model_validate({"flow_id": "t", "nodes": nodes, **more})


def call(target: str, command: str, arguments: Any = None, **value: Any) -> Any:
    return flow_with({"target": target, "command": command, "arguments": arguments}).run(value)


def failing(target: Any, command: str, arguments: Any = None, **more: Any) -> NodeExecutionError:
    given = {"target": "$INPUT.target", "command": command, "arguments": arguments, **more}
    with pytest.raises(NodeExecutionError) as caught:
        flow_with(given).run(target=target)
    return caught.value


def test_every_field_is_evaluated(target: str) -> None:
    flow = flow_with({"target": "$INPUT.target", "command": "{% $INPUT.verb %}", "arguments": ["k1", "$INPUT.value"]})
    assert flow.run(target=target, verb="set", value="two words") is True
    assert call(target, "GET", "k1") == "two words"


def test_arguments_as_text_are_split_at_white_space(target: str) -> None:
    assert call(target, "RPUSH", "list1  a {% $INPUT.b %}\tc", b="b") == 3
    assert call(target, "LRANGE", ["list1", 0, -1]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("setting", "reading", "reply"),
    [
        (("SET", ["r1", "é"]), ("GET", ["r1"]), "é"), (("DEL", ["r2"]), ("GET", ["r2"]), None),
        (("HSET", ["r3", "a", 1, "b", "x"]), ("HGETALL", ["r3"]), {"a": "1", "b": "x"}),
        (("SADD", ["r4", "b", "a"]), ("SMEMBERS", ["r4"]), ["a", "b"]),
        (("ZADD", ["r5", 1.5, "m"]), ("ZSCORE", ["r5", "m"]), 1.5), (("SET", ["r6", 7]), ("INCR", ["r6"]), 8),
        (("SET", ["r7", "x"]), ("EXISTS", ["r7"]), 1), (("SET", ["r8", "x"]), ("TYPE", ["r8"]), "string"),
        (("SET", ["r9", "x"]), ("EVAL", ["return {1,{'a',false}}", 0]), [1, ["a", None]]),
    ],
)  # fmt: skip
def test_a_reply_is_json(target: str, setting: Any, reading: Any, reply: Any) -> None:
    call(target, *setting)
    assert call(target, *reading) == reply


def test_a_reply_that_is_no_text_is_a_named_error(target: str) -> None:
    call(target, "EVAL", ["return redis.call('SET', KEYS[1], '\\255\\254')", 1, "bin"])
    assert "the reply of GET holds bytes that are no UTF-8 text" in str(failing(target, "GET", ["bin"]))


def test_a_reply_without_a_form_in_json_is_a_named_error() -> None:
    with pytest.raises(FailureRaised, match="X was refused: no"):
        as_json(ValueError("no"), "X")


def test_an_error_of_the_server_is_not_tried_again(target: str) -> None:
    before = call(target, "INFO", "commandstats").get("cmdstat_lpush", {}).get("calls", 0)
    call(target, "SET", ["text", "x"])
    error = failing(target, "LPUSH", ["text", "y"], errorHandler={"retryTimes": 3})
    assert "WRONGTYPE" in str(error)
    assert call(target, "INFO", "commandstats")["cmdstat_lpush"]["calls"] == before + 1


def test_a_server_that_is_not_there_is_an_error_without_the_password() -> None:
    error = failing("redis://ann:secret@127.0.0.1:1/0", "GET", "k")
    assert "redis://***@127.0.0.1:1/0 failed: ConnectionError" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("command", ["SUBSCRIBE", "multi", "SELECT", "AUTH", "CLIENT REPLY", "MONITOR", "quit"])
def test_a_command_that_keeps_a_connection_is_refused(target: str, command: str) -> None:
    assert command.split()[0].upper() in str(failing(target, command, "x"))


@pytest.mark.parametrize("wrong", ["redis:///0", "http://h/", "h:6379", None, 7, "redis://h:x/"])
def test_a_target_without_a_host_is_an_error(wrong: Any) -> None:
    assert "write redis://HOST:PORT/DB" in str(failing(wrong, "GET", "k"))


@pytest.mark.parametrize("arguments", [[None], [True], [{"a": 1}], [["a"]]])
def test_an_argument_is_text_or_a_number(target: str, arguments: Any) -> None:
    assert "write text or a number" in str(failing(target, "GET", arguments))


@pytest.mark.parametrize(("field", "value"), [("target", ""), ("command", " "), ("arguments", 7), ("command", "$NOPE")])
def test_what_is_wrong_for_every_input_is_found_at_load(field: str, value: Any) -> None:
    with pytest.raises(FlowLoadError):
        flow_with({"target": "redis://h", "command": "GET", "arguments": "k", field: value})


def test_a_dry_run_sends_nothing() -> None:
    flow = flow_with(
        {"target": "redis://127.0.0.1:1", "command": "set", "arguments": "k v"}, globalContext={"dry_run": True}
    )
    assert flow.run() == {"dry_run": True, "skipped": "redis", "command": "SET"}


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(PlaitaError, match="the package redis is not installed") as caught:
        call("redis://h", "GET", "k")
    assert caught.value.kind == "not_supported"


async def test_a_hundred_commands_at_once_share_one_client(target: str) -> None:
    flow = flow_with({"target": target, "command": "INCR", "arguments": "many"})
    found = await asyncio.gather(*(flow.arun() for _ in range(100)))
    assert sorted(found) == list(range(1, 101))


async def test_idle_clients_beyond_the_bound_are_closed_oldest_first(target: str) -> None:
    clients = Clients()
    for database in range(CLIENTS_MAX + 2):
        async with clients.client(f"{target}/{database}") as client:
            await client.ping()
    assert len(clients) == CLIENTS_MAX
    async with clients.client(f"{target}/9") as client:
        assert await client.ping()
    await clients.close()


async def test_the_timeout_of_the_node_ends_a_blocking_command(target: str) -> None:
    given = {"target": target, "command": "BLPOP", "arguments": ["never", 0], "timeout": 100}
    handled = {**given, "timeoutHandler": {"strategy": "continue-with", "defaultValue": "gave up"}}
    assert await flow_with(handled).arun() == "gave up"
    assert await flow_with({"target": target, "command": "PING"}).arun() is True
