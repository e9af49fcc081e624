"""Redirects of ``http``: where they may lead, what goes along, how the method changes."""

from __future__ import annotations

from typing import Any

import pytest

from plaita.base.errors import NodeExecutionError
from tests.support.http_stub import Reply, Seen, as_json, echo, redirect, serving
from tests.unit.test_http_node import call, failing


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        (301, "GET", "GET"), (301, "POST", "GET"), (301, "PUT", "PUT"), (301, "HEAD", "HEAD"), (302, "POST", "GET"),
        (302, "DELETE", "GET"), (302, "HEAD", "HEAD"), (303, "PUT", "GET"), (303, "GET", "GET"), (307, "POST", "POST"),
        (308, "PATCH", "PATCH"), (308, "DELETE", "DELETE"),
    ],
)  # fmt: skip
def test_a_redirect_keeps_or_changes_the_method(status: int, method: str, becomes: str) -> None:
    with serving(lambda seen: redirect("/there", status) if seen.path == "/here" else Reply()) as stub:
        call({"url": stub.url("/here"), "method": method, "body": {"a": 1}})
    first, second = stub.seen
    assert (second.path, second.method) == ("/there", becomes)
    kept = becomes == method
    assert (second.body == first.body) == kept
    assert (second.header("content-type") is not None) == kept
    assert (second.header("idempotency-key") == first.header("idempotency-key")) == kept or becomes in ("GET", "HEAD")


@pytest.mark.parametrize(
    "location", ["there?a=1", "/deep/there?a=1", "./there?a=1#x", "//127.0.0.1:PORT/deep/there?a=1"]
)
def test_a_location_is_relative_to_the_url_before_it(location: str) -> None:
    def answering(seen: Seen) -> Reply:
        return redirect(location.replace("PORT", str(stub.port))) if seen.path == "/deep/here" else echo(seen)

    with serving(answering) as stub:
        assert call({"url": stub.url("/deep/here")})["data"]["path"] == "/deep/there?a=1"


@pytest.mark.parametrize(
    "secret",
    [
        {"Authorization": "Bearer T"}, {"Cookie": "c=1"}, {"Proxy-Authorization": "Basic x"}, {"X-Api-Key": "K"},
        {"x-auth-token": "K"}, {"Api-Key": "K"}, {"X-Amz-Security-Token": "K"}, {"Private-Token": "K"},
        {"X-Whatever": "K"}, {"Referer": "http://x/?token=1"}, {"Host": "elsewhere.example"}, {"Forwarded": "for=1"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_header_that_may_be_a_secret_goes_to_another_origin(secret: dict[str, str], status: int) -> None:
    with serving() as other, serving(lambda _: redirect(other.url("/there"), status)) as first:
        call({"url": first.url(), "method": "POST", "body": "b", "headers": {**secret, "Accept": "text/x"}})
    (name,) = secret
    assert first.seen[0].header(name) == secret[name]
    assert other.seen[0].header(name) in (None, f"127.0.0.1:{other.port}")
    assert other.seen[0].header("accept") == "text/x"


def test_user_and_password_of_a_url_stay_with_its_origin() -> None:
    with serving() as other, serving(lambda _: redirect(f"http://eve:x@127.0.0.1:{other.port}/")) as first:
        call({"url": f"http://ann:pw@127.0.0.1:{first.port}/"})
    assert first.seen[0].header("authorization") is not None
    assert other.seen[0].header("authorization") is None


def test_secrets_stay_behind_for_good_when_a_redirect_comes_back() -> None:
    def answering(seen: Seen) -> Reply:
        return redirect(other.url()) if seen.path == "/here" else Reply()

    with serving(answering) as first, serving(lambda _: redirect(first.url("/back"))) as other:
        call({"url": first.url("/here"), "headers": {"X-Api-Key": "K"}})
    assert [seen.header("x-api-key") for seen in first.seen] == ["K", None]


def test_within_an_origin_headers_go_along() -> None:
    with serving(lambda seen: redirect("/there") if seen.path == "/here" else Reply()) as stub:
        call({"url": stub.url("/here"), "headers": {"X-Api-Key": "K", "Authorization": "A"}})
    assert [seen.header("x-api-key") for seen in stub.seen] == ["K", "K"]
    assert [seen.header("authorization") for seen in stub.seen] == ["A", "A"]


def test_more_redirects_than_allowed_are_1002_and_not_tried_again() -> None:
    with serving(lambda _: redirect("/again")) as stub:
        error = failing({"url": stub.url(), "maxRedirects": 3, "errorHandler": {"retryTimes": 2}})
    assert (error.code, "more than 3 times" in str(error)) == (1002, True)
    assert len(stub.seen) == 4


@pytest.mark.parametrize(
    "reply", [redirect("/x"), Reply(302), Reply(304, (("Location", "/x"),)), Reply(300, (("Location", "/x"),))]
)
def test_what_is_not_followed_is_the_result(reply: Reply) -> None:
    followed = 0 if reply.header("location") and reply.status == 302 else 5
    with serving(lambda _: reply) as stub:
        assert call({"url": stub.url(), "maxRedirects": followed})["status"] == reply.status
    assert len(stub.seen) == 1


@pytest.mark.parametrize("location", ["ftp://example.org/x", "file:///etc/passwd", "gopher://127.0.0.1/"])
def test_a_redirect_to_another_scheme_is_refused(location: str) -> None:
    with serving(lambda _: redirect(location)) as stub:
        assert failing({"url": stub.url()}).kind == "policy_denied"


@pytest.mark.parametrize("location", ["http://", "http://a b/", "http://[::1", "mailto:x@y.org", "http://h:99999/"])
def test_a_redirect_to_nowhere_is_1002(location: str) -> None:
    with serving(lambda _: redirect(location)) as stub:
        error = failing({"url": stub.url(), "errorHandler": {"retryTimes": 2}})
    assert (error.code, len(stub.seen)) == (1002, 1)


@pytest.mark.parametrize(
    "rules",
    [
        {"deniedHosts": ["127.0.0.2"]}, {"deniedHosts": ["127.0.0.2/32"]}, {"allowedHosts": ["127.0.0.1"]},
        {"allowedHosts": ["127.0.0.1/32"]},
    ],
)  # fmt: skip
def test_the_rules_hold_for_every_hop(rules: dict[str, Any]) -> None:
    with (
        serving(as_json_ok, host="127.0.0.2") as inner,
        serving(lambda _: redirect(inner.url(host="127.0.0.2"))) as stub,
    ):
        error = failing({"url": stub.url(), **rules})
    assert (error.kind, error.code) == ("policy_denied", 1002)
    assert (inner.connections, len(stub.seen)) == (0, 1)


def as_json_ok(_: Seen) -> Reply:
    return as_json({"ok": True})


def test_a_refusal_is_never_tried_again() -> None:
    with serving() as stub, pytest.raises(NodeExecutionError):
        call({"url": stub.url(), "blockPrivateNetworks": True, "errorHandler": {"retryTimes": 5}})
    assert stub.connections == 0
