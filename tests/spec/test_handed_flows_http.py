"""Handed flows that send requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from plaita.core.flow import Flow
from tests.support.http_stub import serving

FLOWS = Path(__file__).parents[1] / "flows"


def read_flow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FLOWS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def play(handed: dict[str, Any], port: int) -> Any:
    text = json.dumps(handed["flow"]).replace("${PORT}", str(port))
    return Flow.from_string(text).run(handed["input"])


def test_a_get_request_gives_status_and_parsed_json() -> None:
    handed = read_flow("22-http-get-literal")
    with serving() as stub:
        assert play(handed, stub.port) == handed["expected"]


def test_a_dry_run_sends_nothing() -> None:
    handed = read_flow("23-http-dry-run")
    with serving() as stub:
        handed["flow"]["nodes"][1]["url"] = stub.url("/never")
        assert play(handed, stub.port) == handed["expected"]
    assert stub.connections == 0
