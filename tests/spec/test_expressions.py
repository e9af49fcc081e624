"""The expression language as a table: what is given, what it evaluates to, how it is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from plaita.base.json import Json
from plaita.engine.expression import (
    ABSENT,
    BUILTIN_FUNCTIONS,
    Compiled,
    EvaluationError,
    ExpressionRegistry,
    FunctionCategory,
    Names,
    compile_value,
)
from plaita.engine.values import json_equal
from tests.spec.frame import Frame, RunFacts

TABLE = json.loads((Path(__file__).parent / "expressions.json").read_text())
NAMES = Names((frozenset(TABLE["scope"]["nodes"]),), frozenset(("LOOP-ITEM", "LOOP-INDEX", "LOOP-RESULT", "mine")))


def root_frame() -> Frame:
    return Frame(last_id="m", **copy.deepcopy(TABLE["scope"]))


def compiled(value: Json, names: Names = NAMES) -> Compiled:
    found = compile_value(value, names, BUILTIN_FUNCTIONS)
    errors = [f for f in found.findings if f.severity == "error"]
    assert not errors, errors
    return found


def evaluate(value: Json, frame: Frame, names: Names = NAMES) -> Json:
    return compiled(value, names).run(frame)


def same(a: Json, b: Json) -> bool:
    return json_equal(a, b) and json.dumps(a) == json.dumps(b)


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: json.dumps(case["given"], ensure_ascii=True)[:80])
def test_the_table_of_expressions_holds(case: dict[str, Json]) -> None:
    frame = root_frame()
    found = compile_value(case["given"], NAMES, BUILTIN_FUNCTIONS)
    errors = [f for f in found.findings if f.severity == "error"]
    warnings = [f.code for f in found.findings if f.severity == "warning"]
    if "refused" in case:
        assert [f.code for f in errors] == [case["refused"]]
        assert case.get("hint", "") in errors[0].hint
        assert errors[0].column is not None and 1 <= errors[0].column <= len(case["given"]) + 1
        return
    assert errors == []
    assert warnings == ([case["warns"]] if "warns" in case else [])
    if "error" in case:
        with pytest.raises(EvaluationError) as refused:
            found.run(frame)
        assert case["error"] in refused.value.reason
        assert refused.value.text in case["given"]
        return
    value = found.run(frame)
    assert same(value, case["expect"]), value
    assert same(found.run(frame), case["expect"]), "a second evaluation gives the same"
    assert frame == root_frame(), "evaluation changes nothing"


def child_of(parent: Frame, **values: Json) -> Frame:
    return Frame(parent=parent, flow_id=None, **values)


def test_a_first_key_that_is_absent_is_looked_up_in_the_parent_in_every_place() -> None:
    child = child_of(Frame(input={"a": 1, "b": 2}), input={"a": None})
    given = ["$INPUT.a", "$INPUT.b", "{% $INPUT.b %}", "$F.add($INPUT.b, 1)", "$INPUT.b == 2"]
    assert evaluate(given, child) == [None, 2, "2", 3, True]


def test_once_a_key_is_present_what_it_lacks_is_null() -> None:
    child = child_of(Frame(input={"u": {"x": 1}, "v": {"x": 2}}), input={"u": {}})
    assert evaluate(["$INPUT.u.x", "$INPUT.u", "$INPUT.v.x"], child) == [None, {}, 2]


def test_absent_input_inherits_the_whole_root_and_null_input_only_its_keys() -> None:
    root = Frame(input={"q": 1})
    assert evaluate(["$INPUT", "$INPUT.q"], child_of(root)) == [{"q": 1}, 1]
    assert evaluate(["$INPUT", "$INPUT.q"], child_of(root, input=None)) == [None, 1]
    assert evaluate("$INPUT", Frame(input=ABSENT)) is None


def test_a_list_as_input_answers_index_steps_itself_and_leaves_names_to_the_parent() -> None:
    child = child_of(Frame(input={"0": "parent", "q": 1}), input=["own"])
    assert evaluate(["$INPUT[0]", "$INPUT[5]", "$INPUT.q"], child) == ["own", None, 1]
    assert evaluate("$INPUT[0]", child_of(Frame(input={"0": "parent"}), input={})) == "parent"


def test_a_node_binds_to_the_nearest_flow_that_declares_it_even_before_it_ran() -> None:
    names = Names((frozenset({"a", "b"}), frozenset({"a", "o"})))
    child = child_of(Frame(nodes={"a": "outer", "o": 1}))
    assert evaluate(["$NODE.a", "$NODE.o", "$NODE.b"], child, names) == [None, 1, None]
    child.nodes["a"] = "inner"
    assert evaluate("$NODE.a", child, names) == "inner"
    assert compiled(["$NODE.a", "$NODE.o.x", "$NODE.zzz"], names).nodes == ((0, "a"), (1, "o"), (-1, "zzz"))


def test_raw_is_an_alias_unless_a_node_has_that_name() -> None:
    frame = Frame(nodes={"raw": {"m": "own"}, "m": "other"})
    assert evaluate("$NODE.raw.m", frame, Names((frozenset({"m"}),))) == "other"
    assert evaluate("$NODE.raw.m", frame, Names((frozenset({"m", "raw"}),))) == "own"


def test_parents_are_climbed_frame_by_frame() -> None:
    root = Frame(input={"q": 1}, nodes={"o": 1}, globals={"g": 1})
    middle = child_of(root, input={"q": 2}, nodes={"o2": 5})
    inner = child_of(middle, input={"item": 9})
    names = Names((frozenset({"e"}), frozenset({"o2", "l"}), frozenset({"o", "c"})))
    given = [
        "$PARENT.NODE.o2", "$PARENT.INPUT.q", "$PARENT.PARENT.INPUT.q", "$PARENT.PARENT.NODE.o",
        "$PARENT.PARENT.PARENT", "$INPUT.q", "$PARENT.NODE.c", "$PARENT.PARENT.PARENT.INPUT.q", "$PARENT.GLOBAL.g",
    ]  # fmt: skip
    assert evaluate(given, inner, names) == [5, 2, 1, 1, {}, 2, None, None, 1]
    assert evaluate("$PARENT", middle, names) == {"INPUT": {"q": 1}, "NODE": {"o": 1}, "GLOBAL": {"g": 1}}
    assert compiled("$PARENT.NODE.o2", names).nodes == ((1, "o2"),)
    assert compiled("$PARENT.ENV.X", names).roots == {"PARENT", "ENV"}


def test_globals_and_env_are_looked_up_in_the_parent() -> None:
    child = child_of(Frame(globals={"g": 1, "h": 2}, env={"X": "x"}), globals={"g": None})
    assert evaluate(["$GLOBAL.g", "$GLOBAL.h", "$ENV.X", "$GLOBAL"], child) == [None, 2, "x", {"g": None, "h": 2}]


def test_an_unknown_root_is_a_warning_while_some_node_may_provide_it() -> None:
    names = Names((frozenset(),), open_roots=True)
    found = compiled("$CUSTOM.v", names)
    assert [(f.severity, f.code) for f in found.findings] == [("warning", "expression_unknown_root")]
    assert found.run(Frame(extra={"CUSTOM": {"v": 1}})) == 1
    assert found.run(Frame()) is None


def test_findings_say_where_in_the_value_they_are() -> None:
    value = {"a": ["$F.uper(1)", "ok"], "b c": "x {% $INPT.n %}"}
    found = compile_value(value, NAMES, BUILTIN_FUNCTIONS)
    assert [(f.path, f.code, f.column) for f in found.findings] == [
        (".a[0]", "expression_unknown_function", 1),
        ("['b c']", "expression_unknown_root", 6),
    ]
    with pytest.raises(EvaluationError):
        found.run(Frame())


def test_what_needs_no_scope_is_constant() -> None:
    for value in (1, None, "text", [1, {"a": "b"}], "$(1 + 2)", "$([1, 2])", "$('a' if true else $INPUT.x)"):
        assert compiled(value).constant
    for varying in ("$INPUT.x", ["$INPUT.x"], "{% $INPUT.x %}", "$F.now()"):
        assert not compiled(varying).constant


def test_sharing_cannot_build_a_value_that_is_too_large_or_too_deep_to_store() -> None:
    frame = Frame(nodes={"a": [0]}, input={"item": None})
    with pytest.raises(EvaluationError, match="too large"):
        for _ in range(64):
            frame.nodes["a"] = evaluate(["$NODE.a"] * 64, frame)
    with pytest.raises(EvaluationError, match="deeper than 64"):
        for _ in range(70):
            frame.input = {"item": evaluate("$([$INPUT.item])", frame)}
    with pytest.raises(EvaluationError, match="deeper than 64"):
        for _ in range(70):
            frame.nodes["m"] = evaluate("$NODE", Frame(nodes={"m": frame.nodes.get("m")}))


def test_now_is_told_in_the_time_zone_of_the_run() -> None:
    frame = Frame(run=RunFacts(timezone="Asia/Shanghai"))
    assert evaluate("$F.now('%H:%M %Z')", frame) == "20:34 CST"
    with pytest.raises(EvaluationError, match="time zone"):
        evaluate("$F.today()", Frame(run=RunFacts(timezone="Mars/Base")))


def test_a_function_of_the_user_gets_copies_and_gives_json() -> None:
    registry = ExpressionRegistry()

    def spoil(items: list[Json]) -> list[Json]:
        items.append(99)
        return items

    registry.register("spoil", spoil, FunctionCategory.ARRAY)
    registry.register("odd", lambda: {1, 2}, FunctionCategory.TYPE)
    registry.register("fails", lambda: 1 // 0, FunctionCategory.MATH)
    frame = Frame(input={"l": [1]})
    table = registry.table()
    assert compile_value("$F.spoil($INPUT.l)", NAMES, table).run(frame) == [1, 99]
    assert frame.input == {"l": [1]}
    with pytest.raises(EvaluationError, match="set is not a JSON type"):
        compile_value("$F.odd()", NAMES, table).run(frame)
    with pytest.raises(EvaluationError, match="ZeroDivisionError"):
        compile_value("$F.fails()", NAMES, table).run(frame)
    assert compile_value("$F.add(1, 2)", NAMES, table).findings[0].code == "expression_unknown_function"


HOSTILE = [
    "a'b",
    'a"b',
    "a\\b",
    "a\0b",
    "a\u2028b",
    "%}",
    "{%",
    "$INPUT.x",
    "a]b",
    "",
    " ",
    "é",
    "\U0001f600",
    "'",
    '"',
    "\\",
]


@pytest.mark.parametrize("key", HOSTILE)
def test_any_key_can_be_read_by_a_quoted_step_and_given_as_text(key: str) -> None:
    frame = Frame(input={key: 1}, nodes={key: 2})
    escaped = key.replace("\\", "\\\\")
    for quote in "\"'":
        quoted = quote + escaped.replace(quote, quote * 2) + quote
        given = [f"$INPUT[{quoted}]", f"$NODE[{quoted}]", f"$F.get($INPUT, {quoted})", f"{{% $INPUT[{quoted}] %}}"]
        assert evaluate(given, frame) == [1, 2, 1, "1"]
