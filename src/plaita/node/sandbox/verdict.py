"""How a script ended: its result, or what went wrong in words."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any, Final

from plaita.base.errors import InputError
from plaita.base.json import Json, parse, step_of
from plaita.node.sandbox.script import NO_RESULT

STDERR_LINES: Final = 5
STDERR_CHARACTERS: Final = 600


@dataclass(frozen=True, slots=True)
class Verdict:
    """``problem`` is empty when ``run`` returned ``value``; ``path`` is where a result is not JSON.

    ``permanent``: the same would happen again. ``out`` and ``err`` are the ends of what was written.
    """

    value: Json = None
    problem: str = ""
    permanent: bool = False
    path: str | None = None
    out: str = ""
    err: str = ""

    def in_words(self) -> str:
        """The problem, with the last lines that the script wrote to its stderr."""
        lines = "\n".join(self.err.splitlines()[-STDERR_LINES:])[-STDERR_CHARACTERS:]
        return f"{self.problem}; its stderr ends with: {lines}" if lines else self.problem


def lost(how: str) -> Verdict:
    """Nobody could say how it ended."""
    return Verdict(problem=f"the process that watches the script {how}")


def read_verdict(body: bytes, out: str, err: str) -> Verdict:
    """A verdict from the JSON of a supervisor."""
    try:
        told = parse(body)
    except InputError as e:
        return Verdict(problem=e.reason, permanent=True, path="$" + e.path.removeprefix("$.value"), out=out, err=err)
    match told:
        case {"value": value}:
            return Verdict(value, out=out, err=err)
        case {"reason": reason, "steps": steps}:
            return Verdict(problem=reason, permanent=True, path=_path(steps), out=out, err=err)
        case {"raised": text, "line": line, "permanent": permanent}:
            where = "" if line is None else f" (line {line} of the code)"
            return Verdict(problem=f"{text}{where}", permanent=permanent, out=out, err=err)
        case {"exit": code}:
            return Verdict(problem=_ended(code), out=out, err=err)
        case {"limit": "time"}:
            return Verdict(problem="it ran longer than PLAITA_SANDBOX_TIMEOUT allows", out=out, err=err)
        case {"limit": "size"}:
            return Verdict(problem="its result is too large", permanent=True, out=out, err=err)
        case _:
            text = "it wrote to the channel of its result, so that its result cannot be told from a made-up one"
            return Verdict(problem=text, permanent=True, out=out, err=err)


def _path(steps: list[Any]) -> str:
    path = "$"
    for step in steps:
        path = step_of(path, step)
    return path


def _ended(code: int) -> str:
    if code == NO_RESULT:
        return f"it could not hand over a result (exit code {code}): did it close the channel, or run out of memory?"
    if code >= 0:
        return f"its process ended with exit code {code} before run returned"
    if -code == signal.SIGXCPU:
        return "it used more processor time than PLAITA_SANDBOX_TIMEOUT allows"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    hint = "; the machine may be out of memory" if -code == signal.SIGKILL else ""
    return f"its process was ended by {name} before run returned{hint}"
