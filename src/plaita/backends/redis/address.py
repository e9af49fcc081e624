"""Where a Redis is: a URL taken apart, and a connection to what it names."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from redis.asyncio import Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from plaita.base.errors import InputError, Unavailable

CONNECT_S: Final = 5.0
"""How long it may take until a connection is there, greetings included."""
PORT: Final = 6379
SENTINEL_PORT: Final = 26379
EXPECTED: Final = {
    "redis": "redis://[USER:PASSWORD@]HOST[:PORT][/DB]",
    "rediss": "rediss://[USER:PASSWORD@]HOST[:PORT][/DB][?ssl_ca_certs=FILE]",
    "unix": "unix://[USER:PASSWORD@]/PATH/OF/SOCKET[?db=DB]",
    "redis+sentinel": "redis+sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]/SERVICE[/DB]",
    "rediss+sentinel": "rediss+sentinel://[USER:PASSWORD@]HOST[:PORT][,HOST[:PORT]…]/SERVICE[/DB][?ssl_ca_certs=FILE]",
}
"""The kinds of URL, and what each looks like."""
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
_WHOLE = re.compile(r"\d{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """``name`` is what messages call the store: it has neither user nor password nor parameters. ``options`` are those
    of the client library, ``sentinels`` who is asked where the master of ``service`` is."""

    name: str
    kind: str
    options: Mapping[str, Any] = field(repr=False)
    hosts: tuple[tuple[str, int], ...] = ()
    service: str = ""
    sentinel_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    async def connection(self) -> Connection:
        """A connection that is not open yet; it never tries anything twice. With Sentinels: to the master they name
        now. Raises ``Unavailable`` when none of them knows."""
        if self.kind == "unix":
            return cast(Connection, UnixDomainSocketConnection(**self.options, **_quiet()))
        host, port = await self._master() if self.service else self.hosts[0]
        kind = SSLConnection if self.kind.startswith("rediss") else Connection
        made: Connection = kind(host=host, port=port, **self.options, **_quiet(), **_keepalive())
        return made

    async def _master(self) -> tuple[str, int]:
        said = {**self.sentinel_options, **_quiet(), "socket_timeout": CONNECT_S}
        sentinel: Any = cast(Any, Sentinel)(self.hosts, sentinel_kwargs={**said, "ssl": self.kind.startswith("rediss")})
        asked = ", ".join(f"{host}:{port}" for host, port in self.hosts)
        try:
            host, port = await sentinel.discover_master(self.service)
        except ResponseError as e:
            if "SENTINEL" not in str(e):
                raise
            raise Unavailable(
                f"the store {self.name} cannot be reached: {asked} answers, and is no Sentinel",
                "redis://HOST:PORT/DB is the URL of a server itself",
            ) from None
        except MasterNotFoundError:
            raise Unavailable(
                f"the store {self.name} cannot be reached: no Sentinel of {asked} knows a master {self.service!r}",
                "check the Sentinels and the name of the service",
            ) from None
        finally:
            await sentinel.aclose()
        return str(host), int(port)


def read_address(url: str) -> Address:
    """Take a URL apart. Raises ``InputError`` saying what is expected; the password is in no message."""
    scheme = url.partition("://")[0]
    if scheme not in EXPECTED:
        raise InputError(
            "the store", f"{_shown(url)!r} is no URL of a Redis; expected {' or '.join(EXPECTED.values())}"
        )
    try:
        return _READERS[scheme](_split(url), scheme)
    except ValueError as e:
        raise InputError("the store", f"{_shown(url)!r}: {e}; expected {EXPECTED[scheme]}") from None


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        # What the library says of it may hold the password.
        raise ValueError("the host makes no sense") from None


def _shown(url: str) -> str:
    """Without what may be a secret: everything up to the last ``@``, and the parameters."""
    return re.sub(r"(?<=://).*@", "", url).partition("?")[0]


def _plain(parts: SplitResult, scheme: str) -> Address:
    host, port = _place(parts.netloc.rpartition("@")[2], PORT)
    options, params = _login(parts), _params(parts, _TLS if scheme == "rediss" else {})
    db = _database(parts.path.strip("/") or params.pop("db", 0))
    return Address(
        _name(scheme, f"{_joined(host, port)}/{db}"), scheme, {**options, **params, "db": db}, ((host, port),)
    )


def _socket(parts: SplitResult, scheme: str) -> Address:
    path = unquote(parts.path)
    if not path or "/" in parts.netloc or parts.netloc.rpartition("@")[2]:
        raise ValueError("the path of the socket is absolute")
    db = _database(_params(parts, {}).get("db", 0))
    return Address(_name(scheme, path), scheme, {**_login(parts), "path": path, "db": db})


def _sentinels(parts: SplitResult, scheme: str) -> Address:
    places = parts.netloc.rpartition("@")[2].split(",")
    hosts = tuple(_place(place, SENTINEL_PORT) for place in places)
    service, _, path = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("the name of the service is missing")
    params = _params(parts, {**(_TLS if scheme == "rediss+sentinel" else {}), **_SENTINEL})
    login = {name.removeprefix("sentinel_"): params.pop(name) for name in _SENTINEL if name in params}
    db = _database(path or params.pop("db", 0))
    shown = ",".join(_joined(*host) for host in hosts)
    name = _name(scheme, f"{shown}/{unquote(service)}/{db}")
    return Address(name, scheme, {**_login(parts), **params, "db": db}, hosts, unquote(service), {**login, **params})


_READERS: Final[dict[str, Callable[[SplitResult, str], Address]]] = {
    "redis": _plain, "rediss": _plain, "unix": _socket, "redis+sentinel": _sentinels, "rediss+sentinel": _sentinels,
}  # fmt: skip


def _name(scheme: str, rest: str) -> str:
    return f"{scheme}://{rest}"


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _place(text: str, port: int) -> tuple[str, int]:
    """``HOST``, ``HOST:PORT`` or ``[ADDRESS]:PORT``."""
    found = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:/\s]+)(?::(.*))?", text)
    if found is None:
        raise ValueError("a host is missing or makes no sense")
    if found[2] is not None:
        if not _WHOLE.fullmatch(found[2]) or not 1 <= int(found[2]) <= 65535:
            raise ValueError("a port is a number from 1 to 65535")
        port = int(found[2])
    return unquote(found[1].strip("[]")), port


def _login(parts: SplitResult) -> dict[str, str]:
    login = parts.netloc.rpartition("@")[0]
    user, _, password = login.partition(":")
    said = {"username": unquote(user), "password": unquote(password)}
    return {name: text for name, text in said.items() if text}


def _database(text: object) -> int:
    if not _WHOLE.fullmatch(str(text)):
        raise ValueError("the database is a number")
    return int(str(text))


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0", "yes", "no"):
        raise ValueError("ssl_check_hostname is true or false")
    return text.lower() in ("true", "1", "yes")


def _reqs(text: str) -> str:
    if text not in ("required", "optional", "none"):
        raise ValueError("ssl_cert_reqs is required, optional or none")
    return text


_SENTINEL: Final[dict[str, Callable[[str], object]]] = {"sentinel_username": str, "sentinel_password": str}
_TLS: Final[dict[str, Callable[[str], object]]] = {
    "ssl_ca_certs": str, "ssl_ca_path": str, "ssl_certfile": str, "ssl_keyfile": str, "ssl_password": str,
    "ssl_cert_reqs": _reqs, "ssl_check_hostname": _switch,
}  # fmt: skip


def _params(parts: SplitResult, known: Mapping[str, Callable[[str], object]]) -> dict[str, Any]:
    """The parameters behind ``?``, and what of TLS holds when the URL does not say it."""
    readers: dict[str, Callable[[str], object]] = {"db": str, **known}
    found: dict[str, Any] = {}
    for name, text in parse_qsl(parts.query, keep_blank_values=True):
        if name not in readers:
            raise ValueError(f"there is no parameter {name[:40]!r} ({', '.join(readers)})")
        found[name] = readers[name](text)
    if "ssl_check_hostname" in known:
        found.setdefault("ssl_check_hostname", found.get("ssl_cert_reqs") != "none")
    return found


def _quiet() -> dict[str, Any]:
    """What makes the client library send everything once, and wait as long as it is told."""
    return {
        "protocol": 2, "retry": Retry(NoBackoff(), 0), "socket_connect_timeout": CONNECT_S, "socket_timeout": None,
    }  # fmt: skip


def _keepalive() -> dict[str, Any]:
    """A peer that is gone without a word is noticed by the kernel within a minute."""
    options = {getattr(socket, name): value for name, value in _KEEPALIVE.items() if hasattr(socket, name)}
    return {"socket_keepalive": True, "socket_keepalive_options": options}
