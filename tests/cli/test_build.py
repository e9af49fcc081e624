"""``plaita build``, and commands that take a Python file with flows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plaita.cli import main
from tests.cli.shell import Shell

SOURCE = '''"""Orders."""

from plaita.dsl.codeflow import F, INPUT, flow


@flow("order", version="1")
def place():
    net = INPUT.gross / 1.25
    while rounds < 2:
        return rounds
    return F.round(net, 2)
'''


@pytest.fixture
def source(shell: Shell) -> Path:
    return shell.write("order.py", SOURCE)


def test_a_source_is_built_beside_itself_and_is_then_in_sync(shell: Shell, source: Path) -> None:
    built = shell.plaita("build order.py")
    assert (built.code, built.out.startswith("order.plaita.json: written, 6 nodes, ")) == (0, True)
    assert shell.plaita("build order.py --check").code == 0
    assert shell.plaita("run order.plaita.json -i gross=5").out.strip().endswith("4.0")


def test_a_stale_or_missing_file_is_told_with_code_one(shell: Shell, source: Path) -> None:
    missing = shell.plaita("build order.py --check")
    assert (missing.code, "order.plaita.json does not exist" in missing.err) == (1, True)
    shell.plaita("build order.py")
    shell.write("order.py", SOURCE.replace("1.25", "1.5"))
    stale = shell.plaita("build order.py --check")
    assert (stale.code, "order.plaita.json is stale" in stale.err) == (1, True)


def test_a_missing_source_is_told_with_code_two(shell: Shell) -> None:
    missing = shell.plaita("build nothing.py")
    assert (missing.code, "nothing.py cannot be read" in missing.err) == (2, True)


def test_what_is_no_flow_is_told_with_line_and_remedy(shell: Shell) -> None:
    shell.write("bad.py", '@flow("f")\ndef f():\n    x = [i for i in INPUT.l]\n    return F.nope(y)\n')
    bad = shell.plaita("build bad.py")
    assert bad.code == 1
    assert bad.err.splitlines() == [
        "bad.py:3:9: error: a list comprehension cannot be part of a flow",
        "  hint: for item in MAP(…, id='name'): return …",
        "bad.py:4:19: error: unknown name 'y'",
        "  hint: the input is INPUT.y",
    ]
    assert not (shell.folder / "bad.plaita.json").exists()


def test_what_the_loader_finds_is_told_with_the_line_too(shell: Shell) -> None:
    shell.write("bad.py", '@flow("f")\ndef f():\n    return F.nope(1)\n')
    bad = shell.plaita("build bad.py --json")
    assert bad.code == 1
    assert json.loads(bad.err)["error"]["issues"][0]["line"] == 3


def test_the_formats_differ_in_how_they_spell_child_flows(shell: Shell, source: Path) -> None:
    shell.plaita("build order.py -o a.json --format ir")
    shell.plaita("build order.py -o b.json --embed-source")
    intermediate, canonical = (json.loads((shell.folder / f).read_text()) for f in ("a.json", "b.json"))
    assert ["child_flow" in n for n in intermediate["nodes"] if n["type"] == "while"] == [True]
    assert ["childFlow" in n for n in canonical["nodes"] if n["type"] == "while"] == [True]
    assert canonical["metadata"] == {"source": SOURCE, "source_format": "plaita@flow"}
    assert shell.plaita("build order.py -o c.json --format xml").code == 2


def test_one_of_several_flows_is_named(shell: Shell) -> None:
    shell.write("two.py", "@flow\ndef one():\n    return 1\n\n@flow\ndef two():\n    return 2\n")
    assert shell.plaita("build two.py").code == 1
    assert shell.plaita("build two.py --flow-id two").code == 0
    assert json.loads((shell.folder / "two.plaita.json").read_text())["flow_id"] == "two"


def test_custom_nodes_are_registered_first(shell: Shell) -> None:
    shell.write(
        "stamps.py",
        "from plaita import Node\n\n\nclass Stamp(Node):\n    node_type = 'stamp'\n    text: str = ''\n\n"
        "    def execute(self, execution):\n        return execution.evaluate(self.text) + '!'\n",
    )
    shell.write("letter.py", '@flow("letter")\ndef letter():\n    s = STAMP(text=INPUT.text)\n    return s\n')
    assert shell.plaita("build letter.py").code == 1
    assert shell.plaita("build letter.py --register stamps").code == 0
    assert shell.plaita("build letter.py --register stamps:nothing").code == 4


def test_a_flow_names_the_file_of_its_custom_nodes_beside_it(shell: Shell) -> None:
    node = "from plaita import Node\n\n\nclass Bell(Node):\n    node_type = 'bell'\n\n"
    (shell.folder / "flows").mkdir()
    shell.write("flows/nodes.py", f"{node}    def execute(self, execution):\n        return 'ding'\n")
    head = "from plaita.dsl.codeflow import BELL, flow\n\n\n"
    body = "def ring():\n    heard = BELL()\n    return heard\n"
    shell.write("flows/ring.py", head + '@flow(metadata={"imports": ["nodes.py"]})\n' + body)
    shell.write("flows/dumb.py", head + "@flow\n" + body)
    assert shell.plaita("run flows/ring.py").out.strip() == '"ding"'
    assert shell.plaita("build flows/ring.py").code == 0
    assert shell.plaita("run flows/ring.plaita.json").out.strip() == '"ding"'
    for line in ("validate flows/dumb.py", "build flows/dumb.py"):
        refused = shell.plaita(line)
        assert (refused.code, "flows/dumb.py:6:13: error:" in refused.err + refused.out) == (1, True)
        assert "there is no node type 'bell'" in refused.err + refused.out


def test_commands_take_the_only_flow_of_a_file_or_ask_for_its_name(shell: Shell, source: Path) -> None:
    assert shell.plaita("run order.py -i gross=5").out.strip().endswith("4.0")
    shell.write(
        "two.py",
        "from plaita.dsl.codeflow import flow\n\n\n@flow\ndef one():\n    return 1\n\n\n"
        "@flow\ndef two():\n    return 2\n",
    )
    several = shell.plaita("validate two.py")
    assert (several.code, "name one: two.py:one" in several.out) == (1, True)
    assert shell.plaita("run two.py:two").out.strip().endswith("2")


def test_a_broken_flow_in_a_file_is_told_as_a_flow_and_not_as_a_failed_import(shell: Shell) -> None:
    shell.write("bad.py", "from plaita.dsl.codeflow import flow\n\n\n@flow\ndef f():\n    return nobody\n")
    bad = shell.plaita("validate bad.py")
    assert (bad.code, "bad.py:6:12" in bad.out, "unknown name 'nobody'" in bad.out) == (1, True, True)


def test_the_command_line_is_a_function_that_answers_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "order.py"
    path.write_text(SOURCE)
    assert main(["build", str(path)]) == 0  # type: ignore[operator]
    assert main(["build", str(path), "--check"]) == 0  # type: ignore[operator]
    assert main(["build", str(tmp_path / "nothing.py")]) == 2  # type: ignore[operator]
    assert "in sync" in capsys.readouterr().out


def test_the_package_itself_runs_as_the_command_line(shell: Shell) -> None:
    done = subprocess.run([sys.executable, "-m", "plaita", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("plaita ")
