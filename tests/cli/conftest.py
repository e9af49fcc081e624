"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
