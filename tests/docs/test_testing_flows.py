"""The guide to testing: every block of it is run, and its tables name everything there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import plaita.testing
from plaita.testing.case_files import CASE_KEYS, EXPECT_KEYS, GIVEN_KEYS
from tests.cli.shell import ROOT
from tests.docs.lessons import Lesson, blocks, reader_in

PAGE = "guide/testing-flows.md"
pytestmark = pytest.mark.timeout(120)


def test_the_guide_to_testing_does_what_it_shows(tmp_path: Path) -> None:
    lesson = Lesson(reader_in(tmp_path))
    for block in blocks(PAGE):
        lesson.play(block)


def test_the_guide_names_every_key_of_a_case_and_every_public_name() -> None:
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    for key in (*CASE_KEYS, *GIVEN_KEYS, *EXPECT_KEYS):
        assert f"`{key}`" in text, key
    for name in set(plaita.testing.__all__) - {"FlowRun", "NotAsExpected"}:
        assert name in text, name
