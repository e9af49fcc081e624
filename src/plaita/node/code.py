"""``code``: runs a script of the flow's author in a process of its own."""

from __future__ import annotations

import ast
import asyncio
import inspect
import logging
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from plaita.base.errors import InputError, NotSupported
from plaita.base.json import Json, admit
from plaita.base.spelling import suggest
from plaita.engine import steps
from plaita.engine.failure import NODE_CODE, Failure, FailureRaised
from plaita.node.basic import Node
from plaita.node.registry import NodeRegistry, get_default_registry
from plaita.node.sandbox.policy import BACKENDS, EXTRA, CodePolicy, policy_of, runners
from plaita.settings import current_settings

if TYPE_CHECKING:
    from plaita.engine.linking import NodeLink
    from plaita.node.sandbox.process import Request
    from plaita.node.sandbox.verdict import Verdict

_log = logging.getLogger("plaita.code")


def register_runner(language: str, runner: Callable[[str, Json], Any]) -> None:
    """Nodes may now say this ``language``; ``runner(code, input)`` gives their result, and may be a coroutine.

    A plain function runs in a thread of the process. Raises ``ValueError`` for ``python``, which has its runner.
    """
    if language == "python":
        raise ValueError("python is run by the backends; choose another name for your language")
    runners[language] = runner


def register_code_node(
    registry: NodeRegistry | None = None,
    default_backend: str | None = None,
    allowed_backends: list[str] | None = None,
    allowed_languages: list[str] | None = None,
) -> None:
    """Register ``code`` with what its nodes may ask for; without this call the settings say it.

    Raises ``ValueError`` for an unknown name, ``NotSupported`` for a default backend that cannot be used here.
    """
    policy = policy_of(default_backend, allowed_backends, allowed_languages)
    if problem := policy.problem(policy.default_backend):
        raise NotSupported(problem, f"backends of this release: {', '.join(BACKENDS)}")
    bound = type("CodeNode", (CodeNode,), {"policy": policy, "__module__": __name__, "__doc__": CodeNode.__doc__})
    (get_default_registry() if registry is None else registry).register(bound)


class CodeNode(Node):
    """Runs ``code``, which defines ``run``, on the evaluated ``input``; its result is what ``run`` returns.

    The code is literal: nothing in it is evaluated by the flow. ``sandboxBackend``: ``subprocess`` is a Python process
    of its own with limits, no sandbox against a hostile author; ``restricted`` also takes away imports beyond pure
    modules, files, and names that begin with ``_``. ``PLAITA_SANDBOX_TIMEOUT`` and the timeout of the node both end it,
    with everything it has started.
    """

    node_type: ClassVar[str] = "code"
    node_name: ClassVar[str] = "Code"
    async_node: ClassVar[bool] = True
    provides: ClassVar[frozenset[str] | None] = frozenset()
    builtin: ClassVar[bool] = True
    policy: ClassVar[CodePolicy | None] = None

    language: str | None = None
    code: str | None = None
    input: Any = None
    sandbox_backend: str | None = None

    def link(self, link: NodeLink) -> None:
        link.linking.calls = True
        link.cn.arguments = link.value(self.input, "input")
        # It goes to the script and not into the state.
        link.env_fields[:] = [field for field in link.env_fields if field != "input"]
        link.cn.step = steps.call(link.cn)
        if not self.code or not self.code.strip():
            link.report("code_missing", "code", f"node {self.id!r} has no code", hint="def run(input): …")
        elif self._language_is_known(link) and self.language in (None, "python"):
            self._check_backend(link)
            self._check_source(link, self.code)

    def _language_is_known(self, link: NodeLink) -> bool:
        language = self.language or "python"
        if language in runners:
            return True
        policy = self._policy_at(link)
        if policy is None:
            return False
        if language == "python" and language in policy.languages:
            return True
        if language in ("js", "python"):
            why = "is not allowed here" if language == "python" else "is not available in this release"
            link.report("language_unavailable", "language", f"language {language!r} {why}")
        else:
            hint = suggest(language, ["python", *runners]) or "register_runner adds a language"
            link.report("language_unavailable", "language", f"there is no language {language!r}", hint=hint)
        return False

    def _check_backend(self, link: NodeLink) -> None:
        policy = self._policy_at(link)
        if policy is not None and (problem := policy.problem(self.sandbox_backend or policy.default_backend)):
            link.report("backend_unavailable", "sandbox_backend", problem)

    def _check_source(self, link: NodeLink, code: str) -> None:
        try:
            tree = parsed(code)
        except SyntaxError as e:
            link.report("code_syntax", "code", f"line {e.lineno} of the code: {e.msg}")
            return
        except (ValueError, RecursionError, MemoryError) as e:
            link.report("code_syntax", "code", f"the code cannot be read: {e or type(e).__name__}")
            return
        if "run" not in set(bound_names(tree.body)):
            link.report("code_without_run", "code", "the code defines no function run", hint="def run(input): …")

    def _policy_at(self, link: NodeLink) -> CodePolicy | None:
        try:
            return self.policy or policy_of()
        except ValueError as e:
            link.report("bad_setting", "", f"the settings of the sandbox: {e}")
            return None

    async def arun(self, execution: Any) -> Json:
        value, code = execution.evaluate(self.input), self.code or ""
        if runner := runners.get(self.language or "python"):
            if inspect.iscoroutinefunction(runner):
                return admit(await runner(code, value))
            return admit(await asyncio.to_thread(runner, code, value))
        from plaita.node.sandbox.process import perform

        backend = self.sandbox_backend or (self.policy or policy_of()).default_backend
        verdict = await perform(request_of(backend, code, value), current_settings().sandbox)
        if verdict.out or verdict.err:
            _log.debug("node %r wrote: %s", self.id, "\n".join(filter(None, (verdict.out, verdict.err))))
        return result_of(verdict)


def parsed(code: str) -> ast.Module:
    """The syntax tree of a script. Raises ``SyntaxError``, ``ValueError``, ``RecursionError`` or ``MemoryError``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(code, "<code>")


def bound_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module bind, blocks included."""
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from ((a.asname or a.name).split(".")[0] for a in aliases)
            case ast.Assign() | ast.AnnAssign():
                yield from (n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and _is_target(n))
            case _:
                for field in ("body", "orelse", "finalbody"):
                    yield from bound_names(getattr(statement, field, ()))
                yield from bound_names(s for h in getattr(statement, "handlers", ()) for s in h.body)


def _is_target(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def request_of(backend: str, code: str, value: Json, extra_modules: frozenset[str] = frozenset()) -> Request:
    """A request to a backend. Raises ``NotSupported`` when the package it needs is gone."""
    from plaita.node.sandbox.process import Request

    place = ""
    if backend == "restricted":
        spec = find_spec("RestrictedPython")
        if spec is None or spec.origin is None:
            raise NotSupported("backend 'restricted' needs the package RestrictedPython", EXTRA)
        place = str(Path(spec.origin).parents[1])
    return Request(code, value, backend, extra_modules, place)


def result_of(verdict: Verdict) -> Json:
    """The value of a verdict. Raises ``InputError`` for a result that is not JSON, ``FailureRaised`` for the rest."""
    if verdict.path is not None:
        raise InputError(verdict.path, verdict.problem)
    if verdict.problem:
        failure = Failure("node_error", NODE_CODE, verdict.in_words(), retryable=not verdict.permanent)
        raise FailureRaised(failure)
    return verdict.value


def run_python(code: str, *args: Any, **kwargs: Any) -> Any:
    """Execute code in this process, without any limit, and call its ``run``: for code of your own only."""
    names: dict[str, Any] = {"__name__": "script"}
    exec(compile(code, "<code>", "exec"), names)  # nosec B102
    return names["run"](*args, **kwargs)


def run_python_subprocess(code: str, input_value: Json, cancel_event: threading.Event | None = None) -> Json:
    """Run code as the backend ``subprocess`` does. Raises ``RuntimeError`` with the script's error or ``cancelled``."""
    return _run_now(request_of("subprocess", code, admit(input_value)), cancel_event)


def run_python_restricted(code: str, input_value: Json, *, extra_modules: frozenset[str] | None = None) -> Json:
    """Run code as the backend ``restricted`` does; ``extra_modules`` may be imported besides. Raises as its sibling."""
    return _run_now(request_of("restricted", code, admit(input_value), extra_modules or frozenset()), None)


def _run_now(request: Request, cancel_event: threading.Event | None) -> Json:
    from plaita.node.sandbox.process import perform_now

    cancelled = (lambda: False) if cancel_event is None else cancel_event.is_set
    verdict = perform_now(request, current_settings().sandbox, cancelled)
    if verdict is None:
        raise RuntimeError("the script was cancelled")
    try:
        return result_of(verdict)
    except FailureRaised as e:
        raise RuntimeError(e.failure.message) from None
