"""Flows written as Python functions: what a source means."""

from __future__ import annotations

from textwrap import indent
from typing import Any

import pytest

from plaita import Flow
from plaita.base.errors import NotSupported
from plaita.core.errors import ErrorResultException
from plaita.dsl import codeflow
from plaita.dsl.codeflow import (
    APPROVAL,
    CHILD,
    HTTP,
    INPUT,
    MAP,
    F,
    childflow,
    compile_func,
    compile_source,
    end,
    flow,
    flow_from_source,
)

RATE = 3


@childflow
def double() -> Any:
    return INPUT.v * 2


@flow("price", version="2", global_context={"tax": 1.25})
def price() -> Any:
    """What it costs."""
    net = INPUT.gross / 1.25
    twice = CHILD(double, input={"v": net})
    return {"net": net, "twice": twice, "rate": RATE}


@flow
def count() -> Any:
    for n in MAP(INPUT.list, id="each"):
        return n + 1
    return each  # type: ignore[name-defined]  # noqa: F821


def compiled(body: str, before: str = "") -> dict[str, Any]:
    return compile_source(f'{before}\n@flow("f")\ndef f():\n{indent(body, "    ")}\n')


def result(body: str, **value: Any) -> Any:
    return flow_from_source(f'@flow("f")\ndef f():\n{indent(body, "    ")}\n').run(value)


def node(document: dict[str, Any], node_id: str) -> dict[str, Any]:
    return next(n for n in document["nodes"] if n["id"] == node_id)


def test_a_decorated_function_is_a_flow_that_runs() -> None:
    assert isinstance(price, Flow)
    assert (price.flow_id, price.version, price.desc) == ("price", "2", "What it costs.")
    assert price.run(gross=25) == {"net": 20.0, "twice": 40.0, "rate": 3}


def test_a_bare_decorator_takes_the_name_of_the_function() -> None:
    assert count.flow_id == "count"
    assert count.run(list=[1, 2]) == [2, 3]


def test_a_function_is_compiled_without_being_called() -> None:
    def broken() -> Any:
        x = HTTP("https://example.org", method="GET")
        return x.data

    document = compile_func(broken, "b")
    assert document["flow_id"] == "b"
    assert node(document, "x")["url"] == "https://example.org"


def test_nothing_of_a_source_is_executed() -> None:
    source = 'raise RuntimeError("executed")\n@flow("f")\ndef f():\n    return 1\n'
    assert compile_source(source)["flow_id"] == "f"


def test_a_variable_is_a_node_of_that_id_with_its_line() -> None:
    document = compiled("x = INPUT.a + 1\nreturn x")
    assert node(document, "x") == {
        "type": "assignment", "id": "x", "output": "$INPUT.a + 1", "source_line": 4, "next": "return_x",
    }  # fmt: skip
    assert node(document, "return_x")["output"] == "$NODE.x"


@pytest.mark.parametrize(
    ("body", "value", "expected"),
    [
        ("return INPUT['a key'].b[0]", {"a key": {"b": [7]}}, 7),
        ("return INPUT.l[-1]", {"l": [1, 2]}, 2),
        ("return INPUT.l[1:]", {"l": [1, 2, 3]}, [2, 3]),
        ("return f'{INPUT.a} of {INPUT.b}'", {"a": 1, "b": None}, "1 of "),
        ("return [f'${INPUT.a}']", {"a": 5}, ["$5"]),
        ("return INPUT.a // 2", {"a": 7}, 3),
        ("return 1 < INPUT.a < 3", {"a": 2}, True),
        ("return INPUT.a is None", {}, True),
        ("return bool(INPUT.a)", {"a": []}, False),
        ("return (INPUT.a or [1])[0]", {"a": None}, 1),
        ("return not (INPUT.a and INPUT.b)", {"a": 1, "b": 0}, True),
        ("return {'k': [INPUT.a, -INPUT.a, +INPUT.a]}", {"a": 2}, {"k": [2, -2, 2]}),
        ("x: int = INPUT.a\nreturn x", {"a": 2}, 2),
        ("return F['and'](INPUT.a, 5)", {"a": 2}, 5),
        ("return STATE.FLOW_ID", {}, "f"),
        ("return '$INPUT.a'", {"a": 2}, "$INPUT.a"),
    ],
)
def test_an_expression_means_what_it_does_in_python(body: str, value: dict[str, Any], expected: Any) -> None:
    assert result(body, **value) == expected


@pytest.mark.parametrize("a", [None, 1, 2])
@pytest.mark.parametrize("test", ["INPUT.a > 1", "INPUT.a in [2]", "INPUT.a == 1 and INPUT.b", "1 <= INPUT.a < 2"])
def test_a_negated_test_holds_when_the_test_does_not(test: str, a: int | None) -> None:
    plain = result(f"if {test}:\n    return 1\nreturn 2", a=a, b=1)
    turned = result(f"if not ({test}):\n    return 2\nreturn 1", a=a, b=1)
    assert plain == turned


def test_a_variable_that_every_way_assigns_is_known_afterwards() -> None:
    body = "if INPUT.a:\n    return 0\nelse:\n    x = 2\nreturn x"
    assert result(body, a=0) == 2


def test_a_match_over_values_is_a_case() -> None:
    body = (
        "match INPUT.code:\n    case 200 | 201:\n        x = 'ok'\n    case None:\n        return 'none'\nreturn 'else'"
    )
    assert [result(body, code=c) for c in (200, 201, None, 5)] == ["else", "else", "none", "else"]
    assert {n["type"] for n in compiled(body)["nodes"]} == {"start", "case", "assignment", "end"}


def test_a_match_over_guards_is_a_switch() -> None:
    body = (
        'match SWITCH(id="size"):\n    case "big" if INPUT.n > 9:\n        return "big"\n    case _ if INPUT.n > 5:\n'
        '        return "middle"\nreturn "small"'
    )
    assert [result(body, n=n) for n in (10, 6, 1)] == ["big", "middle", "small"]
    assert node(compiled(body), "size")["branches"][0]["name"] == "big"


def test_a_round_reads_the_variables_outside_through_its_parent() -> None:
    body = "k = 2\nfor n in MAP(INPUT.l, id='m'):\n    z = n * k\n    return z\nreturn m"
    assert node(node(compiled(body), "m")["childFlow"], "z")["output"] == "$INPUT.item * $PARENT.NODE.k"
    assert result(body, l=[1, 2]) == [2, 4]


def test_a_round_may_be_a_child_flow() -> None:
    source = "@childflow\ndef one():\n    return INPUT.item\n"
    document = compiled("m = MAP(INPUT.l, flow=one, concurrent=True, max_concurrent=2)\nreturn m", source)
    assert node(document, "m")["maxConcurrent"] == 2


def test_every_registered_type_is_called_by_its_name_in_capitals() -> None:
    document = compiled(
        'd = DELAY(delay_seconds=3)\nAPPROVAL(approval_title="Pay?", approvers=["ann"], id="ask")\nreturn d'
    )
    assert node(document, "ask")["approvalTitle"] == "Pay?"
    assert node(document, "d")["next"] == "ask"
    assert repr(codeflow.HTTP_CALLBACK) == "<placeholder HTTP_CALLBACK>"


def test_handlers_are_written_as_the_model_reads_them() -> None:
    call = 'HTTP("u", on_error=ErrorHandler("continue_with", 2, default_value={"d": INPUT.a}, error_code=7))'
    handler = node(compiled(f"x = {call}\nreturn x"), "x")["errorHandler"]
    assert handler == {"strategy": "continue_with", "retryTimes": 2, "defaultValue": {"d": "$INPUT.a"}, "code": 7}


def test_an_end_may_fail_with_a_computed_code() -> None:
    with pytest.raises(ErrorResultException, match="no 5") as caught:
        result('end(result_type="error", error={"code": INPUT.c, "message": f"no {INPUT.c}"})', c=5)
    assert caught.value.code == 5


def test_ids_that_nobody_wrote_keep_out_of_the_way_of_those_that_are() -> None:
    document = compiled("if_x_gt_3 = 1\nx = 5\nif x > 3:\n    return 1\nreturn if_x_gt_3")
    assert len({n["id"] for n in document["nodes"]}) == len(document["nodes"])


def test_a_long_chain_of_elif_is_no_deep_one() -> None:
    chain = "".join(f"elif INPUT.a == {n}:\n    return {n}\n" for n in range(1, 2_000))
    assert result(f"if INPUT.a == 0:\n    return 0\n{chain}return -1", a=1_500) == 1_500


def test_one_of_several_flows_is_chosen_by_function_or_id() -> None:
    source = '@flow("a")\ndef one():\n    return 1\n\n@flow("b")\ndef two():\n    return 2\n'
    assert [compile_source(source, name)["flow_id"] for name in ("two", "a")] == ["b", "a"]


def test_options_of_a_call_win_over_the_decorator() -> None:
    document = compile_source('@flow("f", version="1", expose_env=["A"])\ndef f(INPUT):\n    return 1\n', version="2")
    assert (document["version"], document["exposeEnv"]) == ("2", ["A"])


@pytest.mark.parametrize(
    "use", [lambda: INPUT.a, lambda: HTTP("u"), lambda: F.len(1), lambda: end(1), lambda: APPROVAL[0]]
)
def test_a_placeholder_outside_of_a_flow_says_what_it_is(use: Any) -> None:
    with pytest.raises(NotSupported, match="stands for a part of a flow"):
        use()


def test_the_canonical_form_has_one_spelling_and_no_nulls() -> None:
    document = compiled("while rounds < 2:\n    return None\nreturn None")
    [loop] = [n for n in document["nodes"] if n["type"] == "while"]
    assert "child_flow" in loop
    canonical = codeflow.to_canonical(document)
    [loop] = [n for n in canonical["nodes"] if n["type"] == "while"]
    assert "childFlow" in loop and "output" not in loop["childFlow"]["nodes"][1]
    assert codeflow.count_nodes(canonical) == codeflow.count_nodes(document) == 5
    assert Flow.model_validate(canonical).run() is None


def test_a_document_may_carry_its_source() -> None:
    document = codeflow.embed_source(compiled("return 1"), "the source")
    assert document["metadata"] == {"source": "the source", "source_format": "plaita@flow"}
