"""The documented flags of programs: what they set, and what is said of the others."""

from __future__ import annotations

import pytest

from plaita.cli.programs import WORKER, flow_worker, read_flags
from plaita.settings import SETTINGS


def test_every_flag_that_counts_sets_a_variable_that_is_declared() -> None:
    declared = {item.setting.variable for item in SETTINGS}
    assert {flag.variable for flag in WORKER if flag.variable} <= declared


def test_every_other_flag_says_what_takes_its_place() -> None:
    assert all(flag.instead for flag in WORKER if not flag.variable)


def test_flags_are_read_in_both_spellings_and_the_last_one_counts() -> None:
    given = read_flags(
        WORKER, ["--concurrency", "2", "--concurrency=3", "--quiet", "--cache-ttl", "5", "--cache-ttl=6"]
    )
    assert given.values == {"PLAITA_WORKER_CONCURRENCY": "3", "PLAITA_LOG_LEVEL": "WARNING"}
    assert [flag.name for flag in given.idle] == ["--cache-ttl"]
    assert given.problems == []


def test_everything_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "--max-deliveries",
        "0",
        "--lease-ttl-seconds=x",
        "--concurency=1",
        "--execution-storage-type",
        "memory",
    ]
    assert flow_worker([*arguments, "--queue-name"]) == 2
    said = capsys.readouterr().err
    for problem in (
        "--max-deliveries: '0' is not a whole number from 1",
        "--lease-ttl-seconds: 'x' is not a number from 3",
        "--concurency: there is no such flag; did you mean '--concurrency'?",
        "--execution-storage-type: 'memory' is not redis",
        "--queue-name: needs a value",
    ):
        assert problem in said


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert flow_worker(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(flag.name in said for flag in WORKER)
