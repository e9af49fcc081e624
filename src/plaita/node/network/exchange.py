"""Sending a request until its answer is there: redirects by hand, each hop under the policy, one deadline for all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

import httpcore

from plaita.base.errors import PolicyDenied
from plaita.engine.failure import FailureRaised
from plaita.node.network.bodies import read_body
from plaita.node.network.connecting import Connection, Connections
from plaita.node.network.failures import cannot_build, denied, send_failed
from plaita.node.network.headers import REDIRECTS, Request, header_object, on_the_wire, redirected
from plaita.node.network.policy import Policy
from plaita.node.network.urls import joined, masked


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one exchange. ``seconds`` covers everything from the first connection to the last byte, redirects included.

    ``redirects`` of 0 follows none: the redirect is the answer.
    """

    seconds: float = 30.0
    redirects: int = 5
    response_bytes: int = 10_485_760
    dns_ttl_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back at the end. ``body`` is decompressed, ``headers`` are as they were sent."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes
    method: str
    url: str

    def header(self, name: str) -> str:
        """A header by its name in lower case, empty when there is none."""
        return next((value for known, value in self.headers.items() if known.lower() == name), "")


async def exchange(connections: Connections, request: Request, policy: Policy, limits: Limits) -> Answer:
    """Send and follow redirects. Raises ``FailureRaised`` (1001 to 1003).

    Waiting for a turn is not part of the deadline: it says nothing about the other side.
    """
    async with connections.turns:
        try:
            async with asyncio.timeout(limits.seconds) as deadline:
                return await _follow(connections, request, policy, limits)
        except TimeoutError:
            if not deadline.expired():
                raise send_failed(f"{_named(request)} timed out") from None
            raise send_failed(f"{_named(request)} has no whole answer after {limits.seconds:g} s") from None
        except PolicyDenied as e:
            raise denied(f"{_named(request)}: {e}") from None
        except httpcore.LocalProtocolError as e:
            raise cannot_build(f"{_named(request)} cannot be sent: {e}") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as e:
            raise send_failed(f"{_named(request)} failed: {_said(e)}") from None


def _named(request: Request) -> str:
    return f"{request.method} {masked(str(request.url))}"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _follow(connections: Connections, request: Request, policy: Policy, limits: Limits) -> Answer:
    hops = 0
    while True:
        policy.check_host(request.url.scheme, request.url.name)
        answer = await _round(connections, request, policy, limits)
        location = answer.header("location")
        if answer.status not in REDIRECTS or not location or limits.redirects == 0:
            return answer
        if hops == limits.redirects:
            raise send_failed(f"{_named(request)} was redirected more than {limits.redirects} times", retryable=False)
        hops += 1
        try:
            url = joined(request.url, location)
        except FailureRaised as e:
            raise send_failed(e.failure.message, retryable=False) from None
        request = redirected(request, answer.status, url)


async def _round(connections: Connections, request: Request, policy: Policy, limits: Limits) -> Answer:
    """One request and its answer. A kept connection that the other side closed meanwhile is replaced once."""
    connection = await connections.take(request.url, policy, dns_ttl_seconds=limits.dns_ttl_seconds)
    try:
        response = await _send(connections, connection, request)
    except (httpcore.NetworkError, httpcore.RemoteProtocolError, httpcore.ConnectionNotAvailable):
        if not connection.used or not request.repeatable:
            raise
        connection = await connections.take(request.url, policy, dns_ttl_seconds=limits.dns_ttl_seconds, fresh=True)
        response = await _send(connections, connection, request)
    try:
        return await _answer(response, request, limits)
    finally:
        await response.aclose()
        await connections.give_back(connection)


async def _send(connections: Connections, connection: Connection, request: Request) -> httpcore.Response:
    try:
        return await connection.http.handle_async_request(_wired(request))
    except BaseException:
        await connections.give_back(connection)
        raise


def _wired(request: Request) -> httpcore.Request:
    url = request.url
    headers = [(name.encode(), on_the_wire(value)) for name, value in request.headers]
    if request.header("host") is None:
        headers.insert(0, (b"Host", url.authority.encode()))
    if request.body is not None:
        headers.append((b"Content-Length", b"%d" % len(request.body)))
    elif request.method in ("POST", "PUT", "PATCH"):
        headers.append((b"Content-Length", b"0"))
    target = httpcore.URL(scheme=url.scheme, host=url.host, port=url.port, target=url.target)
    return httpcore.Request(request.method, target, headers=headers, content=request.body or b"")


async def _answer(response: httpcore.Response, request: Request, limits: Limits) -> Answer:
    headers = header_object(response.headers)
    coding = next((value for name, value in headers.items() if name.lower() == "content-encoding"), "")
    body = await read_body(response.aiter_stream(), coding, limits.response_bytes)
    reason = response.extensions.get("reason_phrase", b"").decode("latin-1") or _phrase(response.status)
    return Answer(response.status, reason, headers, body, request.method, masked(str(request.url)))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
