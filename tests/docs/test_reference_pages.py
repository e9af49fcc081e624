"""The reference pages and the code say the same."""

import pickle
from pathlib import Path
from typing import Any

import pytest

from plaita.base import errors
from plaita.base.errors import (
    EventNotFoundError,
    EventTimeoutError,
    FlowExecutionException,
    FlowLoadError,
    InputError,
    PlaitaError,
)
from plaita.base.issues import Issue
from tools.error_advice import ADVICE
from tools.reference_pages import REFERENCE, ROOT, error_classes, pages

PAGES = pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(REFERENCE)))
def test_the_page_is_what_make_gen_writes(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path], "run `make gen`"


def test_every_error_has_a_page_and_every_page_an_error() -> None:
    references = [cls.reference for cls in error_classes()]
    assert len(set(references)) == len(references)
    assert set(references) == {p.stem for p in (REFERENCE / "errors").glob("PLT-*.md")} == ADVICE.keys()


def test_the_tree_in_the_docstring_names_every_error_with_its_reference() -> None:
    lines = (errors.__doc__ or "").splitlines()
    for cls in error_classes():
        assert any(cls.__name__ in line.split() and cls.reference in line.split() for line in lines), cls.__name__


def example(cls: type[PlaitaError]) -> PlaitaError:
    if issubclass(cls, FlowLoadError):
        return cls([Issue("error", "dangling_next", "$.nodes[0].next", "no such node", line=3, column=9)], "order.yaml")
    if issubclass(cls, InputError):
        return cls("$.a[0]", "not a number")
    if issubclass(cls, FlowExecutionException):
        given: dict[str, Any] = {
            "code": "E7",
            "message": "it broke",
            "error_type": "broken",
            "node": "n1",
            "source_line": 4,
        }
        return cls(**given, kind="timeout", path=("a", 0, "b"))
    if issubclass(cls, EventTimeoutError):
        return cls("news", 1.5)
    if issubclass(cls, EventNotFoundError):
        return cls("e1")
    return cls("it broke", "mend it")


@pytest.mark.parametrize("cls", error_classes(), ids=lambda cls: str(cls.__name__))
def test_an_error_survives_a_process_boundary(cls: type[PlaitaError]) -> None:
    error = example(cls)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is cls
    assert (str(copy), copy.kind, vars(copy)) == (str(error), error.kind, vars(error))
    assert error.kind in errors.KINDS


def test_every_page_of_the_site_is_in_its_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    docs = ROOT / "docs"
    listed = [p for p in docs.rglob("*.md") if p.parent != REFERENCE / "errors" or p.name == "index.md"]
    missing = [str(p.relative_to(docs)) for p in listed if str(p.relative_to(docs)) not in navigation]
    assert not missing
