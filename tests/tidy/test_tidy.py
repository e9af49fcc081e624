"""The house rules that linters do not know."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "plaita"


def is_hidden(path: Path) -> bool:
    """In a folder that tools made for themselves."""
    return any(part.startswith(".") and part != ".ci" for part in path.relative_to(ROOT).parts[:-1])


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py") if not is_hidden(path))


SHIPPED = modules("src", "tools")
TESTS = modules("tests")
EVERYTHING = [*SHIPPED, *TESTS, *modules("bench", "examples")]
TEXTS = sorted(
    path
    for pattern in ("*.md", "*.toml", "*.yml", "*.yaml", "Makefile", ".ci/run")
    for path in ROOT.rglob(pattern)
    if not is_hidden(path) and "node_modules" not in path.parts
)

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
CLASS_METHODS_MAX = 20
PARAMETERS_MAX = 6

# An exception is "<module below src or the root>::<name>" with the reason why the rule does harm there.
MANY_LINES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}
MANY_METHODS: dict[str, str] = {
    "plaita/core/context.py::ExecutionContext": "the documented class",
    "plaita/core/executor.py::FlowExecution": "the documented class",
    "plaita/core/flow.py::Flow": "the documented model: reading, running, looking inside",
    "plaita/ports/backend.py::Backend": "gathers the ports; each of them is small",
    "plaita/runtime/runtime.py::Runtime": "the verbs of the command line, each sync and async",
}
MANY_PARAMETERS: dict[str, str] = {
    "plaita/base/errors.py::FlowExecutionException.__init__": "the documented constructor",
    "plaita/backends/ports/queries.py::GatedQueries.runs": "a filter is a parameter; all are keywords with defaults",
    "plaita/backends/redis/queries.py::RedisQueries.runs": "a filter is a parameter; all are keywords with defaults",
    "plaita/core/executor.py::FlowExecution.__init__": "the documented signature",
    "plaita/core/executor.py::FlowExecution.run": "the documented signature",
    "plaita/core/executor.py::FlowExecution.run_distributed": "the documented signature",
    "plaita/control/looking.py::list_executions": "a filter is a parameter; all are keywords with defaults",
    "plaita/engine/expression/registry.py::ExpressionRegistry.register": "the documented signature",
    "plaita/event/core.py::EventBus.register_subscription": "the documented signature",
    "plaita/event/memory.py::InMemoryEventBus.register_subscription": "the documented signature",
    "plaita/event/redis_bus.py::RedisEventBus.register_subscription": "the documented signature",
    "plaita/server/documented/flow_worker.py::FlowWorker.__init__": "the documented signature",
    "plaita/server/documented/redis_flow_worker.py::RedisFlowWorker.__init__": "the documented signature",
    "plaita/server/documented/filtering.py::EventFilter.__init__": "the documented signature",
    "plaita/server/task_queue.py::enqueue_task": "the documented signature",
    "plaita/server/task_queue.py::RedisStreamTaskQueue.__init__": "the documented signature",
    "plaita/storage/redis.py::RedisExecutionStorage.__init__": "the documented signature",
    "plaita/storage/redis.py::RedisFlowStorage.__init__": "the documented signature",
    "plaita/ports/queries.py::QueryStore.runs": "a filter is a parameter; all are keywords with defaults",
}
MANY_PARAMETERS_FOLDERS = {
    "plaita/cli/": "a parameter of a command is an option",
    "plaita/dsl/nodes.py": "a parameter of a factory is a field of the node",
    "plaita/dsl/builder.py": "a parameter of a builder is a field of the flow",
    "plaita/dsl/codeflow/decorating.py": "a parameter of a decorator is a field of the flow",
}
BROAD_CATCHES: dict[str, str] = {
    "plaita/backends/sqlite/gate.py::SqliteGate._try_batch": "a verb's error belongs to its caller, not to the batch",
    "plaita/server/task_queue.py::RedisStreamTaskQueue._may_bury": "a guard is foreign code: one that fails keeps",
    "plaita/server/control.py::ControlListener._listen": "a client is foreign code: the channel is opened anew",
    "plaita/server/control.py::ControlListener._obey": "a handler is foreign code: the next command is obeyed too",
    "plaita/server/registry.py::ServiceRegistry._safely": "a client is foreign code: nobody stops for the registry",
    "plaita/server/documented/filtering.py::EventReconciler.scan_once": "storages, clients, filters are foreign code",
    "plaita/core/callback.py::call_hook": "a callback is foreign code: an observer must not change what it observes",
    "plaita/core/stepping.py::Steps._subscribe": "an event bus is foreign code",
    "plaita/core/calls.py::_stored": "the text of a foreign error is foreign code too",
    "plaita/core/calls.py::accepted": "a node is foreign code: whatever its check raises refuses the result",
    "plaita/core/calls.py::aperform": "a node is foreign code: whatever it raises is its failure",
    "plaita/core/calls.py::perform": "a node is foreign code: whatever it raises is its failure",
    "plaita/core/imports.py::_load": "a module with custom nodes is foreign code",
    "plaita/core/threads.py::Threads._work": "hands everything to whoever asks for the result",
    "plaita/engine/expression/registry.py::_isolated": "a registered function is foreign code",
    "plaita/engine/expression/registry.py::_isolated.call": "a registered function is foreign code",
    "plaita/engine/failing.py::outcome_of": "what an author's expression raises is a failure of the node",
    "plaita/engine/hosts.py::Rounds.child_done": "as outcome_of, in the inner loop of every collection node",
    "plaita/engine/machine.py::_burst": "as outcome_of, around every step",
    "plaita/event/memory.py::InMemoryEventBus._answer": "a condition is the code of whoever waits",
    "plaita/event/memory.py::_told": "a handler is foreign code",
    "plaita/node/basic.py::Node._check": "a node's validate is foreign code, and only a warning",
    "plaita/testing/simulation/story.py::play": "whatever a verb or a worker raises is the verdict of the world",
    "plaita/node/calculate.py::_applied": "a registered function is foreign code",
    "plaita/node/calculate.py::_applied.evaluate": "a registered function is foreign code",
    "plaita/node/sandbox/script.py::_raised": "the text of a foreign error is foreign code too",
    "plaita/node/sandbox/script.py::answer_of": "whatever a script raises is the answer of its process",
}

# A comment explains the code as it is; what it used to be belongs to git and the changelog.
HISTORY = re.compile(
    r"#\d{2,}|\b(incident|regression|hotfix|previously|used to|no longer|formerly|v\d+\.\d+|20\d\d-\d\d-\d\d)\b", re.I
)
TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
PLACES = re.compile(r"(?<![\w.])/(root|home|Users)/\w")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT)).removeprefix("src/")


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in ast.iter_child_nodes(tree):
        inner = (
            f"{prefix}{node.name}."
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            else prefix
        )
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + node.name, node
        yield from functions(node, inner)


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings, with their lines."""
    text = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([n for n in names if n not in ("self", "cls")])


def listed(path: Path, name: str, exceptions: dict[str, str]) -> bool:
    return f"{name_of(path)}::{name}" in exceptions


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not tree.body or len((ast.get_docstring(tree) or "").split()) > 1


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_a_module_its_classes_and_functions_are_small(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= MODULE_LINES_MAX or name_of(path) in MANY_LINES
    for name, function in functions(tree):
        lines = (function.end_lineno or 0) - function.lineno + 1
        assert lines <= FUNCTION_LINES_MAX or listed(path, name, LONG_FUNCTIONS), f"{name} has {lines} lines"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)]
            count = len(methods)
            assert count <= CLASS_METHODS_MAX or listed(path, node.name, MANY_METHODS), (
                f"{node.name} has {count} methods"
            )


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_a_function_has_at_most_six_parameters(path: Path) -> None:
    if any(name_of(path).startswith(folder) for folder in MANY_PARAMETERS_FOLDERS):
        return
    for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
        count = parameters(function)
        assert count <= PARAMETERS_MAX or listed(path, name, MANY_PARAMETERS), f"{name} has {count} parameters"


@pytest.mark.parametrize("path", SHIPPED, ids=name_of)
def test_a_broad_catch_stands_only_where_it_is_listed(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, function in functions(tree):
        for node in ast.walk(function):
            if not isinstance(node, ast.ExceptHandler):
                continue
            caught = "BaseException" if node.type is None else ast.unparse(node.type)
            passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
            broad = not passes_on and re.search(r"\b(Base)?Exception\b", caught)
            assert not broad or listed(path, name, BROAD_CATCHES), f"line {node.lineno}: {name} catches {caught}"


def test_every_exception_to_a_rule_still_exists() -> None:
    names = {
        f"{name_of(p)}::{name}" for p in SHIPPED for name, _ in functions(ast.parse(p.read_text(encoding="utf-8")))
    }
    classes = {
        f"{name_of(p)}::{node.name}"
        for p in SHIPPED
        for node in ast.walk(ast.parse(p.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    assert LONG_FUNCTIONS.keys() | MANY_PARAMETERS.keys() | BROAD_CATCHES.keys() <= names
    assert MANY_METHODS.keys() <= classes
    assert MANY_LINES.keys() <= {name_of(p) for p in SHIPPED}


@pytest.mark.parametrize("path", EVERYTHING, ids=name_of)
def test_comments_say_why_in_the_present(path: Path) -> None:
    if path == Path(__file__):
        return
    for line, text in prose(path):
        found = (HISTORY.search(text) if text.startswith("#") else None) or TODO.search(text)
        assert not found, f"{path.name}:{line}: {found.group()}"


@pytest.mark.parametrize("path", [*EVERYTHING, *TEXTS], ids=name_of)
def test_no_file_knows_the_machine_it_was_written_on(path: Path) -> None:
    if path == Path(__file__):
        return
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), 1):
        found = PLACES.search(line)
        assert not found, f"{path.name}:{number}: {found.group()}"


@pytest.mark.parametrize("path", [p for p in TESTS if p.name.startswith("test_")], ids=name_of)
def test_a_test_is_named_by_a_sentence_and_neither_sleeps_nor_mocks(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, function in functions(tree):
        if function.name.startswith("test_"):
            assert len(function.name.split("_")) > 3, f"{name} is no sentence"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert "mock" not in ast.unparse(node), f"line {node.lineno}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep"):
            assert ast.unparse(node.args[0]) == "0", f"line {node.lineno}: {ast.unparse(node)}"
