"""The process of a script: closes what is not its own, takes its limits, runs the code, hands over one frame and ends.

A frame is the secret of the request, the length in hexadecimal digits, and JSON: ``{"value": …}``, ``{"steps": […],
"reason": …}`` for a result that is not JSON, or ``{"raised": …, "line": …, "permanent": …}``. The secret keeps a script
from answering by accident (by printing, by a process it forked, by writing wherever it can); one that searches the
memory of its own process finds it.
"""

from __future__ import annotations

import os
import resource
import sys

TYPE_CHECKING = False  # importing typing would take as long as all the rest
if TYPE_CHECKING:
    from typing import Any, NoReturn

try:
    from _json import encode_basestring_ascii as quote
except ImportError:  # another Python than CPython
    from json.encoder import py_encode_basestring_ascii as quote

NAME = "<code>"
LENGTH_DIGITS = 16
DEPTH_MAX = 64
TEXT_MAX = 4_000
NO_RESULT = 70
"""Exit code of a process that could not hand over what it has."""
_INTEGER_MAX = 10**4_000
_PACKAGES = ("plaita", "plaita.node", "plaita.node.sandbox")


def begin(request: dict[str, Any], result: int, out: int, err: int) -> NoReturn:
    """The forked process, from its first to its last instruction."""
    own = os.getpid()
    _own_files(out, err)
    _limits(request)
    answer = answer_of(request)
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (OSError, ValueError, AttributeError):
        pass  # the script has closed or replaced it
    if os.getpid() != own:
        os._exit(0)  # a fork of the script that came back: the answer is not its to give
    data = memoryview(request["nonce"] + b"%016x" % len(answer) + answer)
    try:
        while data:
            data = data[os.write(result, data) :]
    except OSError:
        os._exit(NO_RESULT)
    os._exit(0)


def _own_files(out: int, err: int) -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, place in ((null, 0), (out, 1), (err, 2)):
        os.dup2(fd, place)
        os.close(fd)
    # The streams of the interpreter think of the files they were opened on.
    sys.stdout = sys.__stdout__ = _writer(1, -1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2, 1)  # type: ignore[misc]


def _writer(fd: int, buffering: int) -> Any:
    return open(fd, "w", buffering, encoding="utf-8", errors="backslashreplace", closefd=False)


def _limits(request: dict[str, Any]) -> None:
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, request["cpu_seconds"]),
        (resource.RLIMIT_AS, request["memory_bytes"]),
    ):
        hard = resource.getrlimit(kind)[1]
        if limit is not None:
            wanted = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (wanted, hard if kind == resource.RLIMIT_CPU else wanted))


def answer_of(request: dict[str, Any]) -> bytes:
    """Run the code on its input; whatever comes of it is an answer."""
    try:
        value = request["input"]
        run = _plain(request) if request["backend"] == "subprocess" else _restricted(request)
        result = run(value)
        if type(result).__name__ == "coroutine":
            import asyncio

            result = asyncio.run(result)
        parts: list[str] = []
        _write(result, parts, DEPTH_MAX)
        return f'{{"value": {"".join(parts)}}}'.encode()
    except _NotJson as e:
        steps = ", ".join(str(s) if isinstance(s, int) else quote(s) for s in reversed(e.steps))
        return f'{{"steps": [{steps}], "reason": {quote(e.reason)}}}'.encode()
    except BaseException as e:  # noqa: BLE001 - whatever the script raises is the answer
        return _raised(e).encode()


def _plain(request: dict[str, Any]) -> Any:
    module = _module()
    sys.meta_path.append(_Installed())
    exec(compile(request["code"], NAME, "exec"), module.__dict__)  # nosec B102
    return module.__dict__["run"]


def _restricted(request: dict[str, Any]) -> Any:
    sys.path.append(request["restricted_path"])
    from plaita.node.sandbox.restricted import load

    sys.path.pop()
    module = _module()
    return load(request["code"], NAME, module.__dict__, request["extra_modules"])


def _module() -> Any:
    """The module of the script. The stand-ins that this code was imported through go: an author may mean the real."""
    for name in _PACKAGES:
        sys.modules.pop(name, None)
    module = type(sys)("script")
    sys.modules["script"] = module
    return module


class _Installed:
    """Finds installed packages. They are looked up only when a script imports what Python itself does not have."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        sys.meta_path.remove(self)
        import site

        site.main()
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


class _NotJson(Exception):
    """What of a result is not JSON; the steps to it are added on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str | int] = []


def _write(value: Any, parts: list[str], depth: int) -> None:
    """JSON text by the rules of stored values; a tuple is a list, as Python's own writer has it."""
    if value is None or value is True or value is False:
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, str):
        parts.append(quote(value))
    elif isinstance(value, int):
        if not -_INTEGER_MAX < value < _INTEGER_MAX:
            raise _NotJson("an integer may have at most 4000 digits")
        parts.append(int.__repr__(value))
    elif isinstance(value, float):
        text = float.__repr__(value)
        if text in ("nan", "inf", "-inf"):
            raise _NotJson(f"{text} is not a JSON number")
        parts.append(text)
    elif isinstance(value, list | tuple | dict):
        if depth == 0:
            raise _NotJson(f"nested deeper than {DEPTH_MAX} (or containing itself)")
        (_write_object if isinstance(value, dict) else _write_list)(value, parts, depth - 1)
    else:
        raise _NotJson(f"{type(value).__name__} is not a JSON type; return null, true/false, a number, text, a list "
                       "or an object")  # fmt: skip


def _write_list(value: Any, parts: list[str], depth: int) -> None:
    parts.append("[")
    for i, item in enumerate(value):
        if i:
            parts.append(",")
        try:
            _write(item, parts, depth)
        except _NotJson as e:
            e.steps.append(i)
            raise
    parts.append("]")


def _write_object(value: Any, parts: list[str], depth: int) -> None:
    parts.append("{")
    for i, (key, item) in enumerate(value.items()):
        if not isinstance(key, str):
            raise _NotJson(f"key {key!r} is {type(key).__name__}; keys are text")
        parts.append(f"{',' if i else ''}{quote(key)}:")
        try:
            _write(item, parts, depth)
        except _NotJson as e:
            e.steps.append(key)
            raise
    parts.append("}")


def _raised(error: BaseException) -> str:
    """The same rule as for a node of the worker's own: values and types of an author fail again, the rest may pass."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception as e:  # noqa: BLE001 - the text of a foreign error is foreign code
        text = f"{type(error).__name__} (its text cannot be read: {type(e).__name__})"
    permanent = isinstance(error, ValueError | TypeError | NotImplementedError) or not isinstance(error, Exception)
    line = _line(error)
    shown = "null" if line is None else str(line)
    return f'{{"raised": {quote(text[:TEXT_MAX])}, "line": {shown}, "permanent": {"true" if permanent else "false"}}}'


def _line(error: BaseException) -> int | None:
    """The last line of the script that was on the way to the error."""
    if isinstance(error, SyntaxError) and error.filename == NAME:
        return error.lineno
    line, at = None, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == NAME:
            line = at.tb_lineno
        at = at.tb_next
    return line
