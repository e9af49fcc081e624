"""Where an ``http`` node may go: hosts by name and network, schemes, public addresses only.

A rule that cannot be read is an error, never a rule that is left out. Names are compared as the wire has them (lower
case, IDNA, no trailing dot), networks with every address that would be connected to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final, TypeAlias

from plaita.base.errors import PolicyDenied
from plaita.node.network.addresses import Address, carried, names_this_machine, numeric_host, plain, why_not_public

Network: TypeAlias = IPv4Network | IPv6Network

SCHEMES: Final = frozenset({"http", "https"})
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Hosts:
    """A list of hosts: ``names`` exactly, ``suffixes`` (with their leading dot) for what is below, ``networks``."""

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    networks: tuple[Network, ...] = ()
    everything: bool = False

    def has_name(self, host: str) -> bool:
        return self.everything or host in self.names or (bool(self.suffixes) and host.endswith(self.suffixes))

    def has_address(self, address: Address) -> bool:
        return any(address.version == n.version and address in n for n in self.networks)


NOBODY = Hosts()


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one request. ``allowed`` of ``None`` allows every host that nothing else refuses."""

    allowed: Hosts | None = None
    denied: Hosts = NOBODY
    public_only: bool = False

    def check_host(self, scheme: str, host: str) -> None:
        """Refuse what its name alone decides; nothing has been resolved. Raises ``PolicyDenied``."""
        if scheme not in SCHEMES:
            raise PolicyDenied(f"the scheme {scheme!r} is not allowed: only http and https are")
        name = wire_name(host)
        if self.denied.has_name(name):
            raise PolicyDenied(f"deniedHosts refuses {host!r}")
        if self.allowed is not None and not self.allowed.networks and not self.allowed.has_name(name):
            raise PolicyDenied(f"{host!r} is not among allowedHosts")
        if self.public_only and names_this_machine(name):
            raise PolicyDenied(f"private networks are blocked, and {host!r} is this machine")

    def check_addresses(self, host: str, addresses: Iterable[Address]) -> None:
        """Refuse a host when any of its addresses is refused: a name must not mix both kinds.

        Raises ``PolicyDenied``.
        """
        by_name = self.allowed is None or self.allowed.has_name(wire_name(host))
        for address in addresses:
            self._check_address(host, address, by_name)

    def _check_address(self, host: str, address: Address, by_name: bool) -> None:
        of_host = f"{address}" if numeric_host(host) == address else f"{host!r} ({address})"
        bare = plain(address)
        if any(self.denied.has_address(one) for one in (bare, *carried(address))):
            raise PolicyDenied(f"deniedHosts refuses {of_host}")
        if not by_name and self.allowed is not None and not self.allowed.has_address(bare):
            raise PolicyDenied(f"{of_host} is not among allowedHosts")
        if self.public_only and (why := why_not_public(address)):
            raise PolicyDenied(f"private networks are blocked, and {of_host} is not public: {why}")


@lru_cache(maxsize=1024)
def wire_name(host: str) -> str:
    """A host as it is compared: ASCII, lower case, no trailing dot, a spelled address in its usual form.

    Raises ``ValueError`` for a host that no name server could be asked for.
    """
    text = host if host.isascii() else _idna(host)
    address = numeric_host(text)
    return text.lower().removesuffix(".") if address is None else str(plain(address))


def is_name(text: str) -> bool:
    """Could it be the wire name of a host?"""
    return _NAME.fullmatch(text) is not None


def _idna(host: str) -> str:
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except idna.IDNAError as e:
        raise ValueError(f"{host!r} is not a host name: {e}") from None


def read_hosts(entries: Sequence[str]) -> Hosts:
    """A list of hosts as an author writes it: ``api.example.org``, ``*.example.org``, ``10.0.0.0/8``, ``*``.

    Raises ``ValueError`` for an entry that is none of these: a rule that matches nothing would be a hole.
    """
    return _read_hosts(tuple(entries))


@lru_cache(maxsize=256)
def _read_hosts(entries: tuple[str, ...]) -> Hosts:
    names: set[str] = set()
    suffixes: list[str] = []
    networks: list[Network] = []
    for entry in entries:
        text = entry.strip()
        if text == "*":
            continue
        if network := _network(text):
            networks.append(network)
            continue
        name = wire_name(text.removeprefix("*."))
        if not is_name(name):
            raise ValueError(
                f"{entry!r} is neither a host name, nor *.SUFFIX, nor an address or network such as 10.0.0.0/8"
            )
        if text.startswith("*."):
            suffixes.append(f".{name}")
        else:
            names.add(name)
    return Hosts(frozenset(names), tuple(suffixes), tuple(networks), any(e.strip() == "*" for e in entries))


def _network(text: str) -> Network | None:
    address = numeric_host(text)
    if address is not None:
        return ip_network(plain(address))
    try:
        return ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None
