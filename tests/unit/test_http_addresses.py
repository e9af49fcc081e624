"""Which hosts are public, in every spelling; and what the rules of a request make of them."""

from __future__ import annotations

import pytest

from plaita.base.errors import PolicyDenied
from plaita.engine.failure import FailureRaised
from plaita.node.network.addresses import numeric_host, why_not_public
from plaita.node.network.policy import NOBODY, Policy, read_hosts
from plaita.node.network.urls import read_url

NOT_PUBLIC = [
    # loopback and this host
    "127.0.0.1", "127.1", "127.255.255.254", "0177.0.0.1", "0177.1", "0x7f.0.0.1", "0x7f.1", "0x7f000001",
    "0X7F000001", "2130706433", "017700000001", "127.0.1", "127.0x0.0.01", "127.0.0.1.", "0", "0.0.0.0", "0x0", "0.1",
    "0.0.0.0.", "[::1]", "[::]", "[0:0:0:0:0:0:0:0]", "[0:0:0:0:0:0:0:1]", "[0000::0001]",
    # other scripts
    "１２７.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "１６９．２５４．１６９．２５４", "[::ffff:7f00:1]",
    # private, shared, link-local
    "10.0.0.1", "10.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.168.257", "3232235777", "100.64.0.1",
    "100.127.255.255", "169.254.169.254", "169.254.43518", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376",
    "168.63.129.16", "[fe80::1]", "[fe80::1%25eth0]", "[fc00::1]", "[fd00:ec2::254]", "[fec0::1]",
    # protocols, documentation, benchmarking
    "192.0.0.8", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
    "203.0.113.9", "[2001:db8::1]", "[3fff::1]", "[2001:2::1]", "[2001:10::1]", "[3ffe::1]", "[100::1]", "[5f00::1]",
    # multicast and broadcast
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "4294967295", "0xffffffff", "[ff02::1]",
    "[ff0e::1]",
    # IPv4 inside IPv6: mapped, compatible, translated, NAT64, 6to4, Teredo, ISATAP
    "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]",
    "[::7f00:1]", "[::8.8.8.8]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::10.1.2.3]", "[64:ff9b:1::8.8.8.8]", "[64:ff9b:1:abcd::1]", "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]",
    "[2002:c0a8:0101::1]", "[2001:0:4136:e378:8000:63bf:3fff:fdd2]", "[2001::1]", "[2a00:1450::5efe:10.0.0.1]",
    "[2a00:1450::200:5efe:127.0.0.1]",
]  # fmt: skip
NAMES_OF_THIS_MACHINE = [
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "localhost.localdomain", "localhost6", "ip6-localhost",
    "ip6-loopback", "ｌocalhost", "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
]  # fmt: skip
PUBLIC = [
    "8.8.8.8", "1.1.1.1", "134744072", "0x08080808", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255",
    "198.17.255.255", "198.20.0.0", "223.255.255.255", "[2606:4700:4700::1111]", "[2a00:1450:4001::200e]",
    "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2002:808:808::1]", "[2001:4860:4860::8888]",
]  # fmt: skip
PUBLIC_ONLY = Policy(public_only=True)


def check(host: str, policy: Policy, resolved: str | None = None) -> None:
    """What a request to a host goes through before anything is connected."""
    url = read_url(f"http://{host}/")
    policy.check_host(url.scheme, url.name)
    address = numeric_host(resolved or url.name)
    assert address is not None
    policy.check_addresses(url.host, [address])


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_a_host_that_is_not_public_is_refused_in_every_spelling(host: str) -> None:
    with pytest.raises(PolicyDenied, match="private networks are blocked"):
        check(host, PUBLIC_ONLY)


@pytest.mark.parametrize("host", NAMES_OF_THIS_MACHINE)
def test_names_of_this_machine_are_refused_without_asking_anybody(host: str) -> None:
    url = read_url(f"http://{host}/")
    with pytest.raises(PolicyDenied, match="is this machine"):
        PUBLIC_ONLY.check_host(url.scheme, url.name)


@pytest.mark.parametrize("host", PUBLIC)
def test_a_public_host_is_allowed(host: str) -> None:
    check(host, PUBLIC_ONLY)


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_without_a_rule_every_host_is_allowed(host: str) -> None:
    check(host, Policy())


@pytest.mark.parametrize(
    "host",
    [
        "%31%32%37.0.0.1", "127.0.0.1%2f", "127.0.0.1%00.example.org", "a b", "example.org\\@127.0.0.1",
        "a@b@127.0.0.1", "-x.org", "ex*mple.org", "999.1.1.1.1", "[::1", "[v1.x]", "[::1]x", "", "h:0", "h:70000",
        "h:x",
    ],
)  # fmt: skip
def test_a_host_that_two_readers_may_read_differently_makes_no_request(host: str) -> None:
    with pytest.raises(FailureRaised) as caught:
        read_url(f"http://{host}/")
    assert caught.value.failure.code == 1001


@pytest.mark.parametrize("scheme", ["ftp", "file", "gopher", "javascript", "unix", "http+unix"])
def test_only_http_and_https_are_spoken(scheme: str) -> None:
    url = read_url(f"{scheme}://example.org/x")
    with pytest.raises(PolicyDenied, match=r"only http and https"):
        Policy().check_host(url.scheme, url.name)


ALLOWED = read_hosts(["api.example.org", "*.shop.example.org", "10.2.0.0/16", "2a00::/16", "BÜCHER.example"])


@pytest.mark.parametrize(
    ("host", "resolved"),
    [
        ("api.example.org", "8.8.8.8"), ("API.Example.org.", "8.8.8.8"), ("a.shop.example.org", "8.8.8.8"),
        ("a.b.shop.example.org", "8.8.8.8"), ("10.2.3.4", None), ("[::ffff:10.2.3.4]", None), ("other.org", "10.2.0.1"),
        ("[2a00::1]", None), ("bücher.example", "8.8.8.8"), ("xn--bcher-kva.example", "8.8.8.8"),
    ],
)  # fmt: skip
def test_allowed_hosts_match_by_name_suffix_and_network(host: str, resolved: str | None) -> None:
    check(host, Policy(allowed=ALLOWED), resolved)


@pytest.mark.parametrize(
    ("host", "resolved"),
    [
        ("example.org", "8.8.8.8"), ("api.example.org.evil.org", "8.8.8.8"), ("shop.example.org", "8.8.8.8"),
        ("evilshop.example.org", "8.8.8.8"), ("10.3.0.1", None), ("other.org", "10.3.0.1"), ("8.8.8.8", None),
    ],
)  # fmt: skip
def test_a_host_that_is_not_allowed_is_refused(host: str, resolved: str | None) -> None:
    with pytest.raises(PolicyDenied, match="not among allowedHosts"):
        check(host, Policy(allowed=ALLOWED), resolved)


@pytest.mark.parametrize(
    ("host", "resolved"),
    [
        ("evil.org", "8.8.8.8"), ("EVIL.org.", "8.8.8.8"), ("a.bad.org", "8.8.8.8"), ("9.9.9.9", None),
        ("0x9.9.9.9", None), ("[::ffff:9.9.9.9]", None), ("[64:ff9b::9.9.9.9]", None), ("[2002:909:909::]", None),
        ("good.org", "9.9.9.9"),
    ],
)  # fmt: skip
def test_denied_hosts_are_refused_even_when_they_are_allowed(host: str, resolved: str | None) -> None:
    policy = Policy(allowed=read_hosts(["*"]), denied=read_hosts(["evil.org", "*.bad.org", "9.9.9.0/24"]))
    with pytest.raises(PolicyDenied, match="deniedHosts refuses"):
        check(host, policy, resolved)


def test_an_empty_list_of_allowed_hosts_allows_nothing() -> None:
    with pytest.raises(PolicyDenied):
        check("example.org", Policy(allowed=NOBODY), "8.8.8.8")


def test_allowing_a_private_network_does_not_open_it_while_private_networks_are_blocked() -> None:
    with pytest.raises(PolicyDenied, match="private networks"):
        check("10.2.3.4", Policy(allowed=ALLOWED, public_only=True))


@pytest.mark.parametrize("entry", ["http://x.org", "x.org:80", "x.org/path", "10.0.0.0/33", "a b", "", "*.", "*x.org"])
def test_a_rule_that_cannot_be_read_is_an_error(entry: str) -> None:
    with pytest.raises(ValueError, match="neither a host name"):
        read_hosts([entry])


def test_the_reason_names_the_address_that_is_carried() -> None:
    address = numeric_host("[64:ff9b::a9fe:a9fe]")
    assert address is not None
    assert why_not_public(address) == "link-local, as 169.254.169.254 inside IPv6"
