"""Flow text becomes a document or one finding with a line, whatever the text."""

import json
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.base.limits import FLOW_DEPTH_MAX, FLOW_TEXT_MAX, INTEGER_DIGITS_MAX, YAML_ALIASES_MAX
from plaita.core.positions import Steps, path_of, steps_of
from plaita.core.text import Format, read_document

FLOW = """\
{
  "id": "order",
  "nodes": [
    {"id": "start", "next": "pay"},
    {"id": "pay",
     "odd key": {"it's": 1}, "next": "end"}
  ]
}
"""
FLOW_YAML = """\
id: order
nodes:
  - {id: start, next: pay}
  - id: pay
    odd key:
      it's: 1
    next: end
"""


def refused(text: str, format: Format | None = None) -> Issue:
    with pytest.raises(FlowLoadError) as caught:
        read_document(text, "order.yaml", format=format)
    (issue,) = caught.value.issues
    assert issue.severity == "error"
    assert caught.value.source == "order.yaml"
    return issue


def test_json_and_yaml_give_the_same_value() -> None:
    assert read_document(FLOW).value == read_document(FLOW_YAML).value == json.loads(FLOW)
    assert (read_document(FLOW).format, read_document(FLOW_YAML).format) == ("json", "yaml")


@pytest.mark.parametrize(
    ("path", "in_json", "in_yaml"),
    [
        ("$", (1, 1), (1, 1)),
        ("$.id", (2, 9), (1, 5)),
        ("$.nodes[0]", (4, 5), (3, 5)),
        ("$.nodes[1].next", (6, 38), (7, 11)),
        ("$.nodes[1]['odd key']", (6, 17), (6, 7)),
        ("$.nodes[1]['odd key']['it\\'s']", (6, 26), (6, 13)),
        ("$.nodes[1].nothing.below", (5, 5), (4, 5)),
        ("$.nodes[7]", (3, 12), (3, 3)),
        ("$.nodes[zzz", (3, 12), (3, 3)),
        ("", (1, 1), (1, 1)),
    ],
)
def test_a_path_leads_to_its_value_or_to_the_nearest_parent(
    path: str, in_json: tuple[int, int], in_yaml: tuple[int, int]
) -> None:
    assert read_document(FLOW).locate(path) == in_json
    assert read_document(FLOW_YAML).locate(path) == in_yaml


def test_a_document_that_begins_with_a_byte_order_mark_is_read() -> None:
    assert read_document("\ufeff" + FLOW).locate("$.id") == (2, 9)


@pytest.mark.parametrize(
    ("text", "code", "path", "line", "column"),
    [
        ('{"a": 1,\n "b": {"c": 1, "c": 2}}', "duplicate_key", "$.b.c", 2, 16),
        ('{"a": [1,\n NaN]}', "not_a_number", "$.a[1]", 2, 2),
        ('{"a": -Infinity}', "not_a_number", "$.a", 1, 7),
        ('{"a": 1e999}', "not_a_number", "$.a", 1, 7),
        ('{"a": "\\ud800"}', "not_unicode", "$.a", 1, 7),
        ('{"a": 1\n "b": 2}', "not_json", "$", 2, 2),
        ('{"a": "open', "not_json", "$", 1, 7),
        ("[1, 2]", "not_an_object", "$", 1, 1),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "duplicate_key", "$.b.c", 4, 3),
        ("a: [.nan]", "not_a_number", "$.a[0]", 1, 5),
        ("a: -.inf", "not_a_number", "$.a", 1, 4),
        ("a: {on: 1}", "key_not_text", "$.a", 1, 5),
        ("a:\n  1: x", "key_not_text", "$.a", 2, 3),
        ("a:\n  ? [1]\n  : x", "key_not_text", "$.a", 2, 5),
        ("a: !!python/name:os.system x", "unknown_tag", "$.a", 1, 4),
        ("a: !!binary aGk=", "unknown_tag", "$.a", 1, 4),
        ("a: !!set {x}", "unknown_tag", "$.a", 1, 4),
        ("a: !!int x", "not_yaml", "$.a", 1, 4),
        ("a: *nobody", "not_yaml", "$.a", 1, 4),
        ("a: &a [*a]", "not_yaml", "$.a[0]", 1, 8),
        ("a: 1\n---\nb: 2", "not_yaml", "$", 2, 1),
        ("a: [1", "not_yaml", "$.a[1]", 1, 6),
        ("a: 1\nb: \x01", "not_yaml", "$", 2, 4),
        ("a: 1\n\tb: 2", "not_yaml", "$.a", 2, 1),
        ("a: \ud800", "not_unicode", "$", 1, 1),
        ("just words", "not_an_object", "$", 1, 1),
        ("", "not_an_object", "$", 1, 1),
        ("# nothing", "not_an_object", "$", 1, 1),
        ("<<: 1", "not_yaml", "$['<<']", 1, 5),
    ],
)
def test_a_fault_is_named_with_path_line_and_column(text: str, code: str, path: str, line: int, column: int) -> None:
    issue = refused(text)
    assert (issue.code, issue.path, issue.line, issue.column) == (code, path, line, column)


def test_an_integer_survives_up_to_the_cap_and_is_refused_beyond_it() -> None:
    most = "9" * INTEGER_DIGITS_MAX
    for text in (f'{{"n": {most}, "m": -{most}}}', f"n: {most}\nm: -{most}"):
        assert read_document(text).value == {"n": int(most), "m": -int(most)}
        assert refused(text.replace(most, most + "9")).code == "too_large"


def test_a_text_beyond_the_cap_is_refused_before_it_is_parsed() -> None:
    assert refused('{"a": "' + "x" * FLOW_TEXT_MAX).code == "too_large"


def deep(depth: int, shape: str, opens: str) -> str:
    opened, middle, closed = opens * depth, "" if opens == "[" else "1", ("]" if opens == "[" else "}") * depth
    return shape.replace("X", opened + middle + closed)


SHAPES = pytest.mark.parametrize("shape", ['{"a": X}', "a: X"], ids=["json", "yaml"])
OPENS = pytest.mark.parametrize("opens", ["[", '{"k": '], ids=["lists", "objects"])


@SHAPES
@OPENS
def test_a_text_of_great_depth_loads_or_is_named(shape: str, opens: str) -> None:
    try:
        assert read_document(deep(900, shape, opens)).locate("$.a") is not None
    except FlowLoadError as e:
        assert e.issues[0].code == "too_deep"


@SHAPES
@OPENS
@pytest.mark.parametrize("depth", [FLOW_DEPTH_MAX + 1, 100_000])
def test_a_text_beyond_the_depth_is_refused_where_it_becomes_too_deep(depth: int, shape: str, opens: str) -> None:
    issue = refused(deep(depth, shape, opens))
    assert (issue.code, issue.line) == ("too_deep", 1)
    assert issue.path.startswith("$.a")


def test_a_comma_too_many_is_read_as_yaml_with_a_warning() -> None:
    document = read_document('{\n\n  "a": [1e3, 2],}')
    assert document.value == {"a": [1000.0, 2]}
    (issue,) = document.issues
    assert (issue.severity, issue.code, issue.line) == ("warning", "json_read_as_yaml", 3)
    assert document.locate("$.a[1]") == (3, 14)


def test_the_named_format_is_not_guessed() -> None:
    assert refused('{"a": 1,}', "json").code == "not_json"
    assert refused("a: 1", "json").code == "not_json"
    assert read_document('{"a": 1,}', format="yaml").issues == ()


def test_nan_in_json_is_not_excused_as_a_yaml_word() -> None:
    assert refused('{"a": NaN,}').code == "not_a_number"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", True), ("off", False), ("~", None), ("", None), ("'yes'", "yes"), ("!!str yes", "yes"), ("Y", "Y"),
        ("12", 12), ("-0x1F", -31), ("0b11", 3), ("010", 8), ("1_000", 1000), ("09", "09"), ("0x_", "0x_"),
        ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("1.0e-3", 0.001), ("!!float 1", 1.0), ("1.2.3", "1.2.3"),
        ("2024-01-31", "2024-01-31"), ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00Z"), ("12:30:45", "12:30:45"),
        ("$INPUT.k", "$INPUT.k"), ("=", "="), ("|\n  two\n  lines\n", "two\nlines\n"),
        (">-\n  one\n  line\n", "one line"),
    ],
)  # fmt: skip
def test_plain_words_mean_what_yaml_says_and_dates_stay_text(written: str, value: object) -> None:
    found = read_document(f"a: {written}").value["a"]
    assert found == value
    assert type(found) is type(value)


def test_aliases_and_merge_keys_are_expanded() -> None:
    document = read_document(
        dedent("""\
        base: &base {retries: 3, timeout: 5}
        more: &more {retries: 9, note: x}
        a: {<<: *base, timeout: 7}
        b: {<<: [*base, *more]}
        c: *base
        """)
    )
    assert document.value["a"] == {"retries": 3, "timeout": 7}
    assert document.value["b"] == {"retries": 3, "timeout": 5, "note": "x"}
    assert document.value["c"] == document.value["base"]
    assert document.locate("$.c.retries") == (5, 4)


def test_aliases_that_multiply_are_refused() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert refused("\n".join(["l0: &l0 [x, x]", *levels])).code == "too_large"
    assert refused(f"a: &a x\nb: [{', '.join(['*a'] * (YAML_ALIASES_MAX + 1))}]").code == "too_large"
    assert refused(f"a: &a {'x' * 20_000}\nb: [{', '.join(['*a'] * YAML_ALIASES_MAX)}]").code == "too_large"


def test_aliases_that_nest_beyond_the_depth_are_refused() -> None:
    deep = "[" * 400 + "1" + "]" * 400
    links = [f"l{n}: &l{n} {deep.replace('1', f'*l{n - 1}')}" for n in range(1, 4)]
    assert refused("\n".join(["l0: &l0 1", *links])).code == "too_deep"


keys = st.one_of(st.integers(0, 10**6), st.text(min_size=1))


@given(st.lists(keys).map(tuple))
def test_a_path_and_its_steps_say_the_same(steps: Steps) -> None:
    assert steps_of(path_of(steps)) == steps


numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, max_size=4), st.sampled_from([None, 2]))
def test_every_object_is_read_back_and_every_value_has_its_own_place(
    value: dict[str, object], indent: int | None
) -> None:
    text = json.dumps(value, indent=indent)
    document = read_document(text)
    assert document.value == value
    lines = text.split("\n")
    for key, inner in value.items():
        place = document.locate(path_of((key,)))
        assert place is not None
        assert lines[place.line - 1][place.column - 1 :].startswith(json.dumps(inner, indent=indent)[:1])


pieces = st.sampled_from(
    ["{", "}", "[", "]", ":", ",", '"', "'", "\n", "\n  ", "- ", "? ", "a", "b: ", "1", "-", ".", "e9", "true", "NaN",
     "&a ", "*a", "<<: ", "!!int ", "!x ", "|", ">", "#", "---\n", "...", "%YAML 1.1\n", "\\u", "\\ud800", "\t", "\x00",
     "é", "\U0001f600", "\u2028", "\x85", "\r", "0x", "~", "@", "`"]
)  # fmt: skip


@given(
    st.one_of(st.text(), st.lists(pieces, max_size=30).map("".join), st.lists(pieces).map(lambda p: "{" + "".join(p)))
)
def test_any_text_is_a_document_or_a_load_error(text: str) -> None:
    try:
        document = read_document(text)
    except FlowLoadError as e:
        (issue,) = e.issues
        assert issue.line is not None and issue.column is not None
        assert issue.line >= 1 and issue.column >= 1
        return
    assert isinstance(document.value, dict)
    assert document.locate("$.a.b[1]") is not None
