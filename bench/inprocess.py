"""In-process runs, loading and expressions: ours, the published package and a bare loop, interleaved."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.flows import EXPRESSION_INPUT, EXPRESSIONS, chain, ifs, rounds, switches
from bench.subjects import Subject, ours, published

ROUNDS = 9
XS = list(range(1000))
FLOWS: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    # name: document, input, nodes executed, repetitions of ours (the peer runs once)
    "chain 10": (chain(10), {"x": 0}, 12, 200),
    "chain 100": (chain(100), {"x": 0}, 102, 50),
    "chain 1000": (chain(1000), {"x": 0}, 1002, 10),
    "if x100": (ifs(100), {"x": 9, "y": 1}, 202, 50),
    "switch x100": (switches(100), {"x": 4, "y": 1}, 202, 50),
    "loop 1000": (rounds("loop"), {"xs": XS}, 3003, 5),
    "map 1000": (rounds("map"), {"xs": XS}, 3003, 5),
}


def run() -> list[str]:
    """The lines of the report."""
    mine, peer = ours(), published()
    try:
        lines = [
            "in process, us a node (median of 9, interleaved)",
            f"  {'flow':14} {'ours':>8} {'published':>10} {'ratio':>7} {'floor':>7} {'x floor':>8}",
        ]
        for name in FLOWS:
            lines.append(_flow(name, mine, peer))
        lines += ["load, us a node (text to runnable, first sight of the text)"]
        for name, (document, _, _, _) in FLOWS.items():
            lines.append(_load(name, document, mine, peer))
        lines += ["expressions, us"]
        for name, expression in EXPRESSIONS.items():
            lines.append(_expression(name, expression, mine, peer))
        return lines
    finally:
        mine.close()
        peer.close()


def _flow(name: str, mine: Subject, peer: Subject) -> str:
    document, value, steps, times = FLOWS[name]
    text = json.dumps(document)
    for subject in (mine, peer):
        subject.ask(do="load", name=name, text=text)
        subject.ask(do="run", name=name, input=value, times=1)
    seconds: dict[str, list[float]] = {"ours": [], "peer": [], "floor": []}
    for _ in range(ROUNDS):
        a = mine.ask(do="run", name=name, input=value, times=times)
        b = peer.ask(do="run", name=name, input=value, times=1)
        assert a["output"] == b["output"], f"{name}: outputs differ"
        seconds["ours"].append(a["seconds"])
        seconds["peer"].append(b["seconds"])
        seconds["floor"].append(_floor(steps))
    us = {key: 1e6 * statistics.median(values) / steps for key, values in seconds.items()}
    ratio, over = us["peer"] / us["ours"], us["ours"] / us["floor"]
    return f"  {name:14} {us['ours']:8.3f} {us['peer']:10.1f} {ratio:6.0f}x {us['floor']:7.3f} {over:7.1f}x"


def _floor(steps: int) -> float:
    """A bare loop with one call a step."""
    nodes: dict[int, int] = {0: 0}

    def step(i: int) -> int:
        nodes[i] = nodes[i - 1] + 1
        return i

    started = time.perf_counter()
    last = 0
    for i in range(1, steps + 1):
        last = step(i)
    elapsed = time.perf_counter() - started
    assert last == steps
    return elapsed


def _load(name: str, document: dict[str, Any], mine: Subject, peer: Subject) -> str:
    count = _count(document)
    found: dict[str, list[float]] = {"ours": [], "peer": []}
    for i in range(ROUNDS):
        text = json.dumps(_fresh(document, i))
        found["ours"].append(mine.ask(do="load", name="load", text=text)["seconds"])
        found["peer"].append(peer.ask(do="load", name="load", text=text)["seconds"])
    us = {key: 1e6 * statistics.median(values) / count for key, values in found.items()}
    return f"  {name:14} {us['ours']:8.1f} {us['peer']:10.1f} {us['peer'] / us['ours']:6.1f}x"


def _fresh(document: dict[str, Any], salt: int) -> dict[str, Any]:
    """The same flow with texts nobody has compiled before."""
    text = json.dumps(document).replace("$INPUT.", f"$INPUT.r{salt}")
    for before in ('"id": "a', '"next": "a', "$NODE.a"):
        text = text.replace(before, f"{before[:-1]}r{salt}a")
    found: dict[str, Any] = json.loads(text)
    return found


def _count(document: dict[str, Any]) -> int:
    inner = sum(_count(n["childFlow"]) for n in document["nodes"] if "childFlow" in n)
    return len(document["nodes"]) + inner


def _expression(name: str, expression: Any, mine: Subject, peer: Subject) -> str:
    ask: Callable[[Subject, int], dict[str, Any]] = lambda subject, times: subject.ask(  # noqa: E731
        do="evaluate", expression=expression, input=EXPRESSION_INPUT, times=times
    )
    for subject in (mine, peer):
        ask(subject, 100)
    found: dict[str, list[float]] = {"ours": [], "peer": []}
    for _ in range(ROUNDS):
        a, b = ask(mine, 20_000), ask(peer, 1_000)
        assert a["output"] == b["output"], f"{name}: {a['output']} != {b['output']}"
        found["ours"].append(a["seconds"])
        found["peer"].append(b["seconds"])
    us = {key: 1e6 * statistics.median(values) for key, values in found.items()}
    return f"  {name:14} {us['ours']:8.3f} {us['peer']:10.1f} {us['peer'] / us['ours']:6.0f}x"
