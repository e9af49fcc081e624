"""The files of ``deploy/``: every command, flag, variable and path in them exists, and they hold together."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from plaita.backends.redis import RedisBackend
from plaita.cli.main import build
from plaita.runtime.supervising import LEAVING_S
from plaita.settings import Settings, load_settings, unknown_variables
from tests.cli.shell import ROOT
from tests.servers import redis_at

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "plaita-worker.service"


def parsed(words: Sequence[str]) -> dict[str, Any]:
    """The options of a ``plaita`` command line; whatever is unknown in it is an error."""
    group = typer.main.get_command(build())
    name, *rest = words
    command = group.commands[name]  # type: ignore[attr-defined]
    options: dict[str, Any] = command.make_context(name, list(rest)).params
    return options


@pytest.fixture
def unit() -> ConfigParser:
    found = ConfigParser(interpolation=None, strict=True)
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read(UNIT)
    return found


@pytest.fixture
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def variables(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def patience_s(settings: Settings) -> float:
    """How long a worker may take to end after SIGTERM."""
    return settings.worker.drain_timeout_seconds + LEAVING_S


def test_the_unit_starts_a_command_that_exists_and_waits_for_its_drain(unit: ConfigParser) -> None:
    service = unit["Service"]
    program, *words = shlex.split(service["ExecStart"])
    options = parsed(words)
    assert program.endswith("/bin/plaita") and options["processes"] == 4
    settings = load_settings(variables(DEPLOY / "worker.env"))
    assert float(service["TimeoutStopSec"]) > patience_s(settings)
    assert (service["KillMode"], service["Restart"], service["OOMPolicy"]) == ("mixed", "on-failure", "continue")


def test_the_variables_of_the_unit_mean_something() -> None:
    assert unknown_variables(variables(DEPLOY / "worker.env")) == {}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    # The program and the user of the unit are not there; the rest is judged as it is.
    text = UNIT.read_text(encoding="utf-8").replace("/opt/plaita/bin/plaita", sys.executable)
    there = tmp_path / UNIT.name
    there.write_text(re.sub(r"^(User|Group)=.*\n", "", text, flags=re.MULTILINE), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--recursive-errors=no", str(there)], capture_output=True, text=True, check=False
    )
    mine = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (mine, done.returncode) == ([], 0), done.stderr


async def test_the_redis_of_the_composition_keeps_what_it_accepts(compose: dict[str, Any]) -> None:
    program, *options = compose["services"]["redis"]["command"]
    assert program == "redis-server"
    with redis_at(*options) as server:
        store = RedisBackend(server.url)
        found = {finding.name: finding.status for finding in await store.examine()}
        await store.close()
    assert {found[name] for name in ("durability", "eviction", "memory")} == {"ok"}
    assert compose["services"]["redis"]["volumes"] == ["redis:/data"]


def test_the_worker_of_the_composition_is_a_command_that_exists_and_has_time_to_drain(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    options = parsed(worker["command"])
    assert unknown_variables(worker["environment"]) == {}
    settings = load_settings(worker["environment"])
    assert float(worker["stop_grace_period"].removesuffix("s")) > patience_s(settings)
    assert f"127.0.0.1:{options['metrics_port']}/health" in worker["healthcheck"]["test"][-1]
    compile(worker["healthcheck"]["test"][-1], "healthcheck", "exec")
    assert (DEPLOY / worker["build"]["context"] / worker["build"]["dockerfile"]).samefile(DEPLOY / "Dockerfile")


def test_the_image_copies_what_is_there_and_starts_a_command_that_exists() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    steps = [line.split(None, 1) for line in lines if line and not line.startswith("#")]
    copied = [path for name, rest in steps if name == "COPY" for path in rest.split()[:-1]]
    assert copied and all((ROOT / path).exists() for path in copied)
    said = {name: rest for name, rest in steps}
    assert json.loads(said["ENTRYPOINT"]) == ["plaita"]
    parsed(json.loads(said["CMD"]))
    extras = ",".join(re.findall(r"\[([a-z,]+)\]'", said["RUN"])).split(",")
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [f"\n{extra} = [" in declared for extra in extras] == [True, True]
