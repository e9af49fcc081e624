"""Records: lists of values whose fields the head of a Lua file names with ``--! record NAME FIELD ...``.

Fields from the first ``FIELD=VALUE`` on have usual values, said in Lua: a list ends before the fields that have theirs
to its end. Those behind ``|`` rarely have another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from plaita.base.json import decode

RARE: Final = "|"
SHORTENED: Final = """local USUAL, SHARED, AT = {}, {}, {}
local function shortened(v, n, always, usual)
while n > always and (v[n] == usual[n] or (type(v[n]) == 'table' and next(v[n]) == nil)) do
v[n], n = nil, n - 1
end
return v
end
"""
"""What the functions of all records use."""


@dataclass(frozen=True, slots=True)
class Record:
    """The first ``always`` fields have no usual value; those from ``common`` on rarely have another."""

    name: str
    fields: tuple[str, ...]
    usual: tuple[str, ...]
    """In Lua; empty where nothing is usual."""
    decoded: tuple[Any, ...]
    """The same here."""
    always: int
    common: int

    def named(self, values: Sequence[Any]) -> dict[str, Any]:
        """A list by the names of its fields."""
        return dict(zip(self.fields, (*values, *self.decoded[len(values) :]), strict=True))

    def lua(self) -> str:
        """``NAME_of(values)`` makes a table of a list, ``values_of_NAME(table)`` the other way round;
        ``AT.NAME`` has the places of the fields.

        Tables are made at once: one that grows is copied on its way. Most have no rare field: what those would be is
        said by a table that all of them share.
        """
        name, common, size = self.name, self.common, len(self.fields)
        pairs = list(zip(self.fields, self.usual, strict=True))
        usuals = ", ".join(f"[{at}] = {usual}" for at, usual in enumerate(self.usual, 1) if usual not in ("", "{}"))
        read = [f"{field} = v[{at}]" + (f" or {usual}" if usual else "") for at, (field, usual) in enumerate(pairs, 1)]
        unread = [f"{field} = {usual}" for field, usual in pairs[common:]]
        written = [f"t.{field}" for field in self.fields]
        plain = " and ".join(_is_usual(field, usual) for field, usual in pairs[common:]) or "true"
        return "\n".join([
            f"USUAL.{name} = {{{usuals}}}",
            f"AT.{name} = {{{', '.join(f'{field} = {at}' for at, field in enumerate(self.fields, 1))}}}",
            f"SHARED.{name} = {{__index = {{{', '.join(unread)}}}}}",
            f"local function {name}_of(v)",
            f"if #v <= {common} then return setmetatable({{{', '.join(read[:common])}}}, SHARED.{name}) end",
            f"return {{{', '.join(read)}}}",
            "end",
            f"local function values_of_{name}(t)",
            f"if {plain} then",
            f"return shortened({{{', '.join(written[:common])}}}, {common}, {self.always}, USUAL.{name})",
            "end",
            f"return shortened({{{', '.join(written)}}}, {size}, {self.always}, USUAL.{name})",
            "end\n",
        ])  # fmt: skip


def read_record(name: str, words: Sequence[str]) -> Record:
    """The record that these words of a head declare."""
    common = words.index(RARE) if RARE in words else len(words)
    declared = [word.partition("=") for word in words if word != RARE]
    usual = tuple(value for _, _, value in declared)
    return Record(
        name,
        tuple(field for field, _, _ in declared),
        usual,
        tuple(decode(value.replace("'", '"') or "null") for value in usual),
        len(list(takewhile(lambda value: not value, usual))),
        common,
    )


def _is_usual(field: str, usual: str) -> str:
    return f"next(t.{field}) == nil" if usual == "{}" else f"t.{field} == {usual}"
