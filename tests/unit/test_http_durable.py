"""``http`` in a durable execution: what the history shows, which key a repetition has, how cancel reaches it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from plaita import Flow, Runtime
from plaita.base.errors import NodeExecutionError
from plaita.settings import load_settings, use_settings
from tests.support.http_stub import Reply, Seen, echo, serving


@pytest.fixture
def runtime() -> Iterator[Runtime]:
    quick = load_settings({"PLAITA_STORE": "memory:", "PLAITA_LEASE_RENEW_SECONDS": "0.1"})
    with Runtime.open(settings=quick) as opened:
        yield opened


QUERY = {"page": 3, "sig": "S1G"}


def flow_with(given: dict[str, Any], output: Any = "$NODE.h.status") -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "h"},
        {"type": "http", "id": "h", "next": "e", **given},
        {"type": "end", "id": "e", "output": output},
    ]
    return Flow.model_validate({"flow_id": "t", "nodes": nodes})


def test_the_history_shows_the_request_without_its_secrets(runtime: Runtime) -> None:
    headers = {"Authorization": "Bearer T0KEN", "X-Api-Key": "K3Y", "Accept": "text/x"}
    with serving(lambda _: Reply()) as stub:
        url = f"http://ann:pw@127.0.0.1:{stub.port}/x?token=S3CRET&page=2"
        handle = runtime.start(
            flow_with({"url": url, "headers": headers, "method": "POST", "query": QUERY, "body": {"n": 1}})
        )
        assert handle.wait()["output"] == 200
    (begun,) = [entry for entry in handle.history() if entry["event"] == "node_start"]
    assert begun["input"] == {
        "url": f"http://***@127.0.0.1:{stub.port}/x?token=***&page=2",
        "method": "POST",
        "query": {"page": 3, "sig": "***"},
        "body": {"n": 1},
        "headers": {"Authorization": "***", "X-Api-Key": "***", "Accept": "text/x"},
    }


def test_a_repetition_carries_the_key_of_the_first_attempt(runtime: Runtime) -> None:
    answers = iter([Reply(503), Reply(200)])
    handler = {"retry": {"attempts": 1, "base": 1}}
    with serving(lambda _: next(answers)) as stub:
        given = {"url": stub.url(), "method": "POST", "failOn": "5xx", "errorHandler": handler}
        assert runtime.start(flow_with(given)).wait()["output"] == 200
    keys = [seen.header("idempotency-key") for seen in stub.seen]
    assert keys[0] is not None and keys == [keys[0]] * 2


def test_the_settings_of_the_runtime_hold_for_its_nodes() -> None:
    strict = load_settings({"PLAITA_STORE": "memory:", "PLAITA_HTTP_BLOCK_PRIVATE": "yes"})
    try:
        with serving() as stub, Runtime.open(settings=strict) as runtime:
            handle = runtime.start(flow_with({"url": stub.url()}))
            assert handle.wait()["status"] == "error"
            with pytest.raises(NodeExecutionError, match="private networks are blocked"):
                handle.result()
    finally:
        use_settings(None)
    assert stub.connections == 0


def test_two_executions_have_different_keys(runtime: Runtime) -> None:
    with serving() as stub:
        for _ in range(2):
            runtime.start(flow_with({"url": stub.url(), "method": "POST"})).wait()
    first, second = (seen.header("idempotency-key") for seen in stub.seen)
    assert first != second


def test_cancel_hangs_up_a_request_that_is_under_way(runtime: Runtime) -> None:
    asked, lost = threading.Event(), threading.Event()

    def answering(_: Seen) -> Reply:
        asked.set()
        return Reply(hang=True)

    with serving(answering) as stub:
        stub.on_lost = lost.set
        handle = runtime.start(flow_with({"url": stub.url()}))
        driving = threading.Thread(target=handle.wait)
        driving.start()
        assert asked.wait(10)
        handle.cancel()
        assert lost.wait(10)
        driving.join(10)
    assert handle.inspect()["status"] == "cancelled"


def test_the_answer_is_what_later_nodes_read(runtime: Runtime) -> None:
    with serving(echo) as stub:
        flow = flow_with({"url": stub.url("/x"), "query": {"n": "$INPUT.n"}}, output="$NODE.h.data.path")
        assert runtime.start(flow, {"n": 3}).wait()["output"] == "/x?n=3"
