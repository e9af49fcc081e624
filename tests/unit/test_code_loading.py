"""What is wrong with a ``code`` node is told when its flow is loaded; what a program may use is told by registering."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from plaita.base.errors import FlowLoadError, NotSupported
from plaita.core.flow import Flow
from plaita.node import register_code_node
from plaita.node.code import (
    CodeNode,
    register_runner,
    run_python,
    run_python_restricted,
    run_python_subprocess,
)
from plaita.node.registry import NodeRegistry
from plaita.settings import load_settings, use_settings
from tests.support.flows import chain
from tests.support.scripts import flow_with, script

GOOD = "def run(d):\n    return d"


pytestmark = pytest.mark.usefixtures("default_settings")


def load(registry: NodeRegistry | None = None, **fields: Any) -> Flow:
    node = {"id": "a", "type": "code", "code": GOOD, **fields}
    return Flow.model_validate(chain(node), registry=registry or NodeRegistry())


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no code": ({"code": None}, "code_missing", "node 'a' has no code"),
    "blank code": ({"code": " \n"}, "code_missing", "node 'a' has no code"),
    "a syntax error": ({"code": "def run(d):\n    return )"}, "code_syntax", "line 2 of the code: unmatched ')'"),
    "a null byte": ({"code": "def run(d):\n    return '\0'"}, "code_syntax", "null bytes"),
    "no run": ({"code": "def main(d):\n    def run(): pass"}, "code_without_run", "defines no function run"),
    "run only read": ({"code": "x = run"}, "code_without_run", "defines no function run"),
    "javascript": ({"language": "js"}, "language_unavailable", "'js' is not available in this release"),
    "an unknown language": ({"language": "pyton"}, "language_unavailable", "did you mean 'python'?"),
    "docker": ({"sandboxBackend": "docker"}, "backend_unavailable", "'docker' is not available in this release"),
    "unsafe": ({"sandbox_backend": "unsafe"}, "backend_unavailable", "inside the worker"),
    "an unknown backend": ({"sandbox_backend": "subproces"}, "backend_unavailable", "did you mean 'subprocess'?"),
    "a bad expression": ({"input": "$NOPE.a"}, "expression_unknown_root", ""),
}


@pytest.mark.parametrize(("fields", "code", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_node_that_cannot_run_is_refused_at_load(fields: dict[str, Any], code: str, text: str) -> None:
    with pytest.raises(FlowLoadError) as caught:
        load(**fields)
    (issue,) = [issue for issue in caught.value.issues if issue.severity == "error"]
    assert issue.code == code
    assert text in f"{issue.message} {issue.hint}"
    assert issue.node_id == "a"


@pytest.mark.parametrize(
    "code",
    [
        "if True:\n    def run(d): return 1",
        "try:\n    from fast import run\nexcept ImportError:\n    def run(d): return 1",
        "for run in [lambda d: 1]: pass\nrun = run",
        "class run:\n    def __new__(cls, d): return 1",
        "async def run(d): return 1",
        "run: object = lambda d: 1",
        "a = '\\d'\ndef run(d): return 1",
    ],
)
def test_every_way_to_define_run_counts(code: str) -> None:
    assert flow_with(code).run() == 1


def test_both_spellings_and_null_are_understood() -> None:
    fields: dict[str, Any] = {"language": None, "sandboxBackend": None, "timeoutHandler": {"strategy": "abort"}}
    assert load(**fields, input=3).run() == 3


def test_an_environment_variable_as_input_is_no_state() -> None:
    flow = Flow.model_validate({**chain(script(GOOD, input="$ENV.TOKEN")), "exposeEnv": ["TOKEN"]})
    assert flow.issues == ()


def test_the_settings_say_what_nodes_may_ask_for() -> None:
    use_settings(load_settings({"PLAITA_SANDBOX_ALLOWED_BACKENDS": "docker,restricted"}))
    with pytest.raises(FlowLoadError, match="backend 'subprocess' is not allowed; allowed here: docker, restricted"):
        load(sandbox_backend="subprocess")
    assert load(code="import os\ndef run(d): pass").nodes
    use_settings(load_settings({"PLAITA_SANDBOX_ALLOWED_LANGUAGES": "js"}))
    with pytest.raises(FlowLoadError, match="language 'python' is not allowed here"):
        load()
    use_settings(load_settings({"PLAITA_SANDBOX_ALLOWED_BACKENDS": "podman"}))
    with pytest.raises(FlowLoadError, match="there is no backend 'podman'"):
        load()


def test_the_documented_registration_of_a_published_program_works() -> None:
    registry = NodeRegistry()
    register_code_node(registry, default_backend="subprocess", allowed_backends=["subprocess"])
    assert load(registry, input=1).run() == 1
    with pytest.raises(FlowLoadError, match="backend 'restricted' is not allowed"):
        load(registry, sandbox_backend="restricted")
    found = registry.get("code")
    assert found is not None
    assert issubclass(found, CodeNode)


def test_registering_says_what_is_not_there() -> None:
    with pytest.raises(NotSupported, match="'docker' is not available"):
        register_code_node(NodeRegistry(), default_backend="docker")
    with pytest.raises(NotSupported, match="inside the worker"):
        register_code_node(NodeRegistry(), default_backend="unsafe", allowed_backends=["unsafe"])
    with pytest.raises(ValueError, match="no backend 'podman'"):
        register_code_node(NodeRegistry(), allowed_backends=["podman"])
    with pytest.raises(ValueError, match="not among the allowed"):
        register_code_node(NodeRegistry(), default_backend="restricted", allowed_backends=["subprocess"])
    with pytest.raises(ValueError, match="no language 'perl'"):
        register_code_node(NodeRegistry(), allowed_languages=["python", "perl"])


def test_unsafe_may_be_allowed_and_is_refused_where_a_node_asks_for_it() -> None:
    registry = NodeRegistry()
    register_code_node(
        registry, allowed_backends=["unsafe", "docker", "subprocess"], allowed_languages=["python", "js"]
    )
    assert load(registry, input=1).run() == 1
    with pytest.raises(FlowLoadError, match="inside the worker"):
        load(registry, sandbox_backend="unsafe")


def test_a_program_adds_a_language_of_its_own() -> None:
    async def shouting(code: str, value: Any) -> str:
        return f"{code} {value}!"

    register_runner("echo", lambda code, value: [code, value])
    register_runner("shout", shouting)
    assert load(language="echo", code="any text", input=1).run() == ["any text", 1]
    assert load(language="shout", code="hey", input="you").run() == "hey you!"
    with pytest.raises(ValueError, match="choose another name"):
        register_runner("python", lambda code, value: None)


def test_the_documented_functions_run_code_without_a_flow() -> None:
    assert run_python("def run(a, b=1):\n    return a + b", 2, b=3) == 5
    assert run_python_subprocess("def run(x):\n    return {'twice': x * 2}", 4) == {"twice": 8}
    assert run_python_restricted("import math\ndef run(x):\n    return math.sqrt(x)", 9) == 3.0
    with pytest.raises(RuntimeError, match="ValueError: bad"):
        run_python_subprocess("def run(x):\n    raise ValueError('bad')", 4)


def test_a_module_may_be_added_to_the_restricted_backend() -> None:
    code = "import colorsys\ndef run(x):\n    return colorsys.rgb_to_hsv(0, 0, 0)"
    with pytest.raises(RuntimeError, match="import of 'colorsys' is refused"):
        run_python_restricted(code, None)
    assert run_python_restricted(code, None, extra_modules=frozenset({"colorsys"})) == [0.0, 0.0, 0]


def test_a_script_outside_a_flow_is_cancelled_by_its_event() -> None:
    cancel = threading.Event()
    timer = threading.Timer(0.3, cancel.set)
    timer.start()
    with pytest.raises(RuntimeError, match="cancelled"):
        run_python_subprocess("def run(x):\n    while True: pass", None, cancel)
    timer.join()


def test_the_restricted_backend_names_the_extra_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "RestrictedPython", None)
    with pytest.raises(FlowLoadError, match=r"pip install 'plaita\[restricted\]'"):
        load(sandbox_backend="restricted")
    with pytest.raises(NotSupported, match="RestrictedPython"):
        run_python_restricted(GOOD, None)
