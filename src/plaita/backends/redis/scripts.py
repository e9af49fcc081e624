"""The verbs as functions in Lua: one library, put together from the files in ``lua/``, checked against their heads.

A file begins with ``--! verb NAME`` (or ``--! fragment NAME``), ``--! class allow-oom | deny-oom``, ``--! uses FRAGMENT
...`` and ``--! args NAME ... LIST* ...``. The library is limits, keys, fragments, each after those it uses, and verbs.
What a fragment names in ``--! state NAME=VALUE ...`` begins anew with every call, as the clock and the arguments do;
nothing else stays from one call to the next. ``--! record NAME FIELD ...``, on as many lines as needed, declares a
record.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import starmap, takewhile
from typing import Any, Final, Literal

from plaita.backends.limits import Limits, Streams
from plaita.backends.redis.keys import NAMES, PREFIX, lua_table, lua_text
from plaita.backends.redis.records import SHORTENED, Record, read_record

Arg = str | bytes | int
ListArg = Sequence[Arg]

LIBRARIES: Final = "plaita_"
"""How the names of all libraries of a store begin."""
_KEY: Final = re.compile(rf"(?<![.\w'\"])({'|'.join(NAMES)})_key\b")
SERVER_CLOCK = """local clock = redis.call('TIME')
now = clock[1] * 1000 + math.floor(clock[2] / 1000)
"""
GIVEN_CLOCK = "now = tonumber(ARGV[#ARGV])\n"
"""For a store whose time comes from the caller, as the last argument of every call."""
ARGUMENTS: Final = """local function next_arg() taken = taken + 1 return ARGV[taken] end
local function next_list()
local first, count = taken + 2, tonumber(ARGV[taken + 1])
taken = taken + 1 + count
if count <= 1000 then return {unpack(ARGV, first, taken)} end
local list = {}
for i = first, taken do list[#list + 1] = ARGV[i] end
return list
end"""
"""A list comes as the number of its items and these. Lua unpacks a few thousand values at most."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file: what its head says, and its text."""

    name: str
    is_verb: bool
    oom: Literal["allow-oom", "deny-oom"]
    uses: tuple[str, ...]
    args: tuple[str, ...]
    state: tuple[str, ...]
    records: tuple[Record, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Script:
    """A verb ready to be sent: ``function`` is its name on a server that has loaded the library ``text``."""

    name: str
    function: str
    text: str
    plan: tuple[tuple[str, bool], ...]
    """Name of each argument, and whether it is a list."""

    def pack(self, values: Mapping[str, Any]) -> list[Arg]:
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
    """Every verb, for one prefix, one set of limits and one kind of clock.

    ``name`` is the one under which the server keeps them, made of what they say: two releases, and processes with
    other limits, have libraries of their own.
    """

    def __init__(self, limits: Limits, *, prefix: str = PREFIX, clock: str = SERVER_CLOCK) -> None:
        head = [
            _limits(limits),
            _group(limits.streams),
            lua_table(prefix, limits.streams.keys(prefix)),
            _begin(clock),
        ]
        fragments = [_fragment(sources()[name]) for name in _needed(sorted(sources())) if not sources()[name].is_verb]
        verbs = [source for source in sources().values() if source.is_verb]
        body = "".join([*head, *fragments, *(_function(source) for source in verbs)])
        self.name = f"{LIBRARIES}{hashlib.sha256(body.encode()).hexdigest()[:16]}"
        text = f"#!lua name={self.name}\n{body}" + "".join(_registered(self.name, source) for source in verbs)
        self._verbs = {source.name: self._script(source, text) for source in verbs}

    def __getitem__(self, verb: str) -> Script:
        return self._verbs[verb]

    def _script(self, source: Source, text: str) -> Script:
        plan = tuple((name.rstrip("*"), name.endswith("*")) for name in source.args)
        return Script(source.name, f"{self.name}_{source.name}", text, plan)


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
    declared: dict[str, tuple[str, ...]] = {}
    for words in head:
        if words[0] == "record":
            declared[words[1]] = (*declared.get(words[1], ()), *words[2:])
    records = tuple(starmap(read_record, declared.items()))
    return Source(name, kind == "verb", "deny-oom" if oom == "deny-oom" else "allow-oom", said.get("uses", ()),
                  said.get("args", ()), said.get("state", ()), records, text)  # fmt: skip


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


def _begin(clock: str) -> str:
    """What begins anew with every call."""
    state = [word.split("=", 1) for source in sources().values() for word in source.state]
    names = [name for name, _ in state]
    return "\n".join([
        f"local {', '.join(['ARGV', 'now', 'args', 'taken', *names])}",
        ARGUMENTS,
        "local function begin(given)",
        "ARGV = given",
        clock + "\n".join(f"{name} = {value}" for name, value in state),
        "end",
        "local VERB = {}",
        SHORTENED,
    ])  # fmt: skip


def _fragment(source: Source) -> str:
    return "".join([*(record.lua() for record in source.records), _keyed(source.text)])


def _function(source: Source) -> str:
    """A verb as a function; it reads its arguments in the order of its contract."""
    plain = list(takewhile(lambda name: not name.endswith("*"), source.args))
    values = [f"{name} = ARGV[{at}]" for at, name in enumerate(plain, 1)]
    # A table is filled from left to right.
    for name in source.args[len(plain) :]:
        values.append(f"{name[:-1]} = next_list()" if name.endswith("*") else f"{name} = next_arg()")
    lines = [f"function VERB.{source.name}()", f"taken = {len(plain)}", f"args = {{{', '.join(values)}}}"]
    return "\n".join([*lines, _keyed(source.text), "end\n"])


def _registered(library: str, source: Source) -> str:
    flags = "'allow-oom'" if source.oom == "allow-oom" else ""
    return (
        f"redis.register_function{{function_name = '{library}_{source.name}', flags = {{{flags}}}, "
        f"callback = function(_, given) begin(given) return VERB.{source.name}() end}}\n"
    )


@cache
def _keyed(text: str) -> str:
    """Functions of keys are in one table: a library may not name more than 200 locals."""
    return _KEY.sub(r"KEY.\1", text)


def _limits(limits: Limits) -> str:
    values = {
        "lease": limits.lease.lease_ms,
        "gap": limits.lease.gap_ms,
        "grace": limits.lease.grace_ms,
        "tries_max": limits.tries_max,
        "lost_max": limits.lost_max,
        "cap": "false" if limits.cap is None else limits.cap,
        "chunk": limits.chunk,
        "chunk_deferred": limits.chunk_deferred,
        "outbox_per_claim": limits.outbox_per_claim,
        "start_every": limits.start_every,
        "failures_max": limits.failures_max,
        "wakeups_max": limits.wakeups_max,
        "tombstone": limits.tombstone_ms,
        "generation": limits.generation_ms,
        "row_ttl": limits.row_ttl_ms,
        "history": limits.history_max,
        "mirrored": "true" if limits.mirrored else "false",
        "message_age": limits.message_age_ms or "math.huge",
        "family": lua_text(limits.fleet.family),
        "epoch": lua_text(limits.fleet.epoch),
    }
    return f"local LIMITS = {{{', '.join(f'{name} = {value}' for name, value in values.items())}}}\n"


def _group(streams: Streams) -> str:
    return f"local GROUP, GROUP_BEGIN = {lua_text(streams.group)}, {lua_text(streams.begin)}\n"
