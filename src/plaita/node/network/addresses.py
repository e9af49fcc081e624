"""Which addresses are public, in every spelling a host can have.

The tables are those of the IANA special-purpose registries (RFC 6890 and what updated it). IPv6 is an allow-list: only
global unicast (2000::/3) and the well-known NAT64 prefix can be public at all. An address that carries an IPv4 address
is as public as that one.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

_IPV4: Final = {
    "0.0.0.0/8": "this host",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by a carrier",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "a service of a cloud platform",
    "169.254.0.0/16": "link-local",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "reserved for protocols",
    "192.0.2.0/24": "documentation",
    "192.88.99.0/24": "a 6to4 relay",
    "192.168.0.0/16": "private",
    "198.18.0.0/15": "benchmarking",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved or broadcast",
}
_IPV6: Final = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "2001::/23": "reserved for protocols",
    "2001:db8::/32": "documentation",
    "3ffe::/16": "withdrawn",
    "3fff::/20": "documentation",
    "64:ff9b:1::/48": "NAT64 of a local network",
    "fc00::/7": "private",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local",
    "ff00::/8": "multicast",
}
_NOT_PUBLIC_4: Final = tuple((IPv4Network(text), what) for text, what in _IPV4.items())
_NOT_PUBLIC_6: Final = tuple((IPv6Network(text), what) for text, what in _IPV6.items())
_GLOBAL_6: Final = IPv6Network("2000::/3")
_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
_6TO4: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
_ENDS_IN_IPV4: Final = (
    _MAPPED,
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0:0/96"),
    _NAT64,
    _NAT64_LOCAL,
)
_ISATAP: Final = (0x00005EFE, 0x02005EFE)
_IPV4_PARTS: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}", re.ASCII)
_LOCAL_NAMES: Final = re.compile(
    r"(?:.*\.)?(?:localhost|localhost6|localdomain|localdomain6)|ip6-(?:localhost|loopback)"
)


def numeric_host(host: str) -> Address | None:
    """The address that a host spells itself: dotted, short, decimal, octal, hexadecimal, IPv6 with or without brackets.

    ``None`` when it is a name. Spellings of IPv4 are those that the C library reads (``inet_aton``).
    """
    text = host.lower().removesuffix(".")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    if ":" in text:
        try:
            return IPv6Address(text.replace("%25", "%", 1))
        except ValueError:
            return None
    if _IPV4_PARTS.fullmatch(text) is None:
        return None
    try:
        return IPv4Address(socket.inet_aton(text))
    except OSError:
        return None


def names_this_machine(host: str) -> bool:
    """Is it ``localhost`` under one of its names?"""
    return _LOCAL_NAMES.fullmatch(host.lower().removesuffix(".")) is not None


def read_address(text: str) -> Address:
    """An address as a resolver gives it; the zone of a link-local one is kept. Raises ``ValueError``."""
    return ip_address(text)


def plain(address: Address) -> Address:
    """The address without a zone, and an IPv4-mapped one as IPv4: what it is compared by."""
    if isinstance(address, IPv6Address):
        bare = IPv6Address(int(address))
        return IPv4Address(int(bare) & 0xFFFFFFFF) if bare in _MAPPED else bare
    return address


def carried(address: Address) -> list[IPv4Address]:
    """The IPv4 addresses that an IPv6 address leads to through a translator or a tunnel."""
    if isinstance(address, IPv4Address):
        return []
    bits = int(address)
    bare = IPv6Address(bits)
    found: list[int] = []
    if any(bare in network for network in _ENDS_IN_IPV4):
        found.append(bits & 0xFFFFFFFF)
    if bare in _6TO4:
        found.append(bits >> 80 & 0xFFFFFFFF)
    if bare in _TEREDO:
        found += [bits >> 64 & 0xFFFFFFFF, ~bits & 0xFFFFFFFF]
    if bits >> 32 & 0xFFFFFFFF in _ISATAP:
        found.append(bits & 0xFFFFFFFF)
    return [IPv4Address(one) for one in found]


def why_not_public(address: Address) -> str:
    """What an address is when it is not public, in words; empty when it is public."""
    if isinstance(address, IPv4Address):
        return _first(address, _NOT_PUBLIC_4)
    inner = carried(address)
    for one in inner:
        if why := why_not_public(one):
            return f"{why}, as {one} inside IPv6"
    bare = IPv6Address(int(address))
    if bare in _MAPPED or bare in _NAT64:
        return ""
    return _first(bare, _NOT_PUBLIC_6) or ("" if bare in _GLOBAL_6 else "outside global unicast")


def _first(address: Address, table: Iterable[tuple[IPv4Network | IPv6Network, str]]) -> str:
    return next((what for network, what in table if address in network), "")
