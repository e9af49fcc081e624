"""URLs of a store on Redis: what each names, and what is said about one that makes no sense."""

from __future__ import annotations

import re
from typing import Any

import pytest

from plaita.app import open_store
from plaita.backends.redis.address import read_address
from plaita.base.errors import InputError
from plaita.settings import load_settings

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "name", "hosts", "options"),
    [
        ("redis://h", "redis://h:6379/0", (("h", 6379),), {"db": 0}),
        ("redis://h:1/2", "redis://h:1/2", (("h", 1),), {"db": 2}),
        ("redis://h?db=3", "redis://h:6379/3", (("h", 6379),), {"db": 3}),
        ("redis://[::1]:7/0", "redis://[::1]:7/0", (("::1", 7),), {"db": 0}),
        (f"redis://:{SECRET}@h", "redis://h:6379/0", (("h", 6379),), {"db": 0, "password": SECRET}),
        (
            f"redis://us%40er:{SECRET}%2F%40@h",
            "redis://h:6379/0",
            (("h", 6379),),
            {"db": 0, "username": "us@er", "password": f"{SECRET}/@"},
        ),
        ("unix:///tmp/a%20b?db=1", "unix:///tmp/a b", (), {"db": 1, "path": "/tmp/a b"}),
        (f"unix://u:{SECRET}@/s", "unix:///s", (), {"db": 0, "path": "/s", "username": "u", "password": SECRET}),
        (
            "rediss://h:1/0?ssl_ca_certs=/ca.pem",
            "rediss://h:1/0",
            (("h", 1),),
            {"db": 0, "ssl_ca_certs": "/ca.pem", "ssl_check_hostname": True},
        ),
        (
            "rediss://h:1/0?ssl_cert_reqs=none",
            "rediss://h:1/0",
            (("h", 1),),
            {"db": 0, "ssl_cert_reqs": "none", "ssl_check_hostname": False},
        ),
    ],
)
def test_a_url_names_one_redis(url: str, name: str, hosts: Any, options: dict[str, Any]) -> None:
    address = read_address(url)
    assert (address.name, address.hosts, dict(address.options)) == (name, hosts, options)


def test_a_url_names_sentinels_and_a_service() -> None:
    url = f"redis+sentinel://u:{SECRET}@a:1,b/svc/2?sentinel_username=w&sentinel_password={SECRET}2"
    address = read_address(url)
    assert address.name == "redis+sentinel://a:1,b:26379/svc/2"
    assert (address.hosts, address.service) == ((("a", 1), ("b", 26379)), "svc")
    assert dict(address.options) == {"db": 2, "username": "u", "password": SECRET}
    assert dict(address.sentinel_options) == {"username": "w", "password": f"{SECRET}2"}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        (f"redis://u:{SECRET}@h:port", "a port is a number"),
        (f"redis://u:{SECRET}@h:0", "a port is a number"),
        (f"redis://u:{SECRET}@", "a host is missing"),
        (f"redis://u:{SECRET}\u2100@h", "the host makes no sense"),
        (f"redis://u:{SECRET}@h/db", "the database is a number"),
        (f"redis://u:{SECRET}/x@h/0", "a port is a number"),
        (f"redis://h?password={SECRET}", "no parameter 'password'"),
        (f"redis://h?ssl_ca_certs={SECRET}", "no parameter 'ssl_ca_certs'"),
        ("rediss://h?ssl_cert_reqs=maybe", "required, optional or none"),
        ("rediss://h?ssl_check_hostname=maybe", "true or false"),
        ("unix://relative/path", "path of the socket"),
        (f"redis+sentinel://u:{SECRET}@a:1,b:2", "name of the service"),
        ("redis+sentinel://a:1,,b:2/svc", "a host is missing"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused_with_what_is_expected(url: str, reason: str) -> None:
    with pytest.raises(InputError, match=re.escape(reason)) as caught:
        read_address(url)
    assert f"expected {url.partition('://')[0]}://" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["redis://h", "rediss://h", "unix:///s", "redis+sentinel://a,b/svc", "rediss+sentinel://a,b/svc"]
)
def test_every_kind_of_url_is_a_store_of_the_settings(url: str) -> None:
    settings = load_settings({"PLAITA_STORE": url}, None)
    assert open_store(settings).name.startswith(url.partition("://")[0])


def test_the_password_is_not_shown_when_the_setting_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        load_settings({"PLAITA_STORE": f"reddis://u:{SECRET}/x@h"}, None)
    assert SECRET not in str(caught.value)


def test_an_address_does_not_show_its_password() -> None:
    assert SECRET not in repr(read_address(f"redis://u:{SECRET}@h"))
