"""The guide for programs: every block prints what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.lessons import Lesson, blocks, reader_in

PAGE = "guide/from-python.md"


@pytest.mark.timeout(120)
def test_every_block_of_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    lesson, found = Lesson(reader_in(tmp_path)), blocks(PAGE)
    assert [block.language for block in found] == ["python", "text"] * 6
    for block in found:
        lesson.play(block)
