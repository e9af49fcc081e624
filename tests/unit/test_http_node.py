"""``http``: what is sent, what comes back, how it fails."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError, NodeExecutionError, NodeTimeoutError
from plaita.core.flow import Flow
from plaita.settings import Settings, use_settings
from plaita.settings.declared import HttpSettings
from tests.support.http_stub import JSON_TYPE, Reply, Seen, Stub, as_json, echo, serving


def flow_with(given: dict[str, Any], output: Any = "$NODE.h", **more: Any) -> Flow:
    nodes = [
        {"type": "start", "id": "s", "next": "h"},
        {"type": "http", "id": "h", "next": "e", **given},
        {"type": "end", "id": "e", "output": output},
    ]
    return Flow.model_validate({"flow_id": "t", "nodes": nodes, **more})


def call(given: dict[str, Any], value: dict[str, Any] | None = None) -> Any:
    return flow_with(given).run(value or {})


def failing(given: dict[str, Any], value: dict[str, Any] | None = None) -> NodeExecutionError:
    with pytest.raises(NodeExecutionError) as caught:
        call(given, value)
    return caught.value


@pytest.fixture(scope="module")
def echoing() -> Iterator[Stub]:
    with serving(echo) as stub:
        yield stub


def test_the_result_is_data_status_text_and_headers() -> None:
    with serving(lambda _: as_json({"ok": True}, 201)) as stub:
        result = call({"url": stub.url("/x")})
    assert result == {
        "data": {"ok": True},
        "status": 201,
        "statusText": "Created",
        "headers": {"Content-Type": "application/json", "Content-Length": "12"},
    }


def test_every_field_is_evaluated(echoing: Stub) -> None:
    fields = {
        "url": "http://127.0.0.1:{% $INPUT.port %}/{% $INPUT.what %}",
        "method": "$INPUT.method",
        "query": {"page": "$INPUT.page"},
        "headers": {"X-Who": "{% $INPUT.who %}"},
        "body": {"total": "$INPUT.page + 1"},
        "contentType": "$INPUT.type",
        "requestTimeout": "$INPUT.seconds",
        "maxRedirects": "$INPUT.hops",
        "allowedHosts": "$INPUT.hosts",
        "deniedHosts": ["{% $INPUT.enemy %}"],
        "blockPrivateNetworks": "$INPUT.block",
        "failOn": "$INPUT.fail",
        "idempotencyKey": "$INPUT.key",
    }
    given = {
        "port": echoing.port, "what": "orders", "method": "put", "page": 4, "who": "ann", "seconds": 5, "hops": 1,
        "type": "application/vnd.x+json", "hosts": ["127.0.0.1"], "enemy": "evil.org", "block": False, "fail": [404],
        "key": False,
    }  # fmt: skip
    data = call(fields, given)["data"]
    assert (data["method"], data["path"], data["body"]) == ("PUT", "/orders?page=4", '{"total":5}')
    assert data["headers"]["X-Who"] == "ann"
    assert data["headers"]["Content-Type"] == "application/vnd.x+json"
    assert "Idempotency-Key" not in data["headers"]


@pytest.mark.parametrize(
    ("snake", "camel", "value"),
    [
        ("content_type", "contentType", "text/plain"), ("request_timeout", "requestTimeout", 3),
        ("max_redirects", "maxRedirects", 2), ("allowed_hosts", "allowedHosts", ["127.0.0.1"]),
        ("denied_hosts", "deniedHosts", ["evil.org"]), ("block_private_networks", "blockPrivateNetworks", False),
        ("fail_on", "failOn", "5xx"), ("idempotency_key", "idempotencyKey", True), ("addressing", "addressing", {}),
        ("delegate", "delegate", {}),
    ],
)  # fmt: skip
def test_every_field_answers_to_both_spellings(snake: str, camel: str, value: Any) -> None:
    for spelling in (snake, camel):
        flow = flow_with({"url": "http://h/", spelling: value})
        assert getattr(flow.nodes[1], snake) == value
        assert flow.issues == ()


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"a": None, "b": [1, None, "x y"], "c": True}, "/p?b=1&b=x+y&c=true"),
        ({"d": "é&=", "e": {"k": [1]}}, "/p?d=%C3%A9%26%3D&e=%7B%22k%22%3A+%5B1%5D%7D"),
        ({}, "/p"), (None, "/p"), ({"a": None}, "/p"), ("?a=1&b=2", "/p?a=1&b=2"),
    ],
)  # fmt: skip
def test_in_a_query_null_is_left_out_and_a_list_is_repeated(echoing: Stub, query: Any, path: str) -> None:
    assert call({"url": echoing.url("/p"), "query": query})["data"]["path"] == path


def test_a_query_is_added_to_that_of_the_url_and_before_its_fragment(echoing: Stub) -> None:
    assert call({"url": echoing.url("/p?x=1#there"), "query": {"y": 2}})["data"]["path"] == "/p?x=1&y=2"


def test_headers_that_are_no_text_are_written_as_json_and_null_is_left_out(echoing: Stub) -> None:
    given = {"X-N": 7, "X-B": True, "X-None": None, "X-U": "grün", "Content-Length": 99, "Transfer-Encoding": "chunked"}
    headers = call({"url": echoing.url(), "headers": given})["data"]["headers"]
    assert (headers["X-N"], headers["X-B"], headers["X-U"]) == ("7", "true", "grün")
    assert not headers.keys() & {"X-None", "Transfer-Encoding", "Content-Length"}


@pytest.mark.parametrize(
    ("body", "content_type", "wire"),
    [
        ({"a": [1, None], "ü": 2**70}, None, '{"a":[1,null],"ü":1180591620717411303424}'), ("text", None, '"text"'),
        (0, None, "0"), (False, None, "false"), ("plain", "text/plain", "plain"), ("<x/>", "application/xml", "<x/>"),
        ({"a": 1}, "text/plain", '{"a": 1}'), ("é", "text/plain; charset=latin-1", "é"),
        ({"a": [1, 2], "b": "x y", "c": None}, "application/x-www-form-urlencoded", "a=1&a=2&b=x+y"),
        ("a=1", "application/x-www-form-urlencoded", "a=1"),
    ],
)  # fmt: skip
def test_a_body_is_json_text_or_a_form_by_its_content_type(
    echoing: Stub, body: Any, content_type: str | None, wire: str
) -> None:
    fields: dict[str, Any] = {"url": echoing.url(), "method": "POST", "body": body}
    data = call(fields if content_type is None else {**fields, "contentType": content_type})["data"]
    charset = "latin-1" if content_type and "latin" in content_type else "utf-8"
    assert data["body"].encode("latin-1").decode(charset) == wire
    assert data["headers"]["Content-Type"] == (content_type or "application/json")


def test_the_content_type_among_the_headers_decides_over_the_field(echoing: Stub) -> None:
    fields = {"url": echoing.url(), "method": "POST", "body": "x", "headers": {"content-type": "text/csv"}}
    assert call(fields)["data"]["body"] == "x"


def test_without_a_body_there_is_no_content_type(echoing: Stub) -> None:
    headers = call({"url": echoing.url(), "method": "POST"})["data"]["headers"]
    assert "Content-Type" not in headers
    assert headers["Content-Length"] == "0"


@pytest.mark.parametrize(
    ("content_type", "body", "data"),
    [
        ("application/json", b'{"a": 1}', {"a": 1}), ("application/problem+json; charset=utf-8", b"[1]", [1]),
        ("application/json", b"12", 12), ("application/json", b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        ("application/json", b'{"v": NaN}', '{"v": NaN}'), ("application/json", b'{"v": 1e999}', '{"v": 1e999}'),
        ("application/json", b'{"a":1,"a":2}', '{"a":1,"a":2}'), ("application/json", b"{oops", "{oops"),
        ("application/json", b'"\\ud800"', '"\\ud800"'), ("application/json", b"[" * 100, "[" * 100),
        ("application/json", b'{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ("text/plain", b"12", "12"), ("text/plain", b'{"a":1}', {"a": 1}), ("text/html", b"<p>", "<p>"),
        ("", b"x", "x"),
        ("text/plain; charset=iso-8859-1", b"gr\xfcn", "grün"), ("text/plain; charset=nonsense", b"x", "x"),
        ("text/plain; charset=utf-7", b"+2AA-", "\ufffd"), ("text/plain", b"gr\xfcn", "gr\ufffdn"), ("", b"", ""),
        ("image/png", b"\x89PNG", {"base64": "iVBORw=="}), ("application/octet-stream", b"text", "text"),
    ],
)  # fmt: skip
def test_data_is_json_or_text(content_type: str, body: bytes, data: Any) -> None:
    headers = (("Content-Type", content_type),) if content_type else ()
    with serving(lambda _: Reply(200, headers, body)) as stub:
        assert call({"url": stub.url()})["data"] == data


def test_output_is_the_data_and_reads_the_answer_as_the_result_of_the_node() -> None:
    with serving(lambda _: as_json({"items": [{"id": 7}]})) as stub:
        result = call(
            {"url": stub.url(), "output": {"first": "$NODE.h.data.items.0.id", "of": "$INPUT.who"}}, {"who": "ann"}
        )
    assert result["data"] == {"first": 7, "of": "ann"}
    assert result["body"] == {"items": [{"id": 7}]}
    assert result["status"] == 200


def test_repeated_headers_of_an_answer_are_joined_and_cookies_by_line() -> None:
    headers = (("X-A", "1"), ("x-a", "2"), ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2"))
    with serving(lambda _: Reply(200, headers)) as stub:
        found = call({"url": stub.url()})["headers"]
    assert (found["X-A"], found["Set-Cookie"]) == ("1, 2", "a=1; Path=/\nb=2")


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_an_error_status_is_a_result(status: int) -> None:
    with serving(lambda _: as_json({"why": "x"}, status)) as stub:
        result = call({"url": stub.url()})
    assert (result["status"], result["data"]) == (status, {"why": "x"})


@pytest.mark.parametrize(
    ("fail_on", "status", "fails"),
    [
        (404, 404, True), ("404", 404, True), (["4xx", "5xx"], 503, True), ("400-499", 404, True), ("5xx", 404, False),
        (["401", "403"], 404, False), ([], 500, False), (None, 500, False), ("2xx", 200, True),
    ],
)  # fmt: skip
def test_fail_on_names_the_statuses_that_are_errors(fail_on: Any, status: int, fails: bool) -> None:
    with serving(lambda _: as_json({"why": "no such order"}, status)) as stub:
        given = {"url": stub.url("/orders?token=abc"), "failOn": fail_on}
        if not fails:
            assert call(given)["status"] == status
            return
        error = failing(given)
    assert (error.code, error.kind) == (1003, "node_error")
    assert f"/orders?token=*** answered {status}" in str(error)
    assert "no such order" in str(error)


@pytest.mark.parametrize(("status", "attempts"), [(503, 3), (500, 3), (429, 3), (404, 1), (400, 1)])
def test_a_status_that_may_pass_is_retried_as_the_handler_says(status: int, attempts: int) -> None:
    with serving(lambda _: Reply(status)) as stub:
        failing(
            {
                "url": stub.url(),
                "failOn": ["4xx", "5xx"],
                "errorHandler": {"retry": {"attempts": 2, "base": 1}},
            }
        )
    assert len(stub.seen) == attempts


def test_a_refused_connection_is_1002_and_is_retried() -> None:
    with serving() as stub:
        pass
    error = failing({"url": stub.url(), "errorHandler": {"retry": {"attempts": 1, "base": 1}}})
    assert (error.code, error.kind) == (1002, "node_error")
    assert "Connect call failed" in str(error)


def test_a_name_that_nobody_knows_is_1002() -> None:
    error = failing({"url": "http://no-such-host.invalid/"})
    assert (error.code, "cannot be resolved" in str(error)) == (1002, True)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200", b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"abc")[:3],
    ],
)  # fmt: skip
def test_an_answer_that_is_cut_or_no_http_is_1002(raw: bytes) -> None:
    with serving(lambda _: Reply(raw=raw, close=True)) as stub:
        error = failing({"url": stub.url()})
    assert (error.code, error.kind) == (1002, "node_error")


def test_the_request_timeout_covers_the_whole_answer() -> None:
    with serving(lambda _: Reply(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")) as stub:
        error = failing({"url": stub.url(), "requestTimeout": 0.1})
    assert (error.code, "no whole answer after 0.1 s" in str(error)) == (1002, True)


def test_the_timeout_of_the_node_ends_the_request() -> None:
    with serving(lambda _: Reply(hang=True)) as stub, pytest.raises(NodeTimeoutError):
        call({"url": stub.url(), "timeout": 100})


@pytest.mark.parametrize(
    "value",
    [
        {"headers": {"X": "a\r\nEvil: 1"}}, {"headers": {"X": "a\x00b"}}, {"headers": {"X Y": "1"}},
        {"headers": {"X": {"a": 1}}}, {"headers": "x"}, {"query": 7}, {"url": ""}, {"url": None},
        {"url": "example.org/x"},
        {"method": "BREW"}, {"method": "CONNECT"}, {"timeout": 0}, {"timeout": 601}, {"timeout": "soon"}, {"hops": 21},
        {"hosts": None}, {"hosts": ["http://x"]}, {"hosts": 7}, {"block": None}, {"block": 1}, {"fail": ["9xx"]},
        {"type": "multipart/form-data", "method": "POST", "body": {"a": 1}},
    ],
)  # fmt: skip
def test_fields_that_make_no_request_are_1001_and_not_retried(echoing: Stub, value: dict[str, Any]) -> None:
    fields = {
        "url": "$INPUT.url", "method": "$INPUT.method", "query": "$INPUT.query", "headers": "$INPUT.headers",
        "body": "$INPUT.body", "requestTimeout": "$INPUT.timeout", "maxRedirects": "$INPUT.hops",
        "allowedHosts": "$INPUT.hosts", "blockPrivateNetworks": "$INPUT.block", "failOn": "$INPUT.fail",
        "contentType": "$INPUT.type", "errorHandler": {"retryTimes": 3},
    }  # fmt: skip
    sound = {
        "url": echoing.url(), "method": "GET", "query": None, "headers": None, "body": None, "timeout": 5, "hops": 1,
        "hosts": ["*"], "block": False, "fail": None, "type": "application/json",
    }  # fmt: skip
    assert call(fields, sound)["status"] == 200
    error = failing(fields, {**sound, **value})
    assert (error.code, error.kind) == (1001, "node_error")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", " "), ("url", 7), ("url", "{% $INPUT. %}"), ("headers", {"X": "$F.nope()"}), ("method", "BREW"),
        ("requestTimeout", 0), ("requestTimeout", 601), ("maxRedirects", -1), ("allowedHosts", ["a b"]),
        ("deniedHosts", ["http://x"]), ("blockPrivateNetworks", "maybe"), ("failOn", "900"), ("body", "$NOPE"),
        ("output", "$F.nope()"), ("contentType", "a\nb"), ("heders", {}),
    ],
)  # fmt: skip
def test_what_is_wrong_for_every_input_is_found_at_load(field: str, value: Any) -> None:
    with pytest.raises(FlowLoadError) as caught:
        flow_with({"url": "http://h/", field: value})
    assert [issue.path.split(".")[2] for issue in caught.value.issues if issue.severity == "error"] == [field]


@pytest.mark.parametrize("seconds", [2, 2.5, "2", "PT2S"])
def test_a_request_timeout_is_seconds_or_a_duration(echoing: Stub, seconds: Any) -> None:
    assert call({"url": echoing.url(), "requestTimeout": seconds})["status"] == 200


@pytest.mark.parametrize(
    ("method", "has_key"),
    [
        ("POST", True), ("PATCH", True), ("PUT", True), ("DELETE", True), ("GET", False), ("HEAD", False),
        ("OPTIONS", False), ("TRACE", False),
    ],
)  # fmt: skip
def test_methods_that_change_something_carry_an_idempotency_key(method: str, has_key: bool) -> None:
    with serving() as stub:
        call({"url": stub.url(), "method": method})
    assert (stub.seen[0].header("idempotency-key") is not None) == has_key


def test_the_idempotency_key_is_the_same_for_every_attempt_and_differs_between_nodes() -> None:
    answers = iter([Reply(500), Reply(200), Reply(200)])
    nodes = [
        {"type": "start", "id": "s", "next": "é one"},
        {
            "type": "http", "id": "é one", "method": "POST", "url": "$INPUT.url", "failOn": "5xx",
            "errorHandler": {"retry": {"attempts": 1, "base": 1}}, "next": "two",
        },
        {"type": "http", "id": "two", "method": "POST", "url": "$INPUT.url", "next": "e"},
        {"type": "end", "id": "e"},
    ]  # fmt: skip
    with serving(lambda _: next(answers)) as stub:
        Flow.model_validate({"flow_id": "t", "nodes": nodes}).run(url=stub.url())
    first, again, other = (seen.header("idempotency-key") for seen in stub.seen)
    assert first is not None and first == again != other
    assert first.isascii() and first.endswith("@%C3%A9%20one#1")


def test_an_idempotency_key_of_the_author_stays() -> None:
    with serving() as stub:
        call({"url": stub.url(), "method": "POST", "headers": {"idempotency-key": "mine"}})
    assert [value for name, value in stub.seen[0].headers if name.lower() == "idempotency-key"] == ["mine"]


def test_a_dry_run_sends_nothing_and_masks_the_url() -> None:
    flow = flow_with(
        {"url": "http://ann:pw@h.example/x?api_key=1&page=2", "method": "post"}, globalContext={"dry_run": True}
    )
    assert flow.run() == {
        "dry_run": True,
        "skipped": "http",
        "method": "POST",
        "url": "http://***@h.example/x?api_key=***&page=2",
    }


def test_a_dry_run_of_a_url_that_is_no_text_says_so() -> None:
    assert flow_with({"url": "$INPUT.url"}, globalContext={"dry_run": True}).run(url=None)["url"] == "<unprintable-url>"


def test_user_and_password_of_the_url_become_an_authorization_and_never_stand_in_an_error(echoing: Stub) -> None:
    data = call({"url": f"http://ann:p%40w@127.0.0.1:{echoing.port}/"})["data"]
    assert data["headers"]["Authorization"] == "Basic YW5uOnBAdw=="
    with serving() as gone:
        pass
    assert "p%40w" not in str(failing({"url": f"http://ann:p%40w@127.0.0.1:{gone.port}/"}))


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        ("gzip", gzip.compress), ("x-gzip", gzip.compress), ("deflate", zlib.compress), ("identity", bytes),
        ("deflate", lambda raw: zlib.compress(raw)[2:-4]),
        ("gzip", lambda raw: gzip.compress(raw[:5]) + gzip.compress(raw[5:])),
    ],
)  # fmt: skip
def test_a_compressed_body_is_decompressed(coding: str, pack: Any) -> None:
    body = pack(json.dumps({"text": "x" * 5000}).encode())
    with serving(lambda _: Reply(200, (*JSON_TYPE, ("Content-Encoding", coding)), body)) as stub:
        assert call({"url": stub.url()})["data"] == {"text": "x" * 5000}


@pytest.mark.parametrize(("coding", "body"), [("gzip", b"no gzip"), ("br", b"x"), ("gzip, gzip", b"x")])
def test_a_body_that_cannot_be_decompressed_is_1003(coding: str, body: bytes) -> None:
    with serving(lambda _: Reply(200, (("Content-Encoding", coding),), body)) as stub:
        assert failing({"url": stub.url()}).code == 1003


@pytest.fixture
def small_answers() -> Iterator[None]:
    use_settings(Settings(http=HttpSettings(response_bytes_max=1000)))
    yield
    use_settings(None)


@pytest.mark.usefixtures("small_answers")
@pytest.mark.parametrize(
    ("size", "coding", "code"),
    [(1000, None, 200), (1001, None, 1003), (1000, "gzip", 200), (1001, "gzip", 1003), (50_000_000, "gzip", 1003)],
)
def test_a_body_over_the_cap_is_1003_however_small_it_was_packed(size: int, coding: str | None, code: int) -> None:
    plain = b"x" * size
    body, headers = (gzip.compress(plain), (("Content-Encoding", coding),)) if coding else (plain, ())
    with serving(lambda _: Reply(200, headers, body)) as stub:
        if code == 200:
            assert len(call({"url": stub.url()})["data"]) == size
        else:
            error = failing({"url": stub.url(), "errorHandler": {"retryTimes": 3}})
            assert (error.code, "PLAITA_HTTP_MAX_RESPONSE_BYTES" in str(error)) == (code, True)
            assert len(stub.seen) == 1


def test_the_setting_blocks_private_networks_for_every_node(echoing: Stub) -> None:
    use_settings(Settings(http=HttpSettings(block_private=True)))
    try:
        error = failing({"url": echoing.url(), "blockPrivateNetworks": False})
    finally:
        use_settings(None)
    assert (error.code, error.kind) == (1002, "policy_denied")


def test_a_head_request_has_no_body() -> None:
    with serving(lambda _: Reply(200, body=b"hidden")) as stub:
        result = call({"url": stub.url(), "method": "HEAD"})
    assert (result["data"], result["headers"]["Content-Length"]) == ("", "6")


def test_a_node_keeps_nothing_of_a_run(echoing: Stub) -> None:
    flow = flow_with({"url": "$INPUT.url"}, output="$NODE.h.data.path")
    before = dict(vars(flow.nodes[1]))
    assert [flow.run(url=echoing.url(path)) for path in ("/a", "/b")] == ["/a", "/b"]
    assert vars(flow.nodes[1]) == before


async def test_five_hundred_requests_at_once_all_get_their_own_answer(echoing: Stub) -> None:
    flow = flow_with({"url": "$INPUT.url", "query": {"n": "$INPUT.n"}}, output="$NODE.h.data.path")
    found = await asyncio.gather(*(flow.arun(url=echoing.url("/"), n=n) for n in range(500)))
    assert found == [f"/?n={n}" for n in range(500)]


async def test_requests_one_after_another_share_a_connection() -> None:
    with serving() as stub:
        flow = flow_with({"url": stub.url()})
        for _ in range(5):
            await flow.arun()
    assert stub.connections == 1


async def test_a_cancelled_request_is_hung_up() -> None:
    asked, hung_up = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def answering(_: Seen) -> Reply:
        loop.call_soon_threadsafe(asked.set)
        return Reply(hang=True)

    with serving(answering) as stub:
        stub.on_lost = lambda: loop.call_soon_threadsafe(hung_up.set)
        task = asyncio.create_task(flow_with({"url": stub.url()}).arun())
        await asked.wait()
        task.cancel()
        await asyncio.wait([task])
        await hung_up.wait()
    assert task.cancelled()
