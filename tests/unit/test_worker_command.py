"""What ``plaita worker`` refuses before it starts, and what a command says when nobody meant it to fail."""

from __future__ import annotations

import json
import sys

import pytest

from plaita.base.errors import InputError
from plaita.cli.main import answer, main
from plaita.server.worker.bridge import read_event


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--alert-webhook", "junk", "--alert-webhook: 'junk' is not http://… or https://…"),
        ("--metrics-host", "a b", "--metrics-host: 'a b' is not an address or a host name"),
        ("--lease-ttl-seconds", "nan", "--lease-ttl-seconds"),
    ],
)
def test_a_flag_is_refused_like_the_setting_it_stands_for(
    capsys: pytest.CaptureFixture[str], flag: str, value: str, words: str
) -> None:
    code = answer(["worker", "--store", "memory:", flag, value])
    assert (code, words in capsys.readouterr().err) == (2, True)


def test_an_error_that_nobody_meant_is_json_where_json_was_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    with pytest.raises(SystemExit):
        main(["ps", "--nonsense", "--json"])
    capsys.readouterr()
    sys.excepthook(KeyError, KeyError("x"), None)
    error = json.loads(capsys.readouterr().err)["error"]
    assert (error["code"], error["message"]) == ("unexpected", "unexpected KeyError: 'x'")


def test_what_is_no_event_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="event_id: ") as refused:
        read_event(b'{"event_id": 1, "event_type": " "}')
    assert "\n" not in str(refused.value) and "http" not in str(refused.value)
    assert not isinstance(refused.value, InputError)
