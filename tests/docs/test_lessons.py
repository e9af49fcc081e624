"""The lessons are run block by block, each from an empty folder with what the lessons before it left there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.shell import ROOT
from tests.docs import lessons
from tests.docs.lessons import Block, Lesson, Unknown, blocks, matches, reader_in

pytestmark = pytest.mark.timeout(120)

LESSONS = {
    "learn/index.md": (),
    "learn/first-flow.md": (),
    "learn/mistakes.md": ("learn/first-flow.md",),
    "learn/approval.md": (),
    "learn/custom-node.md": (),
    "learn/testing.md": ("learn/first-flow.md", "learn/approval.md", "learn/custom-node.md"),
    "learn/language.md": (),
}
"""Page, and the pages whose files it needs."""
NOT_RUN = {
    ("learn/index.md", "python3 -m venv .venv && . .venv/bin/activate && pip install -q ."): (
        "installs from a copy of the repository; here the package under test is installed already"
    ),
}
"""First lines of blocks that are shown but not run, with the reason."""


@pytest.mark.parametrize("page", LESSONS)
def test_a_lesson_does_what_it_shows(page: str, tmp_path: Path) -> None:
    lesson = Lesson(reader_in(tmp_path))
    for needed in LESSONS[page]:
        for block in blocks(needed):
            if block.title:
                lesson.play(block)
    for block in blocks(page):
        if (page, block.first) not in NOT_RUN:
            lesson.play(block)


def test_every_page_to_learn_from_is_a_lesson() -> None:
    pages = {f"learn/{path.name}" for path in (ROOT / "docs" / "learn").glob("*.md")}
    assert pages == LESSONS.keys()


def test_every_block_that_is_not_run_exists() -> None:
    shown = {(page, block.first) for page in LESSONS for block in blocks(page)}
    assert NOT_RUN.keys() <= shown


@pytest.mark.parametrize(
    "text", ["```toml\na = 1\n```\n", "```sh extra\nls\n```\n", "<!-- maybe: 1 -->\n```sh\nls\n```\n"]
)
def test_a_block_that_nobody_knows_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(f"# Page\n\n{text}")
    monkeypatch.setattr(lessons, "ROOT", tmp_path)
    with pytest.raises(Unknown, match=r"page\.md"):
        blocks("page.md")


def test_an_output_that_is_not_what_the_page_shows_is_refused(tmp_path: Path) -> None:
    lesson = Lesson(reader_in(tmp_path))
    lesson.play(Block("page", "sh", "echo one\n"))
    with pytest.raises(AssertionError, match="page shows"):
        lesson.play(Block("page", "text", "two\n"))


def test_an_ellipsis_stands_for_a_part_of_a_line_or_for_lines() -> None:
    assert matches("a … c\n…\nz\n", "a b b c\nx\ny\nz\n")
    assert matches("a\n…\nz\n", "a\nz\n")
    assert not matches("a …\nz\n", "a b\ny\nz\n")
