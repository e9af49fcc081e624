"""``http_callback``: waits for a request from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from plaita.base.json import Json
from plaita.node.credentials import is_reference, stored_proof, stored_secret
from plaita.node.service_wait import Given, Rule, ServiceNode

MINUTE_MS: Final = 60_000
YEAR_MINUTES: Final = 527_040


class HttpCallbackNode(ServiceNode):
    """Waits until somebody sends a request to ``callback_path``; gives up after ``callback_timeout_minutes``.

    ``auth_token`` is compared with what the request brings: a token, ``user:password``, or the key of a signature. It
    is ``env:NAME`` or ``file:PATH``; the state holds that reference, or a digest. Without one, the service derives a
    token for this wait alone.

    Result: the documented event state with ``service_config``; ``status`` is ``completed`` with ``event_data``, or
    ``timeout``. The execution id is the key of the event that answers it.
    """

    node_type: ClassVar[str] = "http_callback"
    node_name: ClassVar[str] = "HTTP callback"
    rules: ClassVar[Mapping[str, Rule]] = {
        "callback_path": Rule("text", optional=True),
        "callback_method": Rule("choice", ("GET", "POST", "PUT", "DELETE")),
        "callback_timeout_minutes": Rule("whole", least=1, most=YEAR_MINUTES, unit_ms=MINUTE_MS),
        "require_auth": Rule("flag"),
        "auth_type": Rule("choice", ("token", "basic", "signature")),
        "auth_token": Rule("secret", optional=True),
        "validate_headers": Rule("object"),
        "validate_params": Rule("object"),
        "success_response": Rule("object"),
        "error_response": Rule("object"),
    }

    callback_path: Any = None
    callback_method: Any = "POST"
    callback_timeout_minutes: Any = 60
    require_auth: Any = True
    auth_type: Any = "token"
    auth_token: Any = None
    validate_headers: Any = {}
    validate_params: Any = {}
    success_response: Any = {"status": "success"}
    error_response: Any = {"status": "error"}
    event_type: str = "http_callback"

    def config(self, given: Given) -> dict[str, Json]:
        values = given.values
        path = values["callback_path"] or f"/callback/{given.flow_id}/{self.id}/{given.execution_id}"
        if not path.startswith("/"):
            path = f"/{path}"
        return {
            "callback_config": {
                "path": path,
                "method": values["callback_method"],
                "timeout_minutes": values["callback_timeout_minutes"],
                "full_url": path,
            },
            "auth_config": _auth(given) if values["require_auth"] else {"enabled": False},
            "validation_config": {"headers": values["validate_headers"], "params": values["validate_params"]},
            "response_config": {
                "success_response": values["success_response"],
                "error_response": values["error_response"],
            },
        }

    def limit_ms(self, values: Mapping[str, Json]) -> int | None:
        minutes: int = values["callback_timeout_minutes"]
        return minutes * MINUTE_MS


def _auth(given: Given) -> dict[str, Json]:
    """How the service tells a caller. A derived token is named by what only this wait has."""
    kind, secret = given.values["auth_type"], given.values["auth_token"]
    found: dict[str, Json] = {"enabled": True, "type": kind}
    if kind == "signature":
        key = _derived(given) if secret is None else stored_secret(
            secret, "auth_token", literal="auth_token" in given.literal
        )  # fmt: skip
        return {**found, "secret": key, "algorithm": "HMAC-SHA256"}
    if kind == "token":
        return {**found, "token": _derived(given) if secret is None else stored_proof(secret)}
    if secret is None:
        return {**found, "username": given.execution_id, "password": _derived(given)}
    if is_reference(secret):
        return {**found, "credentials": secret}
    user, colon, password = secret.partition(":")
    if not colon:
        raise ValueError("auth_token of type basic is user:password, env:NAME or file:PATH")
    return {**found, "username": user, "password": stored_proof(password)}


def _derived(given: Given) -> str:
    return f"derived:{given.execution_id}/{given.address}/{given.now_ms}"
