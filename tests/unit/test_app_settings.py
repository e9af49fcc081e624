"""Where a process gets its store from."""

from __future__ import annotations

from pathlib import Path

import pytest

from plaita.app import log_secrets, read_settings
from plaita.settings import use_settings

NAMES = ("PLAITA_STORE", "PLAITA_REDIS_URL", "REDIS_URL")


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, "sqlite:///.plaita/plaita.db"),
        ({"REDIS_URL": "redis://a/0"}, "redis://a/0"),
        ({"REDIS_URL": "redis://a/0", "PLAITA_REDIS_URL": "redis://b/0"}, "redis://b/0"),
        ({"REDIS_URL": "redis://a/0", "PLAITA_STORE": "memory:"}, "memory:"),
        ({"REDIS_URL": ""}, "sqlite:///.plaita/plaita.db"),
    ],
)
def test_the_store_is_the_first_that_is_named(
    variables: dict[str, str], url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    try:
        assert read_settings().store.url == url
        assert read_settings("redis://flag/0").store.url == "redis://flag/0"
    finally:
        use_settings(None)


@pytest.mark.parametrize(
    ("url", "secrets"),
    [
        ("redis://user:p%40ss@host/0", ["p@ss"]),
        ("redis://host/0", []),
        ("redis://[::1:6379/0", []),
        ("redis://user:secret@[::1:6379/0", []),
    ],
)
def test_no_log_shows_the_password_of_the_store_and_a_url_that_is_none_is_told_by_who_opens_it(
    url: str, secrets: list[str]
) -> None:
    try:
        assert log_secrets(read_settings(url)) == secrets
    finally:
        use_settings(None)
