"""Templates to closures: text with rendered slots in it."""

from __future__ import annotations

from plaita.base.json import Json
from plaita.base.limits import RESULT_SIZE_MAX
from plaita.engine.expression.arithmetic import check_room
from plaita.engine.expression.compiled import Run, Site
from plaita.engine.expression.scope import Scope
from plaita.engine.values import OperationError, render


def compile_template(parts: list[str | Run], site: Site) -> Run:
    """The closure of a template whose slots are ``Run`` and whose texts are ``str``."""
    frame = [part if isinstance(part, str) else "" for part in parts]
    slots = [(i, part) for i, part in enumerate(parts) if not isinstance(part, str)]
    if len(slots) == 1 and len(parts) <= 3:
        (position, slot), text = slots[0], frame
        return _one_slot("".join(text[:position]), slot, "".join(text[position + 1 :]), site)
    if len(slots) == 2:
        (i, first), (j, second) = slots
        return _two_slots((first, second), ("".join(frame[:i]), "".join(frame[i:j]), "".join(frame[j:])), site)

    def run(s: Scope) -> Json:
        out = frame.copy()
        try:
            for position, slot in slots:
                value = slot(s)
                out[position] = value if type(value) is str else render(value)
            check_room(sum(map(len, out)))
        except OperationError as e:
            raise site.failure("the template", e) from None
        return "".join(out)

    return run


def _one_slot(before: str, slot: Run, after: str, site: Site) -> Run:
    fixed = len(before) + len(after)

    def run(s: Scope) -> Json:
        value = slot(s)
        try:
            text = value if type(value) is str else render(value)
            check_room(fixed + len(text))
        except OperationError as e:
            raise site.failure("the template", e) from None
        return before + text + after

    return run


def _two_slots(slots: tuple[Run, Run], texts: tuple[str, str, str], site: Site) -> Run:
    (first, second), (before, between, after) = slots, texts
    room = RESULT_SIZE_MAX - len(before) - len(between) - len(after)

    def run(s: Scope) -> Json:
        a, b = first(s), second(s)
        try:
            a = a if type(a) is str else render(a)
            b = b if type(b) is str else render(b)
            if len(a) + len(b) > room:
                check_room(RESULT_SIZE_MAX - room + len(a) + len(b))
        except OperationError as e:
            raise site.failure("the template", e) from None
        return before + a + between + b + after

    return run
