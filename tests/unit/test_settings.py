"""Settings come from the environment, then the file, then the defaults; a bad one is named with what is allowed."""

import dataclasses
from pathlib import Path

import pytest

from plaita.base.errors import InputError
from plaita.settings import SETTINGS, Settings, load_settings, unknown_variables

STORES = "sqlite:///PATH, redis://HOST:PORT/DB, rediss://…, unix:///SOCKET, redis+sentinel://… or memory:"


def test_without_anything_the_defaults_hold() -> None:
    assert load_settings({}) == Settings()
    assert load_settings({}, Path("no/such/settings.toml")) == Settings()


def test_every_default_is_within_its_own_bounds() -> None:
    for item in SETTINGS:
        raw = ",".join(item.default) if isinstance(item.default, tuple) else str(item.default)
        assert item.setting.read(raw) == item.default, item.setting.variable


def test_every_field_has_a_declaration_and_every_variable_one_field() -> None:
    groups = {f.name for f in dataclasses.fields(Settings) if dataclasses.is_dataclass(f.default_factory)}
    names = {(item.group, item.attribute) for item in SETTINGS}
    for group in groups:
        assert {(group, f.name) for f in dataclasses.fields(getattr(Settings(), group))} <= names
    assert {("", f.name) for f in dataclasses.fields(Settings) if f.name not in groups} <= names
    assert len({item.setting.variable for item in SETTINGS}) == len(SETTINGS) == len(names)


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text('imports = ["shop.nodes", "nodes.py"]\nworker_concurrency = 7\nstore = "memory:"\n')
    settings = load_settings({"PLAITA_WORKER_CONCURRENCY": " 9 ", "PLAITA_LEASE_TTL_SECONDS": "12.5"}, file)
    assert settings.imports == ("shop.nodes", "nodes.py")
    assert settings.worker.concurrency == 9
    assert settings.store.url == "memory:"
    assert settings.worker.lease_ttl_ms == 12_500


def test_a_list_in_a_variable_is_separated_by_commas() -> None:
    assert load_settings({"PLAITA_IMPORTS": " a, b.py ,"}).imports == ("a", "b.py")


@pytest.mark.parametrize(
    ("variable", "raw", "reason"),
    [
        ("PLAITA_WORKER_CONCURRENCY", "many", "'many' is not a whole number from 1 to 10000"),
        ("PLAITA_WORKER_CONCURRENCY", "0", "'0' is not a whole number from 1 to 10000"),
        ("PLAITA_WORKER_CONCURRENCY", "1.5", "'1.5' is not a whole number from 1 to 10000"),
        ("PLAITA_LEASE_TTL_SECONDS", "2.9", "'2.9' is not a number from 3 to 3600"),
        ("PLAITA_LEASE_TTL_SECONDS", "nan", "'nan' is not a number from 3 to 3600"),
        ("PLAITA_EXECUTION_DEADLINE_SECONDS", "inf", "'inf' is not a number from 0.001 to 31536000"),
        ("PLAITA_SQLITE_SYNCHRONOUS", "full", "'full' is not FULL or NORMAL"),
        ("PLAITA_STORE", "", f"'' is not {STORES}"),
        ("PLAITA_STORE", "mysql://x", f"'mysql://x' is not {STORES}"),
        ("PLAITA_TIMEZONE", "Mars/Base", "'Mars/Base' is not a time zone known here; write one such as Europe/Berlin"),
    ],
)
def test_a_bad_value_is_refused_with_variable_value_and_bounds(variable: str, raw: str, reason: str) -> None:
    with pytest.raises(InputError) as caught:
        load_settings({variable: raw})
    assert str(caught.value) == f"{variable}: {reason}"


def test_the_login_of_an_address_is_not_shown() -> None:
    with pytest.raises(InputError) as caught:
        load_settings({"PLAITA_STORE": "postgres://ann:secret@db/x"})
    assert "secret" not in str(caught.value)
    assert "postgres://…@db/x" in str(caught.value)


def test_all_bad_values_are_named_at_once() -> None:
    with pytest.raises(InputError, match=r"PLAITA_STORE.*PLAITA_WORKER_CONCURRENCY"):
        load_settings({"PLAITA_STORE": "x", "PLAITA_WORKER_CONCURRENCY": "x"})


def test_the_renewal_follows_the_lease_unless_told_otherwise() -> None:
    assert load_settings({"PLAITA_LEASE_TTL_SECONDS": "3"}).worker.renew_ms == 900
    assert load_settings({"PLAITA_LEASE_TTL_SECONDS": "60"}).worker.renew_ms == 18_000
    with pytest.raises(InputError, match=r"PLAITA_LEASE_RENEW_SECONDS: 5 s is more than a third"):
        load_settings({"PLAITA_LEASE_RENEW_SECONDS": "5"})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("imports = 3", r"imports: 3 is not names separated by commas"),
        ("import = []", r"import: is no setting; did you mean 'imports'\?"),
        ("worker_concurrency = true", r"worker_concurrency: True is not a whole number"),
        ("imports = [", r"cannot be read as TOML"),
    ],
)
def test_a_bad_file_is_named_with_its_key(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=reason) as caught:
        load_settings({}, file)
    assert str(file) in str(caught.value)


def test_variables_with_our_prefix_that_mean_nothing_are_listed_with_a_hint() -> None:
    assert unknown_variables({"PLAITA_STOER": "x", "PLAITA_STORE": "memory:", "HOME": "/"}) == {
        "PLAITA_STOER": "did you mean 'PLAITA_STORE'?"
    }


def test_a_documented_variable_of_redis_names_the_store_of_who_names_no_other(tmp_path: Path) -> None:
    implied = {"PLAITA_STORE": "redis://there/0"}
    assert load_settings({}, implied=implied).store.url == "redis://there/0"
    assert load_settings({"PLAITA_STORE": "memory:"}, implied=implied).store.url == "memory:"
    file = tmp_path / "settings.toml"
    file.write_text('store = "memory:"\n')
    assert load_settings({}, file, implied).store.url == "memory:"
