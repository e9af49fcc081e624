"""What cannot be part of a flow is refused with its place and with what to write instead."""

from __future__ import annotations

from textwrap import indent

import pytest

from plaita.base.errors import FlowLoadError
from plaita.base.issues import Issue
from plaita.dsl.codeflow import CodeflowError, compile_func, compile_source, flow_from_source


def refused(body: str, before: str = "") -> tuple[Issue, ...]:
    with pytest.raises(CodeflowError) as caught:
        flow_from_source(f"{before}@flow('f')\ndef f():\n{indent(body, '    ')}\n")
    return caught.value.issues


@pytest.mark.parametrize(
    ("body", "said", "instead"),
    [
        ("x = [i for i in INPUT.l]\nreturn x", "a list comprehension", "MAP"),
        ("x = lambda: 1\nreturn x", "a lambda", "node of its own"),
        ("x += 1\nreturn 1", "changes a variable", "REDUCE"),
        ("raise ValueError('x')", "raise cannot", "end(result_type="),
        ("try:\n    x = 1\nexcept ValueError:\n    pass\nreturn 1", "try cannot", "on_error"),
        ("for i in INPUT.l:\n    return i\nreturn 1", "a loop goes over a node", "MAP(INPUT.l"),
        ("for i in MAP(INPUT.l):\n    break\nreturn 1", "break cannot", "FIND"),
        ("x = 1\nx = 2\nreturn x", "assigned in line 3 already", "a new name"),
        ("if INPUT.a:\n    x = 1\nreturn x", "not on every way", "NODE.x"),
        ("return y", "unknown name 'y'", "INPUT.y"),
        ("return INPUT.name.upper()", "no method 'upper'", "F.upper(INPUT.name"),
        ("return print(1)", "no function 'print'", "F.name"),
        ("return len", "unknown name 'len'", ""),
        ("x = NOPE(a=1)\nreturn x", "no node type 'nope'", "--register"),
        ("return F.add(1, HTTP('u'))", "HTTP(…) is a node", "x = HTTP"),
        ("x = HTTP('u', metod='GET')\nreturn x", "no field 'metod'", "method"),
        ("x = HTTP()\nreturn x", "HTTP needs url", ""),
        ("x = MOCK(value=INPUT.a)\nreturn x", "a literal is needed", ""),
        ("INPUT.a\nreturn 1", "this has no effect", "x = INPUT.a"),
        ("x = 1", "goes on to nowhere", "add return"),
        ("return 1\nx = 2", "nothing leads here", "remove it"),
        ("x, y = 1, 2\nreturn 1", "one name on its left", ""),
        ("return INPUT[INPUT.i]", "a subscript is a number or a text", "F.getListItem"),
        ("return f'{INPUT.a:.2f}'", "a format cannot be given", "F.round"),
        ("return {**INPUT.a}", "unpacking with **", ""),
        ("return b'x'", "is not JSON", ""),
        ("return INPUT.__class__", "'__class__' cannot be read", ""),
        ("return F.nope(1)", "$F.nope is not a known function", ""),
        ("k = 1\nwhile k < 3:\n    k = 2\n    return k\nreturn k", "has a meaning outside of the round", "REDUCE"),
        ("x = CHILD(nobody)\nreturn x", "no @childflow 'nobody'", "top of the module"),
        ("with open('x'):\n    pass\nreturn 1", "with cannot", ""),
        ("INPUT = 1\nreturn 1", "'INPUT' has a meaning of its own", ""),
    ],
)
def test_what_cannot_be_part_of_a_flow_is_told_with_what_to_write(body: str, said: str, instead: str) -> None:
    issues = refused(body)
    assert any(said in issue.message and instead in issue.hint for issue in issues), issues
    assert all(issue.line for issue in issues)


def test_everything_is_told_at_once_with_line_and_column() -> None:
    issues = refused("x = [i for i in INPUT.l]\ny = INPUT.é + nobody\nraise KeyError")
    assert [(i.line, i.column) for i in issues] == [(3, 9), (4, 19), (5, 5)]


def test_what_the_loader_finds_is_told_with_the_line_of_the_statement() -> None:
    [issue] = refused("for x in MAP(INPUT.l, id='m'):\n    return F.nope(x)\nreturn m")
    assert (issue.line, issue.node_id) == (4, "return_nope_x")


def test_a_child_flow_that_contains_itself_is_refused() -> None:
    [issue] = refused("x = CHILD(a)\nreturn x", "@childflow\ndef a():\n    x = CHILD(b)\n    return x\n" * 1 + (
        "@childflow\ndef b():\n    x = CHILD(a)\n    return x\n"
    ))  # fmt: skip
    assert "'a' contains itself" in issue.message


def test_child_flows_that_double_again_and_again_end_in_a_refusal() -> None:
    chain = "".join(
        f"@childflow\ndef c{n}():\n    x = CHILD(c{n + 1})\n    y = CHILD(c{n + 1})\n    return [x, y]\n"
        for n in range(30)
    )
    issues = refused("x = CHILD(c0)\nreturn x", f"{chain}@childflow\ndef c30():\n    return 1\n")
    assert any("more than 20000 nodes" in i.message for i in issues)


@pytest.mark.parametrize(
    "text", ["(" * 5_000, "x = " + "-" * 100_000 + "1", "a" * 1_000_001, "\0", "def f(:", "", "x = 1"]
)
def test_text_that_is_no_source_of_a_flow_is_refused_as_one(text: str) -> None:
    with pytest.raises(CodeflowError) as caught:
        compile_source(text)
    assert isinstance(caught.value, FlowLoadError) and caught.value.issues


@pytest.mark.parametrize("expression", ["-" * 2_000 + "INPUT.a", "not " * 900 + "INPUT.a", "INPUT.a" + " + 1" * 2_000])
def test_a_deep_expression_is_refused_and_not_followed(expression: str) -> None:
    assert refused(f"return {expression}")


def test_several_flows_ask_for_a_name() -> None:
    with pytest.raises(CodeflowError, match="several flows: a, b"):
        compile_source("@flow\ndef a():\n    return 1\n@flow\ndef b():\n    return 1\n")


def test_parameters_other_than_the_input_are_refused() -> None:
    with pytest.raises(CodeflowError, match="takes no parameters") as caught:
        compile_source("@flow\ndef a(amount):\n    return 1\n")
    assert "INPUT.amount" in caught.value.issues[0].hint


def test_a_function_without_a_file_says_so() -> None:
    names: dict[str, object] = {}
    exec("def f():\n    return 1", names)
    with pytest.raises(CodeflowError, match="source of 'f' cannot be found"):
        compile_func(names["f"])  # type: ignore[arg-type]


def test_an_issue_of_the_made_document_has_its_line_and_no_column() -> None:
    source = "@flow\ndef a():\n    return F.nope(1)\n"
    with pytest.raises(CodeflowError, match=r"line 3: .*not a known function"):
        flow_from_source(source)
