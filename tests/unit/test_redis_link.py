"""The connection to Redis against a server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from plaita.backends.redis import RedisBackend
from plaita.backends.redis.address import read_address
from plaita.backends.redis.link import Link
from plaita.backends.redis.scripts import Script
from plaita.base.errors import NotSupported, Unavailable
from plaita.ports.values import RunId
from plaita.testing.simulation.random_flows import Dice
from tests.servers import free_port, redis_over_tcp

INFO = "redis_version:7.0.15\r\nrole:master\r\ncluster_enabled:0\r\nloading:0\r\nmaxmemory_policy:noeviction\r\n"
SCRIPT = Script("verb", "lib_verb", "#!lua name=lib\n", ())
Words = list[bytes]
Talker = Callable[["Caller"], Awaitable[None]]


class Caller:
    """One connection as the server sees it: commands come in, bytes go out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def hear(self) -> Words:
        """The next command that is no part of the greeting."""
        while (words := await self._words())[0] in (b"CLIENT", b"SELECT", b"AUTH", b"INFO"):
            self.say(f"${len(self.info)}\r\n{self.info}\r\n" if words[0] == b"INFO" else "+OK\r\n")
        return words

    info = INFO

    async def _words(self) -> Words:
        count = int((await self._reader.readuntil())[1:])
        words = []
        for _ in range(count):
            size = int((await self._reader.readuntil())[1:])
            words.append((await self._reader.readexactly(size + 2))[:-2])
        return words

    def say(self, text: str) -> None:
        self._writer.write(text.encode())

    async def end(self, text: str) -> None:
        """Say that much, and no more."""
        self.say(text)
        self._writer.write_eof()
        await self._reader.read()

    def cut(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def server(path: Path, talk: Talker) -> AsyncIterator[Link]:
    """A server that does what ``talk`` does with each connection, and a link to it."""
    callers: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        callers.add(task)
        try:
            await talk(Caller(reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.transport.abort()

    place = path / "s"
    running = await asyncio.start_unix_server(serve, place)
    link = Link(read_address(f"unix://{place}"))
    try:
        yield link
    finally:
        await link.close()
        running.close()
        for task in callers:
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)


async def echo(caller: Caller) -> None:
    """Answers each command with its last word."""
    while True:
        word = (await caller.hear())[-1].decode()
        caller.say(f"${len(word)}\r\n{word}\r\n")


async def test_the_replies_after_a_call_that_was_given_up_still_belong_to_their_calls(tmp_path: Path) -> None:
    heard, given_up = asyncio.Event(), asyncio.Event()

    async def late(caller: Caller) -> None:
        words = [(await caller.hear())[-1].decode() for _ in range(3)]
        heard.set()
        await given_up.wait()
        for word in words:
            caller.say(f"+{word}\r\n")
        await echo(caller)

    async with server(tmp_path, late) as link:
        calls = [link.call("ECHO", word) for word in "abc"]
        await heard.wait()
        calls[1].cancel()
        given_up.set()
        assert await calls[0] == b"a"
        assert await calls[2] == b"c"
        assert await link.call("ECHO", "d") == b"d"


async def test_a_cut_fails_what_was_under_way_and_nothing_is_sent_twice(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def cutting(caller: Caller) -> None:
        while True:
            heard.append((await caller.hear())[-1])
            if heard[-1] == b"b":
                caller.cut()
            caller.say("+ok\r\n")

    async with server(tmp_path, cutting) as link:
        assert await link.call("ECHO", "a") == b"ok"
        with pytest.raises(Unavailable, match="was lost before it answered"):
            await link.call("ECHO", "b")
        assert await link.call("ECHO", "c") == b"ok"
    assert heard == [b"a", b"b", b"c"]


async def test_what_had_not_left_when_the_connection_broke_leaves_on_the_next(tmp_path: Path) -> None:
    connections = 0

    async def first_is_cut(caller: Caller) -> None:
        nonlocal connections
        connections += 1
        if connections > 1:
            await echo(caller)
        await caller.hear()
        caller.cut()

    async with server(tmp_path, first_is_cut) as link:
        lost = link.call("ECHO", "lost")
        await asyncio.wait([lost])
        kept = link.call("ECHO", "kept")
        assert isinstance(lost.exception(), Unavailable)
        assert await kept == b"kept"


@pytest.mark.parametrize("upto", [0, 1, 7, 20])
async def test_a_reply_cut_in_the_middle_is_no_reply(tmp_path: Path, upto: int) -> None:
    begun = False

    async def half(caller: Caller) -> None:
        nonlocal begun
        if begun:
            await echo(caller)
        begun = True
        await caller.hear()
        await caller.end("*2\r\n$5\r\nfirst\r\n$6\r\nsecond\r\n"[:upto])

    async with server(tmp_path, half) as link:
        with pytest.raises(Unavailable):
            await link.call("ECHO", "a")
        assert await link.call("ECHO", "b") == b"b"


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_is_cut_or_given_up_a_reply_belongs_to_its_call(tmp_path: Path, seed: int) -> None:
    dice = Dice(seed)
    heard: Counter[bytes] = Counter()

    async def rough(caller: Caller) -> None:
        while True:
            word = (await caller.hear())[-1]
            heard[word] += 1
            reply = f"*2\r\n${len(word)}\r\n{word.decode()}\r\n:1\r\n"
            if dice.chance(2):
                await caller.end(reply[: dice.below(len(reply))])
                return
            caller.say(reply)

    async def ask(word: bytes) -> str:
        call = link.call("ECHO", word)
        if dice.chance(20):
            asyncio.get_running_loop().call_later(dice.below(1000) / 1_000_000, call.cancel)
        try:
            return "answered" if await call == [word, 1] else "wrong"
        except Unavailable:
            return "lost"
        except asyncio.CancelledError:
            return "given up"

    async with server(tmp_path, rough) as link:
        words = [f"{n}-{'x' * dice.below(200)}".encode() for n in range(400)]
        ends = Counter[str]()
        while words:
            portion, words = words[:40], words[40:]
            ends.update(await asyncio.gather(*map(ask, portion)))
    assert ends["wrong"] == 0
    assert ends["answered"] > 100
    assert max(heard.values()) == 1, "nothing is sent twice"


UNKNOWN = "-ERR Function not found\r\n"
CALL = [b"FCALL", b"lib_verb", b"0"]
LOAD = [b"FUNCTION", b"LOAD", b"REPLACE", SCRIPT.text.encode()]


async def test_a_server_without_the_library_is_given_it_once_for_all_calls(tmp_path: Path) -> None:
    heard: list[Words] = []

    async def forgetful(caller: Caller) -> None:
        while True:
            heard.append(await caller.hear())
            caller.say(":1\r\n" if LOAD in heard else UNKNOWN)

    async with server(tmp_path, forgetful) as link:
        assert await asyncio.gather(*(link.run(SCRIPT, [n]) for n in range(3))) == [1, 1, 1]
    calls = [[*CALL, b"0"], [*CALL, b"1"], [*CALL, b"2"]]
    assert heard == [*calls, LOAD, *calls]


async def test_a_library_that_is_removed_again_is_loaded_again(tmp_path: Path) -> None:
    answers = iter([UNKNOWN, "+lib\r\n", UNKNOWN, "+lib\r\n", ":1\r\n"])

    async def forgetful(caller: Caller) -> None:
        while True:
            await caller.hear()
            caller.say(next(answers))

    async with server(tmp_path, forgetful) as link:
        assert await link.run(SCRIPT, []) == 1


async def test_a_server_that_refuses_the_library_is_asked_again_by_the_next_call(tmp_path: Path) -> None:
    answers = iter([UNKNOWN, "-OOM command not allowed\r\n", UNKNOWN, UNKNOWN, "+lib\r\n", ":1\r\n"])

    async def full(caller: Caller) -> None:
        while True:
            await caller.hear()
            caller.say(next(answers))

    async with server(tmp_path, full) as link:
        with pytest.raises(Unavailable, match="is full"):
            await link.run(SCRIPT, [])
        assert await link.run(SCRIPT, []) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        "LOADING Redis is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "MASTERDOWN Link with MASTER is down",
        "BUSY Redis is busy running a script",
        "MISCONF Errors writing to the AOF file",
        "NOREPLICAS Not enough good replicas to write.",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "NOPERM this user has no permissions",
    ],
)
async def test_what_passes_is_unavailable_and_the_next_call_goes_through(tmp_path: Path, refusal: str) -> None:
    refused = False

    async def refusing(caller: Caller) -> None:
        nonlocal refused
        while not refused:
            await caller.hear()
            refused = True
            caller.say(f"-{refusal}\r\n")
        await echo(caller)

    async with server(tmp_path, refusing) as link:
        with pytest.raises(Unavailable):
            await link.call("SET", "k", "v")
        assert await link.call("ECHO", "a") == b"a"


async def test_a_demoted_master_is_left(tmp_path: Path) -> None:
    connections = 0

    async def demoted(caller: Caller) -> None:
        nonlocal connections
        connections += 1
        if connections > 1:
            await echo(caller)
        while True:
            await caller.hear()
            caller.say("-READONLY You can't write against a read only replica.\r\n")

    async with server(tmp_path, demoted) as link:
        with pytest.raises(Unavailable, match="cannot now"):
            await link.call("SET", "k", "v")
        assert await link.call("ECHO", "a") == b"a"


async def test_a_reply_that_nobody_asked_for_ends_the_connection(tmp_path: Path) -> None:
    connections = 0

    async def chatty(caller: Caller) -> None:
        nonlocal connections
        connections += 1
        if connections > 1:
            await echo(caller)
        await caller.hear()
        caller.say("+one\r\n+two\r\n")
        await caller.hear()

    async with server(tmp_path, chatty) as link:
        assert await link.call("ECHO", "a") == b"one"
        asked = [link.call("ECHO", word) for word in "bc"]
        await asyncio.wait(asked)
        assert b"two" not in [a.result() for a in asked if a.exception() is None]
        assert await link.call("ECHO", "d") == b"d"


async def test_a_command_that_cannot_be_written_down_fails_alone(tmp_path: Path) -> None:
    async with server(tmp_path, echo) as link:
        with pytest.raises(UnicodeEncodeError):
            link.call("ECHO", "\ud800")
        assert await link.call("ECHO", "a") == b"a"


async def test_a_server_that_stops_answering_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaita.backends.redis.link.LOOK_S", 0.01)
    connections = 0

    async def mute(caller: Caller) -> None:
        nonlocal connections
        connections += 1
        if connections > 1:
            await echo(caller)
        await caller.hear()
        await asyncio.get_running_loop().create_future()

    async with server(tmp_path, mute) as link:
        # More than the sockets hold: the send itself waits for a server that does not read.
        lost = [link.call("ECHO", b"x" * 900_000) for _ in range(8)]
        await asyncio.wait(lost)
        # What had not left yet went over the next connection. How much that is differs between releases of Python.
        assert Unavailable in (kinds := {type(one.exception()) for one in lost})
        assert kinds <= {Unavailable, type(None)}
        assert await link.call("ECHO", "a") == b"a"


async def test_a_server_that_accepts_and_says_nothing_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaita.backends.redis.link.CONNECT_S", 0.05)

    async def mute(caller: Caller) -> None:
        await asyncio.get_running_loop().create_future()

    async with server(tmp_path, mute) as link:
        with pytest.raises(Unavailable, match="no answer within"):
            await link.call("ECHO", "a")


async def test_a_server_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    link = Link(read_address(f"unix://{tmp_path / 'none'}"))
    with pytest.raises(Unavailable, match="cannot be reached") as caught:
        await link.call("ECHO", "a")
    assert "redis-server" in caught.value.hint
    await link.close()


async def test_a_port_that_nobody_listens_on_is_told_in_the_words_of_the_system() -> None:
    link = Link(read_address(f"redis://127.0.0.1:{free_port()}"))
    with pytest.raises(Unavailable, match=r"cannot be reached: Connection refused$"):
        await link.call("ECHO", "a")
    await link.close()


async def test_who_expects_tls_of_a_server_without_it_is_told_to_look_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaita.backends.redis.link.CONNECT_S", 0.2)
    with redis_over_tcp() as url:
        link = Link(read_address(url.replace("redis://", "rediss://")))
        with pytest.raises(Unavailable, match="cannot be reached") as caught:
            await link.call("ECHO", "a")
        await link.close()
    assert "serves TLS there" in caught.value.hint


async def test_a_server_that_hangs_up_on_a_greeting_may_be_one_with_tls() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        # What was sent and not read makes the end a reset.
        writer.transport.abort()

    async with await asyncio.start_server(hang_up, "127.0.0.1", port := free_port()):
        link = Link(read_address(f"redis://127.0.0.1:{port}"))
        with pytest.raises(Unavailable, match="cannot be reached") as caught:
            await link.call("ECHO", "a")
        await link.close()
    assert "begins with rediss://" in caught.value.hint


async def test_a_server_that_is_taken_for_a_sentinel_is_told_to_be_none() -> None:
    with redis_over_tcp() as url:
        link = Link(read_address(f"{url.replace('redis://', 'redis+sentinel://')}/service"))
        with pytest.raises(Unavailable, match="answers, and is no Sentinel") as caught:
            await link.call("ECHO", "a")
        await link.close()
    assert "redis://HOST:PORT/DB" in caught.value.hint


async def test_closing_fails_what_waits_and_what_comes_later(tmp_path: Path) -> None:
    heard = asyncio.Event()

    async def mute(caller: Caller) -> None:
        await caller.hear()
        heard.set()
        await caller.hear()

    async with server(tmp_path, mute) as link:
        waits = link.call("ECHO", "a")
        await heard.wait()
        await link.close()
        with pytest.raises(Unavailable, match="was closed"):
            await waits
        with pytest.raises(Unavailable, match="was closed"):
            await link.call("ECHO", "b")


def test_a_link_begins_anew_on_the_next_event_loop(tmp_path: Path) -> None:
    link = Link(read_address(f"unix://{tmp_path / 's'}"))

    async def ask(word: str) -> Any:
        async with server(tmp_path, echo) as _:
            return await link.call("ECHO", word)

    assert asyncio.run(ask("a")) == b"a"
    (tmp_path / "s").unlink(missing_ok=True)
    assert asyncio.run(ask("b")) == b"b"


async def test_a_link_is_not_shared_by_two_running_loops(tmp_path: Path) -> None:
    async with server(tmp_path, echo) as link:
        assert await link.call("ECHO", "a") == b"a"

        def other() -> None:
            asyncio.run(ask())

        async def ask() -> None:
            with pytest.raises(RuntimeError, match="two event loops"):
                await link.call("ECHO", "b")

        await asyncio.to_thread(other)


async def test_a_large_verb_does_not_hold_up_the_verbs_of_runs(tmp_path: Path) -> None:
    nothing = {b"HGET": "$-1\r\n", b"HGETALL": "*0\r\n"}

    async def slow(caller: Caller) -> None:
        while True:
            if (answer := nothing.get((await caller.hear())[0])) is not None:
                caller.say(answer)

    async with server(tmp_path, slow):
        store = RedisBackend(f"unix://{tmp_path / 's'}")
        publishing = asyncio.create_task(store.publish("e1", "go", None, b"1"))
        assert await store.frames(RunId("r")) == {}
        assert not publishing.done()
        publishing.cancel()
        await store.close()


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ("redis_version:6.2.14\r\n", NotSupported, "Redis 6.2.14; 7.0 or newer"),
        ("redis_version:7.2.0\r\ncluster_enabled:1\r\n", NotSupported, "Redis Cluster"),
        ("redis_version:7.2.0\r\nrole:slave\r\n", Unavailable, "replica"),
        ("redis_version:7.2.0\r\nrole:master\r\nloading:1\r\n", Unavailable, "reading its data back"),
    ],
)
async def test_a_server_that_cannot_hold_a_store_is_refused_in_words(
    tmp_path: Path, told: str, error: type[Exception], words: str
) -> None:
    async def other(caller: Caller) -> None:
        caller.info = told
        await caller.hear()

    async with server(tmp_path, other) as link:
        with pytest.raises(error, match=words):
            await link.call("ECHO", "a")
