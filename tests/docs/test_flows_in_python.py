"""The guide to flows in Python: every block does what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.lessons import Lesson, blocks, reader_in

PAGE = "guide/flows-in-python.md"


@pytest.mark.timeout(120)
def test_every_block_of_the_guide_to_python_does_what_it_shows(tmp_path: Path) -> None:
    lesson, found = Lesson(reader_in(tmp_path)), blocks(PAGE)
    assert [block.title for block in found if block.title] == ["order.py", "wrong.py"]
    for block in found:
        lesson.play(block)
