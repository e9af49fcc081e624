"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(params=["sqlite", "redis"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """The same on each store: nothing but the variable is another."""
    if request.param == "sqlite":
        return Shell(tmp_path)
    return Shell(tmp_path, {"PLAITA_STORE": request.getfixturevalue("redis_url")})
