"""Every command of a runbook of the published system works here, or its page names what takes its place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "migrate-from-0.63.md"
MODULES = {
    ("plaita.server.flow_worker", "--help"): (0, "--lease-ttl-seconds"),
    ("plaita.server.event_filter", "--help"): (0, "--event-type"),
    ("plaita.server.services", "delay_service", "--redis-url", "redis://localhost:1"): (0, "not needed"),
    ("plaita.server.services", "approval_service"): (0, "plaita inbox"),
    ("plaita.server.services", "schedule_service"): (1, "not available in this release"),
    ("plaita.server.services", "redis_queue_service"): (1, "not available in this release"),
    ("plaita.server.services", "http_callback_service"): (1, "not available in this release"),
    ("plaita.server.services", "dely_service"): (2, "name one of"),
    ("plaita", "build", "--help"): (0, "SOURCE"),
}
REPLACEMENTS = (
    ("worker", "--help"), ("inbox", "--help"), ("approve", "--help"), ("reject", "--help"), ("start", "--help"),
    ("resume", "--help"), ("event", "publish", "--help"), ("dlq", "replay", "--help"), ("doctor", "--help"),
)  # fmt: skip


@pytest.mark.parametrize("arguments", MODULES, ids=" ".join)
def test_a_documented_command_works_or_says_what_takes_its_place(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, words = MODULES[arguments]
    answer = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert answer.returncode == code, answer.stderr
    assert words in answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize("command", REPLACEMENTS, ids=" ".join)
def test_what_takes_the_place_of_a_documented_command_is_there(command: tuple[str, ...], tmp_path: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "plaita", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert f"plaita {' '.join(command[:-1])}" in PAGE.read_text()


def test_the_page_names_every_documented_command() -> None:
    text = PAGE.read_text()
    named = (
        *(f"python -m {words[0]}" for words in MODULES if words[0].startswith("plaita.server")),
        "delay_service", "approval_service", "schedule_service", "redis_queue_service", "http_callback_service",
        "reap_zombie_executions", "drain_list_queue_to_stream", "reindex_executions", "plaita build",
    )  # fmt: skip
    assert [name for name in named if name not in text] == []
