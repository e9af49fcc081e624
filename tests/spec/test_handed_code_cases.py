"""Cases from reports about systems like this one, as far as the ``code`` node answers them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from plaita.core.flow import Flow
from tests.spec.handed import ending, holds, read_case
from tests.support.fleet import wait_until
from tests.support.scripts import is_alive

BACKENDS = ("subprocess", "restricted")
NAMED_ATTRIBUTE = {"058-format-string-dunder": "'__class__'", "059-sandbox-frame-walk": '"gi_frame"'}
"""The script starts, and the error names the attribute that is refused."""


pytestmark = pytest.mark.usefixtures("default_settings")


def play(given: dict[str, Any], backend: str | None = None, tmp: Path | None = None) -> dict[str, Any]:
    """The value of a flow, or the kind and text of its error."""
    text = json.dumps(given).replace("{tmp}", str(tmp))
    given = json.loads(text)
    if backend is not None:
        for node in given["flow"]["nodes"]:
            node |= {"sandbox_backend": backend} if node["type"] == "code" else {}
    return ending(lambda: Flow.model_validate(given["flow"]).run(given["input"]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_050_printing_does_not_break_a_script(backend: str) -> None:
    handed = read_case("050-code-print-does-not-break")
    assert holds(handed["expect"], play(handed["given"], backend))


def test_051_a_result_cannot_be_made_up() -> None:
    handed = read_case("051-code-result-cannot-be-forged")
    found = play(handed["given"])
    assert holds(handed["expect"], found), found
    assert "before run returned" in found["text"]


def test_054_integer_keys_are_refused_by_every_backend_alike() -> None:
    handed = read_case("054-code-int-keys")
    assert handed["expect"]["invariant"] == "the same in every backend and after resume"
    texts = {play(handed["given"], backend)["text"] for backend in BACKENDS}
    assert holds(handed["expect"], play(handed["given"]))
    assert texts == {"node 'a' (code): the result is not JSON: $: key 1 is int; keys are text"}


def test_056_a_timeout_ends_the_process(tmp_path: Path) -> None:
    handed = read_case("056-code-timeout-kills-process")
    assert handed["expect"]["invariant"] == "the node fails between 0.5 s and 2 s and the process is gone"
    begin = time.perf_counter()
    found = play(handed["given"], tmp=tmp_path)
    seconds = time.perf_counter() - begin
    assert holds(handed["expect"], found), found
    assert 0.5 <= seconds < 2
    pid = int((tmp_path / "case.pid").read_text())
    wait_until(lambda: not is_alive(pid), "the process is gone", patience_s=2)


@pytest.mark.parametrize("name", NAMED_ATTRIBUTE)
def test_a_restricted_script_that_walks_attributes_fails_and_the_error_names_one(name: str) -> None:
    handed = read_case(name)
    found = play(handed["given"])
    assert holds(handed["expect"], found), found
    assert NAMED_ATTRIBUTE[name] in found["text"]
