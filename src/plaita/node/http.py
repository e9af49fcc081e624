"""``http``: sends a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, field_validator

from plaita.base.json import Json
from plaita.engine import steps
from plaita.node.basic import Node
from plaita.node.computed import is_computed
from plaita.node.network.failures import (
    ANSWER_REFUSED,
    CANNOT_BUILD,
    SEND_FAILED,
    answer_refused,
    cannot_build,
)
from plaita.node.network.fields import (
    READERS,
    hosts_or_none,
    read_method,
    read_redirects,
    read_seconds,
    read_statuses,
    read_switch,
    read_text,
)
from plaita.node.network.policy import NOBODY, Policy

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.engine.program import Eval
    from plaita.node.network.exchange import Answer, Limits
    from plaita.node.network.headers import Request

HTTP_BUILD_REQUEST_ERROR: Final = CANNOT_BUILD
HTTP_DO_REQUEST_ERROR: Final = SEND_FAILED
HTTP_NODE_EXEC_ERROR: Final = ANSWER_REFUSED

UNPRINTABLE_URL: Final = "<unprintable-url>"
_EVALUATED: Final = (
    "method", "url", "query", "headers", "body", "content_type", "request_timeout", "max_redirects", "allowed_hosts",
    "denied_hosts", "block_private_networks", "fail_on", "idempotency_key",
)  # fmt: skip
_MAY_PASS: Final = frozenset({408, 425, 429})
"""Statuses below 500 that a later attempt may not meet."""
_QUOTED_MAX: Final = 200
"""Characters of an answer's body in an error."""


class HTTP(Node):
    """Sends a request and gives the answer: `{data, status, statusText, headers}`.

    ``data`` is the parsed JSON of the body, or its text; bytes that are no text are ``{"base64": …}``. With ``output``
    it is the evaluated output, which reads the answer as `$NODE.<id of the node>`, and the body is ``body``. Every
    status is a result unless ``failOn`` names it.

    A ``body`` is sent as JSON when ``contentType`` is JSON; otherwise text goes as it is, and an object as a form if
    the type is ``application/x-www-form-urlencoded``. In ``query`` and ``headers`` null is left out and a list is
    repeated. Methods other than GET, HEAD, OPTIONS and TRACE carry an ``Idempotency-Key``, the same for every
    repetition of the call. With `$GLOBAL.dry_run` true nothing is sent; the result is
    `{dry_run, skipped, method, url}`.

    Redirects: 303 and 302 become GET, POST after 301 too, 307 and 308 repeat the request. To another origin go only
    headers about content, caching and ranges; ``Authorization``, cookies and keys of any name stay behind. Each hop is
    checked: ``allowedHosts``, ``deniedHosts`` (`api.example.org`, `*.example.org`, `10.0.0.0/8`), and with
    ``blockPrivateNetworks`` every address of the name; the connection goes to an address that was checked.

    Errors: 1001 no request could be built, 1002 no whole answer arrived, 1003 the answer is refused (`failOn`, too
    large, cannot be decompressed). A refusal by policy is of kind `policy_denied`. Of these 1002 is retried, and 1003
    for a status of 408, 425, 429 or from 500 on.
    """

    node_type: ClassVar[str] = "http"
    node_name: ClassVar[str] = "HTTP"
    async_node: ClassVar[bool] = True
    dry_run_safe: ClassVar[bool | None] = False
    builtin: ClassVar[bool] = True

    url: Any
    method: Any = "GET"
    query: Any = None
    headers: Any = None
    body: Any = None
    content_type: Any = "application/json"
    request_timeout: Any = 30.0
    max_redirects: Any = 5
    allowed_hosts: Any = None
    denied_hosts: Any = None
    block_private_networks: Any = False
    fail_on: Any = None
    idempotency_key: Any = True
    addressing: dict[str, Any] | None = Field(None)
    delegate: dict[str, Any] | None = Field(None)

    @field_validator("url")
    @classmethod
    def _url(cls, value: Any) -> Any:
        if not isinstance(value, str) or not value.strip():
            raise ValueError("a request needs a url: text that is not blank")
        return value

    @field_validator(
        "method", "content_type", "request_timeout", "max_redirects", "allowed_hosts", "denied_hosts",
        "block_private_networks", "fail_on", "idempotency_key",
    )  # fmt: skip
    @classmethod
    def _literal(cls, value: Any, info: Any) -> Any:
        """What is written out is checked at load; what is computed, when it is known."""
        if not is_computed(value):
            READERS[info.field_name](value)
        return value

    def link(self, link: NodeLink) -> None:
        evals: dict[str, Eval] = {name: link.value(getattr(self, name), name) for name in _EVALUATED}
        evals["dry_run"] = link.value("$GLOBAL.dry_run", "")
        if self.output is not None:
            link.value(self.output, "output")
        link.linking.calls = True
        link.cn.arguments = lambda scope: {name: value(scope) for name, value in evals.items()}
        link.cn.step = steps.call(link.cn)

    def shown(self, arguments: Json) -> Json:
        from plaita.node.network.headers import shown_headers
        from plaita.node.network.urls import masked, masked_query

        url = arguments["url"]
        given = {**arguments, "query": masked_query(arguments["query"])}
        said = {name: given[name] for name in ("method", "query", "body") if given[name] is not None}
        return {
            "url": masked(url) if isinstance(url, str) else url,
            **said,
            "headers": shown_headers(arguments["headers"]),
        }

    async def arun(self, execution: Any) -> Json:
        given = execution.arguments()
        if given["dry_run"] is True:
            return _skipped(given)
        from plaita.node.network.connecting import connections_here
        from plaita.node.network.exchange import exchange
        from plaita.settings import current_settings

        settings = current_settings().http
        try:
            request = build_request(given, execution.idempotency_key)
            policy = Policy(
                hosts_or_none(self.allowed_hosts, given["allowed_hosts"], "allowedHosts"),
                hosts_or_none(self.denied_hosts, given["denied_hosts"], "deniedHosts") or NOBODY,
                settings.block_private or read_switch(given["block_private_networks"]),
            )
            limits = read_limits(given, settings.response_bytes_max, settings.dns_ttl_seconds)
            failing = read_statuses(given["fail_on"])
        except ValueError as e:
            raise cannot_build(str(e)) from None
        answer = await exchange(await connections_here(settings.connections_max), request, policy, limits)
        if answer.status in failing:
            raise _failed(answer)
        return self._result(execution, answer)

    def _result(self, execution: Any, answer: Answer) -> Json:
        from plaita.node.network.bodies import body_value

        data = body_value(answer.body, answer.header("content-type"))
        about = {"status": answer.status, "statusText": answer.reason, "headers": answer.headers}
        result: dict[str, Json] = {"data": data, **about}
        if self.output is None:
            return result
        return {"data": execution.evaluate_after(self.output, result), "body": data, **about}


def build_request(given: dict[str, Json], key: str) -> Request:
    """The request of evaluated fields. Raises ``FailureRaised`` (1001) or ``ValueError``."""
    from plaita.node.network import headers as head
    from plaita.node.network.bodies import CODINGS, body_bytes
    from plaita.node.network.urls import read_url

    method = read_method(given["method"])
    if method == "CONNECT":
        raise cannot_build("CONNECT opens a tunnel, which nothing here could use")
    url = read_url(given["url"], given["query"])
    headers = head.read_headers(given["headers"])
    known = {name.lower(): value for name, value in headers}
    body = body_bytes(given["body"], known.get("content-type") or read_text(given["content_type"]))
    added = {"Accept": "*/*", "Accept-Encoding": CODINGS, "User-Agent": "plaita"}
    if body is not None:
        added["Content-Type"] = given["content_type"]
    if url.user:
        added["Authorization"] = head.basic(url.user)
    if method not in head.SAFE_METHODS and read_switch(given["idempotency_key"]):
        added["Idempotency-Key"] = head.key_value(key)
    headers += [(name, value) for name, value in added.items() if name.lower() not in known]
    return head.Request(method, url, tuple(headers), body)


def read_limits(given: dict[str, Json], response_bytes: int, dns_ttl_seconds: float) -> Limits:
    """The limits of evaluated fields. Raises ``ValueError``."""
    from plaita.node.network.exchange import Limits

    return Limits(
        read_seconds(given["request_timeout"]), read_redirects(given["max_redirects"]), response_bytes, dns_ttl_seconds
    )


def _skipped(given: dict[str, Json]) -> Json:
    from plaita.node.network.urls import masked

    method, url = given["method"], given["url"]
    shown = masked(url) if isinstance(url, str) and url.isprintable() else UNPRINTABLE_URL
    return {"dry_run": True, "skipped": "http", "method": str(method).upper(), "url": shown}


def _failed(answer: Answer) -> Exception:
    from plaita.node.network.bodies import body_value

    said = body_value(answer.body, answer.header("content-type"))
    text = " ".join(f"{said}".split())
    quoted = f": {text[:_QUOTED_MAX]}" if text else ""
    retryable = answer.status >= 500 or answer.status in _MAY_PASS
    reason = f"{answer.method} {answer.url} answered {answer.status} {answer.reason}".rstrip()
    return answer_refused(f"{reason}{quoted}", retryable=retryable)
