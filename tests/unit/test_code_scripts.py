"""What becomes of a script: its result, its errors, and everything it may do to break the way there."""

from __future__ import annotations

import asyncio
import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import pytest

from plaita.base.errors import PlaitaError
from plaita.core.flow import Flow
from plaita.settings import Settings, use_settings
from tests.support.fleet import wait_until
from tests.support.flows import chain
from tests.support.scripts import flow_with, is_alive, pids_in, run_script

pytestmark = pytest.mark.usefixtures("default_settings")


def limit(**values: Any) -> None:
    use_settings(Settings(sandbox=replace(Settings().sandbox, **values)))


def error_of(code: str, value: Any = None, **fields: Any) -> PlaitaError:
    with pytest.raises(PlaitaError) as caught:
        run_script(code, value, **fields)
    return caught.value


def body(*lines: str) -> str:
    return "import os, sys\ndef run(d):\n" + "".join(f"    {line}\n" for line in lines)


RESULTS: dict[str, tuple[str, Any]] = {
    "the input comes as the argument": ("def run(d):\n    return d['n'] + 1", 8),
    "prints are not the result": (body("print('{\"value\": 9}')", "print('x' * 100000)", "return 1"), 1),
    "writing to stderr is not the result": (body("sys.stderr.write('x' * 100000)", "return 1"), 1),
    "stdout may be closed": (body("sys.stdout.close()", "os.close(2)", "return 1"), 1),
    "lone surrogates may be printed": (body("print('\\ud800')", "return 1"), 1),
    "nothing is null": ("def run(d):\n    pass", None),
    "a tuple is a list": ("def run(d):\n    return (1, ('a', None))", [1, ["a", None]]),
    "a subclass is what it derives from": (
        "from collections import OrderedDict, Counter\nimport enum\nclass E(enum.IntEnum):\n    A = 3\n"
        "def run(d):\n    return [OrderedDict(a=1), Counter('aab'), E.A]",
        [{"a": 1}, {"a": 2, "b": 1}, 3],
    ),
    "large integers are exact": ("def run(d):\n    return 10 ** 3000 + 1", 10**3000 + 1),
    "floats are exact": ("def run(d):\n    return [0.1, 1e300, -0.0, 5e-324]", [0.1, 1e300, -0.0, 5e-324]),
    "text is exact": ("def run(d):\n    return {'ключ': '\\n\"\\\\\\u2028😀\\x00'}", {"ключ": '\n"\\\u2028😀\x00'}),
    "a coroutine is awaited": (
        "import asyncio\nasync def run(d):\n    await asyncio.sleep(0)\n    return d['n']",
        7,
    ),
    "a function may be assigned": ("run = lambda d: d['n']", 7),
    "a class of the script may be a dataclass": (
        "from dataclasses import asdict, dataclass\n@dataclass\nclass P:\n    x: int\n"
        "def run(d):\n    return asdict(P(1))",
        {"x": 1},
    ),
    "installed packages can be imported": ("import yaml\ndef run(d):\n    return yaml.safe_load('a: 1')", {"a": 1}),
    "a fork that comes back is not heard": (body("return os.fork() == 0"), False),
    "a thread that goes on is cut": (
        "import threading\ndef run(d):\n    threading.Thread(target=threading.Event().wait).start()\n    return 1",
        1,
    ),
    "what is printed before a fork changes nothing": (body("print('once')", "os.fork()", "return 1"), 1),
}


@pytest.mark.parametrize(("code", "expected"), RESULTS.values(), ids=RESULTS.keys())
def test_the_result_is_what_run_returns(code: str, expected: Any) -> None:
    found = run_script(code, {"n": 7})
    assert json.dumps(found) == json.dumps(expected)


ERRORS: dict[str, tuple[str, str]] = {
    "an exception": ("def run(d):\n    x = 1\n    raise ValueError('bad')", "ValueError: bad (line 3 of the code)"),
    "an exception deeper down": (
        "def run(d):\n    return int(f(d))\ndef f(d):\n    return d['missing']",
        "KeyError: 'missing' (line 4 of the code)",
    ),
    "an exception of a library": (
        "import json\ndef run(d):\n    return json.loads('{')",
        "(line 3 of the code)",
    ),
    "an exception whose text fails": (
        "class E(Exception):\n    def __str__(self):\n        raise OSError\ndef run(d):\n    raise E",
        "E (its text cannot be read: OSError)",
    ),
    "an exception that is no Exception": ("def run(d):\n    raise KeyboardInterrupt", "KeyboardInterrupt"),
    "what it wrote to stderr is told": (body("sys.stderr.write('almost there')", "1 / 0"), "ends with: almost there"),
    "an exit": (body("sys.exit(0)"), "SystemExit: 0"),
    "the end of the process": (body("print('done')", "os._exit(0)"), "ended with exit code 0 before run returned"),
    "a made-up result": (
        body("os.write(1, b'{\"value\": 1}')", "os._exit(0)"),
        "ended with exit code 0 before run returned",
    ),
    "a made-up result in every file": (
        body(
            "for fd in range(256):",
            "    try: os.write(fd, b'0' * 36 + b'{\"value\": 1}')",
            "    except OSError: pass",
            "return 2",
        ),
        "cannot be told from a made-up one",
    ),
    "a made-up result, then the end": (
        body(
            "for fd in range(256):",
            "    try: os.write(fd, b'{\"value\": 1}')",
            "    except OSError: pass",
            "os._exit(0)",
        ),
        "cannot be told from a made-up one",
    ),
    "every file closed": (body("os.closerange(0, 256)", "return 1"), "could not hand over a result"),
    "a crash": (body("os.kill(os.getpid(), 11)"), "ended by SIGSEGV"),
    "its watcher killed": (body("os.kill(os.getppid(), 9)", "return 1"), "the process that watches the script"),
    "endless recursion": ("def run(d):\n    return run(d)", "RecursionError"),
    "a module that does not exist": ("import no_such_module_here\ndef run(d):\n    pass", "ModuleNotFoundError"),
    "no run after all": ("def run(d):\n    pass\ndel run", "KeyError: 'run'"),
    "not a number": ("def run(d):\n    return [{'a': float('nan')}]", "not JSON: $[0].a: nan is not a JSON number"),
    "infinity": ("def run(d):\n    return -1e999", "$: -inf is not a JSON number"),
    "a key that is no text": ("def run(d):\n    return {'a': {1: 2}}", "$.a: key 1 is int; keys are text"),
    "a key that is null": ("def run(d):\n    return {None: 2}", "key None is NoneType; keys are text"),
    "a set": ("def run(d):\n    return {'a b': {1}}", "$['a b']: set is not a JSON type"),
    "bytes": ("def run(d):\n    return b'x'", "bytes is not a JSON type"),
    "a lone surrogate": ("def run(d):\n    return {'a': '\\ud800'}", "$.a: text with a lone surrogate is not Unicode"),
    "an integer beyond all limits": ("def run(d):\n    return [10 ** 4000]", "$[0]: an integer may have at most 4000"),
    "a value that contains itself": ("def run(d):\n    d['d'] = d\n    return d", "nested deeper than 64"),
    "a result without end": ("def run(d):\n    return 'x' * 40_000_000", "its result is too large"),
}


@pytest.mark.parametrize(("code", "expected"), ERRORS.values(), ids=ERRORS.keys())
def test_what_goes_wrong_in_a_script_is_an_error_of_its_node(code: str, expected: str) -> None:
    error = error_of(code, {"n": 7})
    assert error.kind == "node_error"
    assert expected in str(error)


def test_a_script_sees_nothing_of_the_environment_but_a_few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAITA_STORE", "memory:")
    monkeypatch.setenv("MY_TOKEN", "s3cret")
    found = run_script("import os\ndef run(d):\n    return dict(os.environ)")
    # Python itself sets a locale when it finds none.
    assert found.keys() <= {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONIOENCODING"}


def test_a_script_holds_no_file_of_the_process_that_started_it(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        found = run_script("import os\ndef run(d):\n    return os.listdir('/dev/fd')")
        assert file.writable()
    assert len(found) <= 5


def test_the_node_without_an_input_gets_null() -> None:
    code = "def run(d):\n    return d is None"
    assert run_script(code, {"n": 1}, input=None) is True


def test_expressions_in_the_input_are_evaluated_and_those_in_the_code_are_not() -> None:
    code = "def run(d):\n    return [d, '$INPUT.n', '{% $INPUT.n %}']"
    assert run_script(code, {"n": 5}, input={"x": "$INPUT.n + 1"}) == [{"x": 6}, "$INPUT.n", "{% $INPUT.n %}"]


def test_a_script_that_runs_too_long_is_ended_with_all_it_has_started(tmp_path: Path) -> None:
    limit(timeout_seconds=0.5)
    path = tmp_path / "pids"
    error = error_of(STARTS_OTHERS, {"path": str(path)})
    assert "longer than PLAITA_SANDBOX_TIMEOUT" in str(error)
    wait_until(lambda: not any(map(is_alive, pids_in(path, 3))), "all are gone")


STARTS_OTHERS = """
import os, subprocess, threading
def run(d):
    child = subprocess.Popen(["sleep", "60"])
    fork = os.fork()
    if fork == 0:
        threading.Event().wait()
    with open(d["path"], "a") as file:
        file.write(f"{os.getpid()}\\n{child.pid}\\n{fork}\\n")
    threading.Event().wait(60)
"""


def test_the_timeout_of_the_node_ends_a_script_with_all_it_has_started(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    error = error_of(STARTS_OTHERS, {"path": str(path)}, timeout=700)
    assert error.kind == "timeout"
    wait_until(lambda: not any(map(is_alive, pids_in(path, 3))), "all are gone")


def test_what_a_script_leaves_running_is_gone_when_it_has_returned(tmp_path: Path) -> None:
    code = "import subprocess\ndef run(d):\n    return subprocess.Popen(['sleep', '60']).pid"
    pid = run_script(code)
    wait_until(lambda: not is_alive(pid), "it is gone")


def test_a_script_that_ignores_every_signal_is_ended_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    code = (
        "import os, signal\ndef run(d):\n    for s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "        signal.signal(s, signal.SIG_IGN)\n"
        "    open(d['path'], 'w').write(f'{os.getpid()}\\n')\n    while True: pass"
    )
    assert error_of(code, {"path": str(path)}, timeout=700).kind == "timeout"
    wait_until(lambda: not any(map(is_alive, pids_in(path))), "it is gone")


def test_a_script_that_prints_for_ever_is_ended() -> None:
    limit(timeout_seconds=0.5)
    assert "PLAITA_SANDBOX_TIMEOUT" in str(error_of("def run(d):\n    while True: print('x' * 1000)"))


def test_a_script_gets_no_more_memory_than_it_may_have() -> None:
    limit(memory_mb=256)
    assert "MemoryError" in str(error_of("def run(d):\n    return len(bytearray(10 ** 9))"))
    assert run_script("def run(d):\n    return len(bytearray(10 ** 7))") == 10**7


async def test_many_scripts_at_once_take_turns() -> None:
    limit(scripts=2)
    code = "import os\ndef run(d):\n    return d['item'] * 2"
    body = {
        "nodes": [
            {"id": "s", "type": "start", "next": "c"},
            {"id": "c", "type": "code", "code": code, "input": "$INPUT", "next": "e"},
            {"id": "e", "type": "end", "output": "$NODE.c"},
        ]
    }
    node = {"id": "a", "type": "map", "concurrent": True, "collection": "$INPUT.ns", "childFlow": body}
    assert await Flow.model_validate(chain(node)).arun({"ns": list(range(9))}) == [2 * n for n in range(9)]


def test_a_loop_whose_scripts_took_turns_is_not_kept() -> None:
    limit(scripts=1)

    async def two() -> ref[asyncio.AbstractEventLoop]:
        flow = flow_with("def run(input):\n    return 1")
        await asyncio.gather(flow.arun(), flow.arun())
        return ref(asyncio.get_running_loop())

    loop = asyncio.run(two())
    gc.collect()
    assert loop() is None


async def test_a_plain_run_that_is_cancelled_ends_its_script(tmp_path: Path) -> None:
    path = tmp_path / "pids"
    running = asyncio.create_task(flow_with(STARTS_OTHERS).arun({"path": str(path)}))
    await asyncio.to_thread(wait_until, lambda: pids_in(path, 3), "the script runs")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    wait_until(lambda: not any(map(is_alive, pids_in(path, 3))), "all are gone")


def test_a_script_that_stops_its_watcher_is_ended_a_little_later(tmp_path: Path) -> None:
    limit(timeout_seconds=0.1)
    path = tmp_path / "pids"
    code = body(
        "import signal, threading",
        "open(d['path'], 'w').write(f'{os.getppid()}\\n{os.getpid()}\\n')",
        "os.kill(os.getppid(), signal.SIGSTOP)",
        "threading.Event().wait()",
    )
    assert "does not answer" in str(error_of(code, {"path": str(path)}))
    wait_until(lambda: not any(map(is_alive, pids_in(path, 2))), "both are gone")


def test_an_author_who_asks_for_it_has_a_failing_script_run_again(tmp_path: Path) -> None:
    path = tmp_path / "tries"
    code = (
        "def run(d):\n    with open(d['path'], 'a+') as f:\n        f.write('x')\n        f.seek(0)\n"
        "        if len(f.read()) < 3: raise ConnectionError('not yet')\n    return 'done'"
    )
    handler = {"retry": {"attempts": 3, "base": 1}}
    assert run_script(code, {"path": str(path)}, errorHandler=handler) == "done"


def test_a_value_error_of_a_script_is_not_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "tries"
    code = "def run(d):\n    open(d['path'], 'a').write('x')\n    raise ValueError"
    error_of(code, {"path": str(path)}, errorHandler={"retry": {"attempts": 3, "base": 1}})
    assert path.read_text() == "x"


def test_a_script_can_be_run_many_times_from_one_flow() -> None:
    flow = flow_with("n = []\ndef run(d):\n    n.append(d)\n    return n")
    assert [flow.run({"n": 1}), flow.run({"n": 2})] == [[{"n": 1}], [{"n": 2}]]
