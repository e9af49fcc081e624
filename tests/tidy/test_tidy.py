"""The house rules that linters do not know."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

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


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


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
    text = text_of(path)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    names = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([n for n in names if n not in ("self", "cls")])


def listed(path: Path, name: str, exceptions: dict[str, str]) -> bool:
    return f"{name_of(path)}::{name}" in exceptions


def every(paths: Sequence[Path], rule: Callable[[Path], Iterator[str]]) -> None:
    """No file breaks the rule; whatever breaks it is named."""
    assert paths
    assert not [f"{name_of(path)}: {offence}" for path in paths for offence in rule(path)]


def test_a_module_says_what_it_is_for() -> None:
    def silent(path: Path) -> Iterator[str]:
        tree = tree_of(path)
        if tree.body and len((ast.get_docstring(tree) or "").split()) <= 1:
            yield "has no docstring"

    every(EVERYTHING, silent)


def test_a_module_its_classes_and_functions_are_small() -> None:
    def large(path: Path) -> Iterator[str]:
        if text_of(path).count("\n") > MODULE_LINES_MAX and name_of(path) not in MANY_LINES:
            yield "has too many lines"
        for name, function in functions(tree_of(path)):
            lines = (function.end_lineno or 0) - function.lineno + 1
            if lines > FUNCTION_LINES_MAX and not listed(path, name, LONG_FUNCTIONS):
                yield f"{name} has {lines} lines"
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                count = len([m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)])
                if count > CLASS_METHODS_MAX and not listed(path, node.name, MANY_METHODS):
                    yield f"{node.name} has {count} methods"

    every(SHIPPED, large)


def test_a_function_has_at_most_six_parameters() -> None:
    def crowded(path: Path) -> Iterator[str]:
        if any(name_of(path).startswith(folder) for folder in MANY_PARAMETERS_FOLDERS):
            return
        for name, function in functions(tree_of(path)):
            count = parameters(function)
            if count > PARAMETERS_MAX and not listed(path, name, MANY_PARAMETERS):
                yield f"{name} has {count} parameters"

    every(SHIPPED, crowded)


def test_a_broad_catch_stands_only_where_it_is_listed() -> None:
    def catching(path: Path) -> Iterator[str]:
        for name, function in functions(tree_of(path)):
            for node in ast.walk(function):
                if not isinstance(node, ast.ExceptHandler):
                    continue
                caught = "BaseException" if node.type is None else ast.unparse(node.type)
                passes_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
                broad = not passes_on and re.search(r"\b(Base)?Exception\b", caught)
                if broad and not listed(path, name, BROAD_CATCHES):
                    yield f"line {node.lineno}: {name} catches {caught}"

    every(SHIPPED, catching)


def test_every_exception_to_a_rule_still_exists() -> None:
    names = {f"{name_of(p)}::{name}" for p in SHIPPED for name, _ in functions(tree_of(p))}
    classes = {
        f"{name_of(p)}::{node.name}" for p in SHIPPED for node in ast.walk(tree_of(p)) if isinstance(node, ast.ClassDef)
    }
    assert LONG_FUNCTIONS.keys() | MANY_PARAMETERS.keys() | BROAD_CATCHES.keys() <= names
    assert MANY_METHODS.keys() <= classes
    assert MANY_LINES.keys() <= {name_of(p) for p in SHIPPED}


def test_comments_say_why_in_the_present() -> None:
    def of_the_past(path: Path) -> Iterator[str]:
        for line, text in prose(path):
            found = (HISTORY.search(text) if text.startswith("#") else None) or TODO.search(text)
            if found:
                yield f"line {line}: {found.group()}"

    every([path for path in EVERYTHING if path != Path(__file__)], of_the_past)


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    def placed(path: Path) -> Iterator[str]:
        for number, line in enumerate(text_of(path).splitlines(), 1):
            if found := PLACES.search(line):
                yield f"line {number}: {found.group()}"

    every([path for path in (*EVERYTHING, *TEXTS) if path != Path(__file__)], placed)


def test_a_test_is_named_by_a_sentence_and_neither_sleeps_nor_mocks() -> None:
    def untidy(path: Path) -> Iterator[str]:
        for name, function in functions(tree_of(path)):
            if function.name.startswith("test_") and len(function.name.split("_")) <= 3:
                yield f"{name} is no sentence"
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import | ast.ImportFrom) and "mock" in ast.unparse(node):
                yield f"line {node.lineno}: a mock"
            sleeps = isinstance(node, ast.Call) and ast.unparse(node.func) in ("time.sleep", "asyncio.sleep")
            if isinstance(node, ast.Call) and sleeps and ast.unparse(node.args[0]) != "0":
                yield f"line {node.lineno}: {ast.unparse(node)}"

    every([path for path in TESTS if path.name.startswith("test_")], untidy)
