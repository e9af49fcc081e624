"""A tiny machine for the model: branches of calls, waits, timers and children."""

# mypy: ignore-errors
# ruff: noqa: C901

from __future__ import annotations

from typing import Any, NamedTuple

from tests.sim.protocol.store import C, Wait, bug


class Frame(NamedTuple):
    pc: int = 0
    st: str = "r"  # ready, call open, waiting, backoff, done
    stamp: int = 0  # the time and dice a call was issued under (here: the sequence)
    att: int = 0
    t: int | None = None  # deadline or backoff left
    res: tuple = ()


# A flow is its join, all or any, and its branches; a branch is a list of calls, killers, waits by hand or for an
# event, and children, each with its deadline in ticks.
FLOWS: dict[str, tuple] = {
    "E": ("all", ((("eff",),),)),
    "EE": ("all", ((("eff",), ("eff",)),)),
    "K": ("all", ((("kill",),),)),
    "EK": ("all", ((("eff",), ("eff",), ("eff",)), (("kill",),))),
    "H": ("all", ((("hand", None),),)),
    "HT": ("all", ((("hand", 1), ("eff",)),)),
    "EHT": ("any", ((("eff",),), (("hand", 1),))),
    "E_H": ("all", ((("eff",),), (("hand", None),))),
    "W": ("all", ((("wait", "pay", None, None, False),),)),
    "WT": ("all", ((("wait", "pay", "k", 1, False), ("eff",)),)),
    "WW": ("all", ((("wait", "pay", "k", None, False), ("wait", "pay", "k", None, False)),)),
    "UU": ("all", ((("wait", "pay", None, None, False), ("eff",), ("wait", "pay", None, None, False)),)),
    "W_W": ("all", ((("wait", "pay", "k", None, False),), (("wait", "pay", "k", None, False),))),
    "X": ("all", ((("wait", "pay", "k", 1, True),),)),
    "X_W": ("all", ((("wait", "pay", "k", None, True),), (("wait", "pay", "k", None, False),))),
    "X_X": ("all", ((("wait", "pay", "k", None, True),), (("wait", "pay", "k", None, True),))),
    "EW": ("all", ((("eff",), ("wait", "pay", "k", None, False)),)),
    "P": ("all", ((("child", "E", None),),)),
    "PT": ("any", ((("child", "H", None),), (("hand", None),))),
}


def advance(flow: str, frames: tuple, seq: int, box: tuple, done: tuple, log: tuple) -> tuple:
    """(frames, inputs) -> (frames, closes, arms, spawns, end or None): mailbox, results, timers, forward."""
    join, branches = FLOWS[flow]
    fr, closes, arms, spawns = list(frames), [], [], []

    def wid(b: int) -> tuple:
        return (b, 0) if bug("wait_id_reused") else (b, fr[b].pc)

    def step(b: int, res: Any) -> None:
        fr[b] = Frame(fr[b].pc + 1, "r", res=(*fr[b].res, res))

    for _, kind, w, data in box:
        b = w[0]
        if kind == "timeout":
            continue
        if fr[b].st == "w" and wid(b) == w and (kind == "wake" or next(e[4] for e in log if e[0] == data)):
            closes.append((w, "read" if kind == "wake" else "event", data))
            step(b, data if kind == "wake" else ("ev", data))
    for (b, pc), res in done:
        f = fr[b]
        if f.st == "c" and f.pc == pc:
            if res == "ok" or f.att >= C.retries:
                step(b, res)
            else:
                fr[b] = f._replace(st="b", att=0 if bug("retry_count_lost") else f.att + 1, t=C.backoff)
    over = {w for _, kind, w, _ in box if kind == "timeout"}
    for b, f in enumerate(fr):
        if f.st == "w" and (f.t == 0 or wid(b) in over):
            closes.append((wid(b), "timeout", None))
            step(b, "timeout")
        elif f.st == "b" and f.t == 0:
            fr[b] = f._replace(st="c", t=None)
    for b, ops in enumerate(branches):
        if fr[b].st != "r":
            continue
        if fr[b].pc == len(ops):
            fr[b] = fr[b]._replace(st="d")
            continue
        op = ops[fr[b].pc]
        if op[0] in ("eff", "kill"):
            fr[b] = fr[b]._replace(st="c", stamp=seq)
        else:
            fr[b] = fr[b]._replace(st="w", t=op[1] if op[0] == "hand" else op[2] if op[0] == "child" else op[3])
            w = Wait("event", op[1], op[2], op[4]) if op[0] == "wait" else Wait(op[0])
            arms.append((wid(b), w))
            if op[0] == "child":
                spawns.append((wid(b), op[1]))
    ended = [f.st == "d" for f in fr]
    end = "completed" if all(ended) or (join == "any" and any(ended)) else None
    if end:
        arms, spawns = [], []  # the end itself cuts what is left
    return tuple(fr), tuple(closes), tuple(arms), tuple(spawns), end
