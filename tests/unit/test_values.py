"""Equality, order, text and storability of JSON values."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaita.base.json import Json
from plaita.base.limits import DEPTH_MAX
from plaita.engine.values import (
    OperationError,
    check_stored,
    copied,
    greater,
    is_member,
    json_equal,
    kind_of,
    less,
    render,
    truthy,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=3), v, max_size=3))


def nested(depth: int) -> Json:
    value: Json = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (0.0, False, False),
        (None, None, True),
        (None, False, False),
        (None, 0, False),
        ("1", 1, False),
        ("a", "a", True),
        ([1, [2.0]], [1.0, [2]], True),
        ([1], [True], False),
        ({"a": 1, "b": [None]}, {"b": [None], "a": 1}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {}, False),
        ([], {}, False),
        ([1, 2], [2, 1], False),
        (2**60, float(2**60), True),
        (2**60 + 1, float(2**60), False),
    ],
)
def test_equality_is_that_of_json(a: Json, b: Json, equal: bool) -> None:
    assert json_equal(a, b) is equal
    assert json_equal(b, a) is equal
    assert json_equal([{"k": a}], [{"k": b}]) is equal


@given(VALUES)
def test_a_value_equals_its_copy_and_its_json(value: Json) -> None:
    assert json_equal(value, copied(value))
    assert json_equal(value, json.loads(json.dumps(value)))


@given(VALUES, VALUES)
def test_equality_is_symmetric_and_tells_booleans_from_numbers(a: Json, b: Json) -> None:
    assert json_equal(a, b) is json_equal(b, a)
    if json_equal(a, b):
        assert a == b


def test_equality_of_values_built_by_sharing_ends() -> None:
    a: Json = [0]
    b: Json = [0]
    for _ in range(40):
        a, b = [a, a], [b, b]
    with pytest.raises(OperationError, match="cannot be compared"):
        json_equal(a, b)
    assert json_equal(nested(5000), nested(5000))


@pytest.mark.parametrize("pair", [(1, "1"), (None, 1), (True, 1), (True, False), ([1], [2]), ({}, {}), ("a", None)])
def test_order_across_types_is_refused_by_name(pair: tuple[Json, Json]) -> None:
    a, b = pair
    with pytest.raises(OperationError) as refused:
        less(a, b)
    assert kind_of(a) in refused.value.reason and kind_of(b) in refused.value.reason


def test_numbers_and_texts_have_an_order() -> None:
    assert less(1, 1.5) and not greater(1, 2)
    assert greater("b", "a")


def test_membership_uses_the_equality_of_json() -> None:
    assert is_member(1, [1.0]) and not is_member(1, [True])
    assert is_member("a", {"a": None}) and not is_member(1, {"1": 1})
    assert is_member("", "abc") and is_member("bc", "abc")
    with pytest.raises(OperationError, match="cannot look for integer in text"):
        is_member(1, "1")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""), (True, "true"), (False, "false"), (1, "1"), (1.0, "1.0"), (1e16, "1e+16"), ("é\n", "é\n"),
        ([], "[]"), ({"a": [1, "é", None]}, '{"a": [1, "é", null]}'), (10**3999, "1" + "0" * 3999),
    ],
)  # fmt: skip
def test_values_are_rendered_as_json_but_null_and_text(value: Json, text: str) -> None:
    assert render(value) == text


def test_rendering_refuses_what_would_be_too_long_before_building_it() -> None:
    bomb: Json = ["x" * 1000]
    for _ in range(40):
        bomb = [bomb, bomb]
    with pytest.raises(OperationError, match="too large"):
        render(bomb)


def test_a_value_may_be_stored_up_to_the_depth_and_size_caps() -> None:
    assert check_stored(nested(DEPTH_MAX)) == nested(DEPTH_MAX)
    with pytest.raises(OperationError, match="deeper than 64"):
        check_stored(nested(DEPTH_MAX + 1))
    with pytest.raises(OperationError, match="characters"):
        check_stored(["x" * 1_000_000] * 101)
    with pytest.raises(OperationError, match="nan is not a JSON number"):
        check_stored({"a": [float("nan")]})


def test_truth_is_being_not_empty() -> None:
    empty: list[Json] = [None, False, 0, 0.0, "", [], {}]
    assert [truthy(v) for v in empty] == [False] * 7
    assert all(truthy(v) for v in (True, -1, 0.1, "0", [None], {"a": None}))
