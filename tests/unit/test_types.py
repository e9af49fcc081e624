"""Declared types: every documented spelling, every type name, errors with their path."""

from __future__ import annotations

import pytest

from plaita.base.errors import InputError
from plaita.base.json import Json
from plaita.engine.expression import ABSENT
from plaita.engine.types import TYPE_NAMES, conform, parse_property

FITS: dict[str, list[Json]] = {
    "string": ["", "a", "é"],
    "integer": [0, -1, 10**30],
    "float": [1, 1.5],
    "number": [1, 1.5],
    "decimal": [1, 1.5],
    "boolean": [True, False],
    "array": [[], [1, "a"]],
    "object": [{}, {"a": 1}],
    "map": [{}, {"a": 1}],
    "date": ["2024-02-29"],
    "datetime": ["2024-02-29T12:00:00", "2024-02-29T12:00:00Z", "2024-02-29T12:00:00.5+08:00"],
    "timestamp": ["2024-02-29T12:00:00Z", 0, 1.5],
    "null": [],
    "optional": [1, "a", [], {}],
    "any": [1, "a", [], {}, True],
    "type": ["string"],
}
REFUSED: dict[str, list[Json]] = {
    "string": [1, True, [], {}],
    "integer": [True, 1.0, "1"],
    "float": [True, "1.0"],
    "number": [False, "1"],
    "decimal": [True, "1"],
    "boolean": [0, 1, "true"],
    "array": [{}, "a", 1],
    "object": [[], "a"],
    "map": [[], 1],
    "date": ["2024-02-30", "tomorrow", 1, ""],
    "datetime": ["2024-02-29T25:00:00", "now", 1],
    "timestamp": ["soon", True, []],
    "null": [0, "", False],
    "optional": [],
    "any": [],
    "type": [1],
}


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_every_documented_type_name_accepts_its_values_and_no_others(name: str) -> None:
    prop = parse_property({"type": name})
    for value in [*FITS[name], None]:
        assert conform(prop, value) is value
    for value in REFUSED[name]:
        with pytest.raises(InputError, match=r"^\$: must be "):
            conform(prop, value)


def test_a_required_value_may_not_be_null() -> None:
    with pytest.raises(InputError, match="is required"):
        conform(parse_property({"type": "string", "required": True}), None)


@pytest.mark.parametrize("type_key", ["data_type", "dataType", "type"])
@pytest.mark.parametrize("required_key", ["is_required", "isRequired", "required"])
@pytest.mark.parametrize("children_key", ["children", "properties"])
@pytest.mark.parametrize("default_key", ["default_value", "defaultValue", "default"])
@pytest.mark.parametrize("item_key", ["item_type", "itemType", "items"])
def test_all_spellings_work_at_every_level(
    type_key: str, required_key: str, children_key: str, default_key: str, item_key: str
) -> None:
    leaf = {type_key: "integer", required_key: True}
    inner = {type_key: "object", children_key: {"n": leaf, "d": {type_key: "string", default_key: "x"}}}
    prop = parse_property({type_key: "object", children_key: {"l": {type_key: "array", item_key: inner}}})
    assert conform(prop, {"l": [{"n": 1}, {"n": 2, "d": "y"}]}) == {"l": [{"n": 1, "d": "x"}, {"n": 2, "d": "y"}]}
    with pytest.raises(InputError) as refused:
        conform(prop, {"l": [{"n": 1}, {"d": "y"}]}, "$.in")
    assert refused.value.path == "$.in.l[1].n"


def test_an_object_may_list_the_names_of_its_required_keys() -> None:
    prop = parse_property({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]})
    assert conform(prop, {"a": "", "b": 0}) == {"a": "", "b": 0}
    for value, path in (({"b": 1}, "$.a"), ({"a": "x"}, "$.b"), ({"a": "x", "b": None}, "$.b")):
        with pytest.raises(InputError) as refused:
            conform(prop, value)
        assert refused.value.path == path


def test_defaults_fill_absent_keys_only_and_leave_the_given_value_alone() -> None:
    prop = parse_property({"type": "object", "children": {"a": {"type": "integer", "default": 7}}})
    given: dict[str, Json] = {"x": 1}
    assert conform(prop, given) == {"x": 1, "a": 7}
    assert given == {"x": 1}
    assert conform(prop, {"a": None}) == {"a": None}
    assert conform(parse_property({"type": "integer", "default": 7}), None) == 7


def test_a_value_that_needs_no_default_is_shared() -> None:
    prop = parse_property({"type": "object", "children": {"a": {"type": "array", "items": {"type": "integer"}}}})
    value = {"a": [1, 2]}
    assert conform(prop, value) is value


def test_an_array_without_a_declared_element_accepts_any_list() -> None:
    assert conform(parse_property({"type": "array"}), [1, "a", None]) == [1, "a", None]


@pytest.mark.parametrize("key", ["children", "properties", "items"])
def test_an_array_may_declare_its_positions(key: str) -> None:
    prop = parse_property({"type": "array", key: [{"type": "string"}, {"type": "integer"}]})
    assert conform(prop, ["a", 1]) == ["a", 1]
    with pytest.raises(InputError, match=r"\$: must have 2 elements, not 1"):
        conform(prop, ["a"])
    with pytest.raises(InputError, match=r"\$\[1\]: must be an integer, not the text 'b'"):
        conform(prop, ["a", "b"])


def test_a_property_may_be_json_text() -> None:
    prop = parse_property('{"type": "object", "children": {"a": "{\\"type\\": \\"string\\"}"}}')
    assert prop.children is not None
    assert prop.children[0][1].data_type == "string"


def test_names_and_words_are_kept() -> None:
    prop = parse_property({"type": "object", "title": "T", "desc": "D", "children": {"a": {"type": "any"}}})
    assert (prop.label, prop.description, prop.default) == ("T", "D", ABSENT)
    assert prop.children is not None
    assert prop.children[0][1].name == "a"


@pytest.mark.parametrize(
    ("raw", "path", "words"),
    [
        (5, "$", "a type is an object"),
        ("not json", "$", "a type is an object"),
        ("{not json", "$", "not JSON"),
        ({}, "$", "names no type"),
        ({"type": "strng"}, "$.type", "did you mean 'string'?"),
        ({"dataType": 1}, "$.data_type", "must be text"),
        ({"type": "string", "dataType": "integer"}, "$.type", "something else than 'dataType'"),
        ({"type": "string", "required": "yes"}, "$.required", "true or false"),
        ({"type": "string", "required": True, "isRequired": False}, "$", "required and not required"),
        ({"type": "string", "required": ["a"]}, "$.required", "belongs to an object"),
        ({"type": "object", "required": [1]}, "$.required", "lists names"),
        ({"type": "object", "properties": 1}, "$.properties", "an object of types"),
        ({"type": "object", "children": [{"type": "any"}]}, "$.children[0]", "name of its own"),
        ({"type": "object", "children": {"a": {"type": "?"}}}, "$.children.a.type", "is not a type"),
        ({"type": "array", "items": {"type": "?"}}, "$.items.type", "is not a type"),
        ({"type": "array", "children": {"a": 1}}, "$.children", "a list of types"),
        ({"type": "integer", "default": "x"}, "$.default", "must be an integer"),
    ],
)
def test_nonsense_is_refused_with_its_path(raw: Json, path: str, words: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_property(raw)
    assert refused.value.path == path
    assert words in refused.value.reason


def test_a_type_nested_without_end_is_refused() -> None:
    raw: dict[str, Json] = {"type": "any"}
    for _ in range(100):
        raw = {"type": "array", "items": raw}
    with pytest.raises(InputError, match="nested deeper"):
        parse_property(raw)
