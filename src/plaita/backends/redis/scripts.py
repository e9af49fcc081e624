"""The verbs as Lua scripts: put together from the files in ``lua/``, checked against the contract in their head.

A file begins with ``--! verb NAME`` (or ``--! fragment NAME``), ``--! class allow-oom | deny-oom``, ``--! uses FRAGMENT
...`` and ``--! args NAME ... LIST* ...``. A script is the clock, the limits, the keys and every fragment it needs, each
once, and then its own text; nothing else reaches it than its arguments.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from plaita.backends.redis.keys import PREFIX, lua_functions
from plaita.backends.rows import Limits

Arg = str | bytes | int
ListArg = Sequence[Arg]

SERVER_CLOCK = """local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""
GIVEN_CLOCK = "local now = tonumber(ARGV[#ARGV])\n"
"""For a store whose time comes from the caller, as the last argument of every call."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file: what its head says, and its text."""

    name: str
    is_verb: bool
    oom: Literal["allow-oom", "deny-oom"]
    uses: tuple[str, ...]
    args: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """A verb ready to be sent. ``text`` is what the server runs, ``sha`` how it is called."""

    name: str
    text: str
    sha: str
    plan: tuple[tuple[str, bool], ...]
    """Name of each argument, and whether it is a list."""

    def pack(self, **values: Any) -> list[Arg]:
        """The arguments in the order of the contract; ``None`` and ``False`` are empty, ``True`` is ``1``.

        Lists go as they are: their items are texts, bytes and numbers.
        """
        packed: list[Arg] = []
        for name, is_list in self.plan:
            value = values[name]
            if is_list:
                packed.append(len(value))
                packed += value
            else:
                packed.append("" if value is None or value is False else 1 if value is True else value)
        if len(values) != len(self.plan):
            strange = values.keys() - {name for name, _ in self.plan}
            raise TypeError(f"the verb {self.name} takes no {', '.join(sorted(strange))}")
        return packed


class Scripts:
    """Every verb, for one prefix, one set of limits and one kind of clock."""

    def __init__(self, limits: Limits, *, prefix: str = PREFIX, clock: str = SERVER_CLOCK) -> None:
        self._head, self._prefix = clock + _limits(limits), prefix
        self._verbs = {source.name: self._script(source) for source in sources().values() if source.is_verb}

    def __getitem__(self, verb: str) -> Script:
        return self._verbs[verb]

    def by_sha(self) -> dict[str, Script]:
        return {script.sha: script for script in self._verbs.values()}

    def _script(self, source: Source) -> Script:
        flags = " flags=allow-oom" if source.oom == "allow-oom" else ""
        own = "".join([*(sources()[name].text for name in _needed(source.uses)), source.text])
        keys = lua_functions(own, self._prefix)
        text = "".join([f"#!lua{flags}\n", self._head, keys, _arguments(source.args), own])
        plan = tuple((name.rstrip("*"), name.endswith("*")) for name in source.args)
        return Script(source.name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), plan)


@cache
def sources() -> dict[str, Source]:
    """The files of ``lua/`` by name."""
    folder = files(__package__) / "lua"
    found = [read_source(file.name, file.read_text()) for file in folder.iterdir() if file.name.endswith(".lua")]
    return {source.name: source for source in found}


def read_source(file: str, text: str) -> Source:
    """Read the contract in the head of a file; ``ValueError`` when it is not one."""
    head = [line.removeprefix("--!").split() for line in text.splitlines() if line.startswith("--!")]
    said = {words[0]: tuple(words[1:]) for words in head}
    kind = "verb" if "verb" in said else "fragment"
    name = f"{file.removesuffix('.lua')}"
    if said.get(kind) != (name,):
        raise ValueError(f"{file}: the head must begin with --! {kind} {name}")
    oom = said.get("class", ("allow-oom",))[0]
    if oom not in ("allow-oom", "deny-oom") or (kind == "verb" and not {"class", "args"} <= said.keys()):
        raise ValueError(f"{file}: a verb says its class (allow-oom or deny-oom) and its arguments")
    return Source(name, kind == "verb", "deny-oom" if oom == "deny-oom" else "allow-oom", said.get("uses", ()),
                  said.get("args", ()), text)  # fmt: skip


def _needed(names: Sequence[str]) -> list[str]:
    """The fragments in an order in which each comes after what it uses."""
    found: list[str] = []

    def add(name: str) -> None:
        if name not in found:
            for other in sources()[name].uses:
                add(other)
            found.append(name)

    for name in names:
        add(name)
    return found


def _arguments(names: Sequence[str]) -> str:
    lines = [
        "local args, taken = {}, 0",
        "local function next_arg() taken = taken + 1 return ARGV[taken] end",
        "local function next_list() local list = {} for i = 1, tonumber(next_arg()) do list[i] = next_arg() end"
        " return list end",
    ]
    for name in names:
        lines.append(f"args.{name[:-1]} = next_list()" if name.endswith("*") else f"args.{name} = next_arg()")
    return "\n".join(lines) + "\n"


def _limits(limits: Limits) -> str:
    values = {
        "lease": limits.lease.lease_ms,
        "gap": limits.lease.gap_ms,
        "grace": limits.lease.grace_ms,
        "tries_max": limits.tries_max,
        "lost_max": limits.lost_max,
        "cap": "false" if limits.cap is None else limits.cap,
        "chunk": limits.chunk,
        "outbox_per_claim": limits.outbox_per_claim,
        "start_every": limits.start_every,
        "failures_max": limits.failures_max,
        "wakeups_max": limits.wakeups_max,
        "tombstone": limits.tombstone_ms,
        "generation": limits.generation_ms,
        "row_ttl": limits.row_ttl_ms,
        "message_age": limits.message_age_ms,
    }
    return f"local LIMITS = {{{', '.join(f'{name} = {value}' for name, value in values.items())}}}\n"
