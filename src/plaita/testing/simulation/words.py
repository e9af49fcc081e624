"""Verbs and answers as a line of the trace."""

from __future__ import annotations

from typing import Any

from plaita.ports.runs import Claim, Step, Submission

SHORT_MAX = 300


def say(args: tuple[Any, ...], answer: Any) -> str:
    """What was asked and what came of it."""
    return f"{' '.join(_word(a) for a in args)} -> {_word(answer)}"


def _word(value: Any) -> str:
    match value:
        case Step():
            closes = [(c.wait_id, c.why) for c in value.closes]
            arms = [a.wait_id for a in value.arms]
            generation = value.token.generation
            return f"{value.run_id} #{value.seq} gen {generation} {value.next} {closes=} {arms=} ack={value.ack}"
        case Submission():
            return f"{value.run_id} {value.digest[:8]}"
        case Claim():
            return f"{value.header.run_id} gen {value.token.generation} mail {len(value.mailbox)}"
        case list() if value and isinstance(value[0], Claim):
            return f"[{', '.join(_word(claim) for claim in value)}]"
    text = repr(value)
    return text if len(text) <= SHORT_MAX else f"{text[:SHORT_MAX]}…"
