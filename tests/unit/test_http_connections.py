"""Connections of ``http``: to the address that was checked, kept, closed, and asked for once."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from plaita.base.clock import SystemClock
from plaita.engine.failure import FailureRaised
from plaita.node.network.connecting import Connections, connections_here, tls_context
from plaita.node.network.exchange import Answer, Limits, exchange
from plaita.node.network.headers import Request
from plaita.node.network.policy import Policy, read_hosts
from plaita.node.network.urls import read_url
from tests.support.http_stub import Reply, Seen, redirect, serving

HERE = Path(__file__).parents[1] / "support"
PUBLIC_ONLY = Policy(public_only=True)
PUBLIC, PRIVATE = "93.184.215.14", "127.0.0.1"


class Directory:
    """A name server under the test's control; each question gets the next answer, the last one for ever."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers, self.asked = list(answers), 0

    async def __call__(self, name: str) -> list[str]:
        self.asked += 1
        return self.answers[min(self.asked, len(self.answers)) - 1]


class HandClock(SystemClock):
    """Stands still until it is moved."""

    at_ms = 0.0

    def elapsed_ms(self) -> float:
        return self.at_ms


@asynccontextmanager
async def connected(lookup: Callable[[str], Awaitable[list[str]]]) -> AsyncIterator[Connections]:
    connections = Connections(100, lookup=lookup, clock=HandClock())
    try:
        yield connections
    finally:
        await connections.close()


def get(url: str) -> Request:
    return Request("GET", read_url(url), ())


async def fetch(connections: Connections, url: str, policy: Policy | None = None) -> Answer:
    return await exchange(connections, get(url), policy or Policy(), Limits(seconds=5))


async def kind_of(work: Awaitable[object]) -> str:
    with pytest.raises(FailureRaised) as caught:
        await work
    return caught.value.failure.kind


@pytest.mark.parametrize(
    "answers", [[PRIVATE], [PUBLIC, PRIVATE], [PRIVATE, PUBLIC], ["::1", PUBLIC], ["::ffff:10.0.0.1"]]
)
async def test_a_name_with_any_address_that_is_not_public_is_refused(answers: list[str]) -> None:
    with serving() as stub:
        async with connected(Directory(answers)) as connections:
            assert await kind_of(fetch(connections, stub.url(host="innocent.example"), PUBLIC_ONLY)) == "policy_denied"
    assert stub.connections == 0


async def test_a_name_is_asked_for_once_and_the_answer_that_was_checked_is_connected_to() -> None:
    rebinding = Directory([PUBLIC], [PRIVATE])
    with serving() as stub:
        async with connected(rebinding) as connections:
            allowed = Policy(allowed=read_hosts([f"{PUBLIC}/32"]))
            # Nothing listens at the public address from here: what matters is that nothing reaches the private one.
            request = exchange(connections, get(stub.url(host="rebind.example")), allowed, Limits(seconds=0.2))
            assert await kind_of(request) == "node_error"
    assert (rebinding.asked, stub.connections) == (1, 0)


async def test_a_kept_answer_is_checked_again_under_the_rules_of_each_request() -> None:
    with serving() as stub:
        async with connected(Directory([PRIVATE])) as connections:
            url = stub.url(host="here.example")
            assert (await fetch(connections, url)).status == 200
            assert await kind_of(fetch(connections, url, PUBLIC_ONLY)) == "policy_denied"
            assert await kind_of(fetch(connections, url, Policy(denied=read_hosts(["127.0.0.0/8"])))) == "policy_denied"
            assert (await fetch(connections, url)).status == 200
    assert (stub.connections, len(stub.seen)) == (1, 2)


async def test_a_redirect_to_a_name_that_resolves_to_a_private_address_is_refused() -> None:
    async def lookup(name: str) -> list[str]:
        return {"outer.example": ["127.0.0.2"], "inner.example": [PRIVATE]}[name]

    with serving() as inner, serving(lambda _: redirect(inner.url(host="inner.example")), host="127.0.0.2") as outer:
        async with connected(lookup) as connections:
            policy = Policy(denied=read_hosts(["127.0.0.1"]))
            assert await kind_of(fetch(connections, outer.url(host="outer.example"), policy)) == "policy_denied"
    assert (len(outer.seen), inner.connections) == (1, 0)


async def test_the_host_header_is_the_name_and_not_the_address() -> None:
    with serving() as stub:
        async with connected(Directory([PRIVATE])) as connections:
            await fetch(connections, stub.url(host="Shop.Example."))
    assert stub.seen[0].header("host") == f"shop.example:{stub.port}"


async def test_the_next_address_is_tried_when_one_cannot_be_connected_to() -> None:
    with serving(host="127.0.0.1") as stub:
        async with connected(Directory(["127.0.0.2", PRIVATE])) as connections:
            assert (await fetch(connections, stub.url(host="two.example"))).status == 200


async def test_many_who_ask_for_a_name_at_once_ask_once() -> None:
    directory = Directory([PRIVATE])
    with serving() as stub:
        async with connected(directory) as connections:
            await asyncio.gather(*(fetch(connections, stub.url(host="busy.example")) for _ in range(50)))
    assert directory.asked == 1


@pytest.mark.parametrize(("ttl", "waited_ms", "asked"), [(30, 29_999, 1), (30, 30_000, 2), (0, 0, 2)])
async def test_addresses_are_kept_as_long_as_the_setting_says(ttl: float, waited_ms: int, asked: int) -> None:
    clock, directory = HandClock(), Directory([PRIVATE])
    connections = Connections(1, lookup=directory, clock=clock)
    await connections.names.addresses("x.example", ttl)
    clock.at_ms += waited_ms
    await connections.names.addresses("x.example", ttl)
    assert directory.asked == asked


async def test_a_caller_that_gives_up_does_not_take_the_answer_from_the_others() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(_: str) -> list[str]:
        asked.set()
        await answer.wait()
        return [PRIVATE]

    async with connected(slow) as connections:
        first = asyncio.create_task(connections.names.addresses("x.example", 30))
        second = asyncio.create_task(connections.names.addresses("x.example", 30))
        await asked.wait()
        first.cancel()
        await asyncio.wait([first])
        answer.set()
        assert [str(one) for one in await second] == [PRIVATE]


async def test_a_request_that_may_be_repeated_survives_a_kept_connection_that_was_closed() -> None:
    with serving(lambda seen: Reply(close=seen.path == "/last")) as stub:
        async with connected(Directory([PRIVATE])) as connections:
            await fetch(connections, stub.url("/last", host="x.example"))
            assert (await fetch(connections, stub.url("/next", host="x.example"))).status == 200
    assert [seen.path for seen in stub.seen] == ["/last", "/next"]


@pytest.mark.parametrize(
    ("method", "key", "sent"),
    [("GET", None, 3), ("PUT", None, 3), ("POST", "k", 2), ("POST", None, 2), ("PATCH", None, 2)],
)
async def test_a_request_on_a_connection_that_dies_is_sent_again_only_when_that_is_safe(
    method: str, key: str | None, sent: int
) -> None:
    def answering(_: Seen) -> Reply:
        return Reply(raw=b"", close=True) if len(stub.seen) == 2 else Reply()

    with serving(answering) as stub:
        async with connected(Directory([PRIVATE])) as connections:
            await fetch(connections, stub.url(host="x.example"))
            headers = (("Idempotency-Key", key),) if key else ()
            request = Request(method, read_url(stub.url(host="x.example")), headers, b"{}")
            if sent == 3:
                assert (await exchange(connections, request, Policy(), Limits())).status == 200
            else:
                assert await kind_of(exchange(connections, request, Policy(), Limits())) == "node_error"
    assert len(stub.seen) == sent


async def test_no_more_requests_are_open_at_once_than_the_setting_says() -> None:
    with serving() as stub:
        connections = Connections(3)
        await asyncio.gather(*(fetch(connections, stub.url()) for _ in range(30)))
        await connections.close()
    assert (stub.connections <= 3, len(stub.seen)) == (True, 30)


def test_a_loop_that_ends_closes_its_connections() -> None:
    lost = []

    async def main(url: str) -> None:
        connections = await connections_here(10)
        assert connections is await connections_here(10)
        await fetch(connections, url)

    with serving() as stub:
        stub.on_lost = lambda: lost.append(1)
        for _ in range(3):
            asyncio.run(main(stub.url()))
        asyncio.run(main(stub.url()))
    assert stub.connections == len(lost) == 4


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(HERE / "service.example.pem")
    return context


async def test_a_certificate_must_be_that_of_the_name_although_an_address_is_connected_to() -> None:
    tls_context().load_verify_locations(HERE / "service.example.pem")
    with serving(tls=server_context()) as stub:
        async with connected(Directory([PRIVATE])) as connections:
            assert (await fetch(connections, stub.url(host="service.example"))).status == 200
            assert await kind_of(fetch(connections, stub.url(host="other.example"))) == "node_error"
            assert await kind_of(fetch(connections, stub.url())) == "node_error"
    assert stub.seen[0].header("host") == f"service.example:{stub.port}"
    assert len(stub.seen) == 1
