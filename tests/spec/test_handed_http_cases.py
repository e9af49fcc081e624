"""Cases from reports about systems like this one that are about ``http``: addresses, redirects, bodies."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from plaita.core.flow import Flow
from tests.spec.handed import cases_of, ending, holds, read_case
from tests.support.http_stub import JSON_TYPE, Reply, Stub, redirect, serving

IDS = (
    "068-http-nan-body",
    "070-ssrf-unspecified-v6",
    "075-ssrf-decimal",
    "076-ssrf-octal-short",
    "077-ssrf-multicast-broadcast",
    "079-redirect-drops-custom-secret",
)
SECRETS = {"authorization", "x-api-key", "cookie"}

_connects: list[list[object]] = []


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        for watching in _connects:
            watching.append(arguments[1])


sys.addaudithook(_note)


@contextmanager
def connects() -> Iterator[list[object]]:
    """Where this process connects to while the block lasts, told by the interpreter itself."""
    found: list[object] = []
    _connects.append(found)
    try:
        yield found
    finally:
        _connects.remove(found)


def play(given: dict[str, Any], port: int) -> dict[str, Any]:
    """The value of a flow, or the kind and text of its error."""
    flow = Flow.from_string(json.dumps(given["flow"]).replace("PORT", str(port)))
    return ending(lambda: flow.run(given["input"]))


def floats(value: Any) -> Iterator[float]:
    """Every float in a value."""
    if isinstance(value, float):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from floats(one)


def test_a_body_that_is_no_json_leaves_no_nan_in_the_state() -> None:
    case = read_case("068-http-nan-body")
    assert case["given"]["server"] == 'answers application/json with body {"v": NaN}'
    assert case["expect"]["never"] == "a float nan in the stored state"
    with serving(lambda _: Reply(200, JSON_TYPE, b'{"v": NaN}')) as stub:
        found = play(case["given"], stub.port)
    assert holds(case["expect"], found), found
    assert not any(math.isnan(number) for number in floats(found))


@pytest.mark.parametrize("name", [name for name in IDS if "-ssrf-" in name])
def test_an_address_that_is_not_public_is_refused_before_a_connection_is_opened(name: str) -> None:
    case = read_case(name)
    assert case["expect"]["invariant"] == "no TCP connection is opened"
    with serving(host=None) as stub, connects() as opened:
        found = play(case["given"], stub.port)
    assert holds(case["expect"], found), found
    assert (opened, stub.connections) == ([], 0)


def test_the_watch_over_connections_sees_them() -> None:
    with serving() as stub, connects() as opened:
        flow = read_case("075-ssrf-decimal")["given"]["flow"]
        flow["nodes"][1]["block_private_networks"] = False
        play({"flow": flow, "input": {}}, stub.port)
    assert (opened, stub.connections) == ([("127.0.0.1", stub.port)], 1)


def test_a_redirect_to_another_server_takes_no_secret_along() -> None:
    case = read_case("079-redirect-drops-custom-secret")
    assert case["given"]["server"] == "A answers 302 to a server on another port"
    assert case["expect"]["invariant"] == "the second server receives none of the three headers"
    with serving() as second, serving(lambda _: redirect(second.url())) as first:
        found = play(case["given"], first.port)
    assert holds(case["expect"], found), found
    assert found == {"value": 200}
    assert _sent(first) & SECRETS == SECRETS
    assert not _sent(second) & SECRETS


def _sent(stub: Stub) -> set[str]:
    assert stub.seen
    return stub.names()


def test_every_case_about_requests_is_played_here() -> None:
    about = {
        case["id"]
        for case in cases_of("node", "security")
        if any(node["type"] == "http" for node in case["given"].get("flow", {}).get("nodes", []))
    }
    assert about == set(IDS)
