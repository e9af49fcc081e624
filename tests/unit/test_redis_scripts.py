"""Each script is what the head of its file says, and nothing else reaches it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import plaita
from plaita.backends.limits import Limits
from plaita.backends.redis.keys import NAMES, key
from plaita.backends.redis.scripts import Scripts, Source, read_source, sources

LINE_MAX = 120
VERBS = sorted(name for name, source in sources().items() if source.is_verb)
REFUSED_AT_MAXMEMORY = {
    "accept", "adopt", "decide", "offer", "publish", "publish_flow", "put_closure", "replay", "submit", "wake",
}  # fmt: skip


EVERYTHING = "".join(source.text for source in sources().values())


def code_of(text: str) -> str:
    """A file without its comments."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w+", code_of(text)))


def names_of(source: Source) -> set[str]:
    """What a file declares for itself and others."""
    functions = re.findall(r"^(?:local )?function (?:[A-Z]+\.)?(\w+)", source.text, re.MULTILINE)
    constants = re.findall(r"^local ([A-Z_, ]+) =", source.text, re.MULTILINE)
    state = [word.partition("=")[0] for word in source.state]
    return {*functions, *state, *(name for names in constants for name in names.split(", "))}


def made_by(source: Source) -> set[str]:
    """The functions that are made of its records."""
    return {name for record in source.records for name in (f"{record.name}_of", f"values_of_{record.name}")}


@pytest.fixture(scope="module")
def scripts() -> Scripts:
    return Scripts(Limits())


def test_only_what_brings_something_new_is_refused_when_memory_is_full() -> None:
    assert {name for name in VERBS if sources()[name].oom == "deny-oom"} == REFUSED_AT_MAXMEMORY


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_file_uses_every_argument_and_fragment_it_names(name: str) -> None:
    source = sources()[name]
    words = words_of(source.text)
    assert [
        other for other in source.uses if not (names_of(sources()[other]) | made_by(sources()[other])) & words
    ] == []
    for arg in source.args:
        # A step is the arguments of its settle.
        assert re.search(rf"\b(?:args|step)\.{arg.rstrip('*')}\b", EVERYTHING), arg


def test_every_function_and_constant_is_used() -> None:
    used = Counter(word for source in sources().values() for word in re.findall(r"\w+", code_of(source.text)))
    assert {name for source in sources().values() for name in names_of(source) if used[name] < 2} == set()


def test_every_key_is_used() -> None:
    modules = [path for path in Path(plaita.__file__).parent.rglob("*.py") if path.name != "keys.py"]
    code = EVERYTHING + "".join(path.read_text(encoding="utf-8") for path in modules)
    assert {name for name in NAMES if not re.search(rf'\b{name}_key\b|"{name}"', code)} == set()


@pytest.mark.parametrize("name", sorted(sources()))
def test_the_lines_of_a_file_can_be_read(name: str) -> None:
    text = sources()[name].text
    assert not [line for line in text.splitlines() if len(line) > LINE_MAX and not line.startswith("--!")]
    assert "\t" not in text


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_file_makes_every_key_from_the_table(name: str) -> None:
    text = sources()[name].text
    assert set(re.findall(r"(?<![.\w])(\w+)_key\(", text)) <= NAMES.keys()
    assert "KEYS[" not in text
    assert "plaita:" not in text


@pytest.mark.parametrize("name", sorted(sources()))
def test_a_file_keeps_nothing_from_one_call_to_the_next(name: str) -> None:
    source = sources()[name]
    kept = re.findall(r"^local (?!function )([^=\n]+)", source.text, re.MULTILINE)
    assert source.is_verb or all(word.strip().isupper() for words in kept for word in words.split(",")), kept
    written = re.findall(r"^\s*(?:[A-Z_]+\[[^\]]*\]|[A-Z_]+)(?:\.\w+)* = ", source.text, re.MULTILINE)
    assert not written, "what is in capitals is a constant"


def test_every_limit_makes_a_library_of_its_own(scripts: Scripts) -> None:
    assert Scripts(Limits()).name == scripts.name
    assert Scripts(Limits(chunk=1)).name != scripts.name


def test_a_prefix_keeps_two_stores_on_one_server_apart() -> None:
    text = Scripts(Limits(), prefix="other")["submit"].text
    assert "'plaita:" not in text
    assert key("run", "a", prefix="other") == "other:run:a"


def test_two_parts_of_a_key_never_run_into_each_other() -> None:
    assert key("keyed", "a:b", "c") != key("keyed", "a", "b:c")


def test_an_argument_that_the_contract_does_not_name_is_refused(scripts: Scripts) -> None:
    with pytest.raises(TypeError, match="release takes no lease"):
        scripts["release"].pack({"holder": "h", "lease": 1})


def test_arguments_go_in_the_order_of_the_contract(scripts: Scripts) -> None:
    packed = scripts["claim"].pack(
        {"lacks": ["x"], "queues": ["a", "b"], "alone": True, "only": None, "n": 3, "nonce": "n"}
    )
    assert packed == ["n", 3, "", 1, 2, "a", "b", 1, "x"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("return 1\n", "the head must begin"),
        ("--! verb other\n", "the head must begin"),
        ("--! verb it\n--! args a\n", "says its class"),
        ("--! verb it\n--! class now-and-then\n--! args a\n", "says its class"),
        ("--! verb it\n--! class deny-oom\n", "says its class"),
    ],
)
def test_a_file_without_a_contract_is_refused(text: str, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        read_source("it.lua", text)
