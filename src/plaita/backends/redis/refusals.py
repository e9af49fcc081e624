"""What a server refuses, and a connection that is not there, in words."""

from __future__ import annotations

import os
from ssl import SSLError
from typing import Final

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)  # fmt: skip

from plaita.base.errors import Unavailable

PASSING: Final = ("BUSY", "MISCONF", "NOREPLICAS")
"""Words of a server that cannot now: a long script, a full disk, a replica that is away. A restart and a fail-over have
exceptions of their own."""
STOPPED: Final = "killed by user"
"""Of a script and of a function."""
NO_LIBRARY: Final = "Library not found"
"""Another process removed it meanwhile."""
FORBIDDEN: Final = "The user executing the script can't"
OTHER_TYPE: Final = "WRONGTYPE"
MISTAKE: Final = "MISTAKE "
"""How a script says that its caller made a mistake: nothing was written."""
HUNG_UP: Final = "Connection closed by server"
"""How the client library says that the other side ended a connection."""
LOGIN_HINT: Final = "check user and password of the URL, and what the user may do"


class OtherType(Unavailable):
    """A key holds something of another type than the store keeps there: somebody else wrote it."""


def error_of(name: str, error: ResponseError) -> Exception:
    """What a reply that is an error is here."""
    text = str(error)
    if text.startswith(MISTAKE):
        return ValueError(text.removeprefix(MISTAKE))
    if isinstance(error, OutOfMemoryError):
        return Unavailable(
            f"the store {name} is full (maxmemory) and takes nothing new",
            "raise maxmemory, or plaita prune; what was begun goes on",
        )
    if isinstance(error, NoPermissionError) or FORBIDDEN in text:
        return Unavailable(f"the store {name} refuses this user: {text}", LOGIN_HINT)
    if isinstance(error, ReadOnlyError | MasterDownError) or text.startswith(PASSING) or STOPPED in text:
        return Unavailable(f"the store {name} cannot now: {text}", "try again in a moment")
    if text.startswith(OTHER_TYPE):
        told = f"the store {name} cannot be used: somebody wrote something of another type to one of its keys"
        return OtherType(told, "plaita doctor names the key; RENAME it, and what waits goes on")
    if text.startswith("DENIED"):
        return Unavailable(f"the store {name} lets nobody in: {text.partition('.')[0]}", LOGIN_HINT)
    if NO_LIBRARY in text:
        return LookupError(text)
    return RuntimeError(f"the store {name} answered: {text}")


def unreachable(name: str, why: object) -> Unavailable:
    """There is no connection."""
    if AuthenticationError in (type(why), type(getattr(why, "__cause__", None))):
        return Unavailable(f"the store {name} refuses this user: {why}", LOGIN_HINT)
    return Unavailable(f"the store {name} cannot be reached: {_reason(why)}", _remedy(name, why))


def lost(name: str, why: object) -> Unavailable:
    """The connection went while something was under way."""
    if isinstance(why, AuthenticationError | BusyLoadingError):
        return unreachable(name, why)
    return Unavailable(
        f"the store {name} was lost before it answered: {_reason(why)}",
        "what was asked may have been done: look before you ask again",
    )


def gone(name: str) -> Unavailable:
    """This side closed the connection."""
    return Unavailable(f"the store {name} was closed", "open it again")


def _remedy(name: str, why: object) -> str:
    """One side may speak TLS and the other not: then the server hangs up, or says nothing."""
    if name.startswith("rediss"):
        return "check that redis-server serves TLS there; ?ssl_ca_certs=FILE names who signed its certificate"
    if isinstance(_cause(why), ConnectionResetError) or HUNG_UP in str(why):
        return "check that redis-server runs there; the URL of one that serves TLS begins with rediss://"
    return "check that redis-server runs there"


def _cause(why: object) -> object:
    """What the system said, when the client library only passes it on."""
    return getattr(why, "__cause__", None) or getattr(why, "__context__", None)


def _reason(why: object) -> object:
    """The cause in words. An error number says it best; the resolver of names has numbers below 0 of its own."""
    cause = _cause(why)
    if not isinstance(cause, OSError):
        return why
    if isinstance(cause, SSLError):
        # Its numbers are those of another table.
        return cause
    return os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or cause
