"""Messages that could not be carried out: list them, look at one, send one again, throw one away."""

from __future__ import annotations

from plaita.base.errors import Conflict, InputError, NotFound
from plaita.base.ids import check_texts, check_whole
from plaita.base.json import Json, parse
from plaita.base.moment import iso
from plaita.control.shapes import Shape
from plaita.ports.backend import Backend
from plaita.ports.inbox import DeadLetter, Deed, NoLetter, NotReplayed, Replayed, Replaying

LIMIT_MAX = 1_000
_HINTS = {
    "already_replayed": "--force sends it once more",
    "not_replayable": "plaita dlq show {letter} shows it; a corrected message is a new one",
    "tenant_mismatch": "leave --tenant out",
    "execution_id_mismatch": "leave --execution out",
}


async def dead_letters(store: Backend, *, limit: int = 50, cursor: str = "") -> Shape:
    """Dead letters, oldest first: ``{"items": […], "next": cursor or null}``."""
    check_whole(limit, "limit", 1, LIMIT_MAX)
    check_texts(cursor=cursor)
    letters, following = await store.dead_letters(limit=limit, cursor=cursor)
    return {"items": [letter_shape(letter) for letter in letters], "next": following or None}


async def show(store: Backend, letter_id: str) -> Shape:
    """One dead letter with its message and with what was done with it. Raises ``NotFound``."""
    check_texts(letter_id=letter_id)
    found = await store.dead_letter(letter_id)
    if found is None:
        raise _missing(store, letter_id)
    letter, deeds = found
    return {**letter_shape(letter), "message": _body(letter), "history": [_deed_shape(deed) for deed in deeds]}


async def replay(store: Backend, asked: Replaying) -> Shape:
    """Send the message of a dead letter again: ``{"letter_id", "message_id", "execution_id"}``.

    Raises ``NotFound``, and ``Conflict`` with the documented word when it is not sent.
    """
    check_texts(letter_id=asked.letter_id, actor=asked.actor, tenant=asked.tenant, execution_id=asked.execution_id)
    answer = await store.replay(asked)
    match answer:
        case Replayed(message_id, run_id):
            return {"letter_id": asked.letter_id, "message_id": message_id, "execution_id": run_id or None}
        case NotReplayed(reason, detail):
            hint = _HINTS.get(reason, "plaita dlq show {letter} shows it").format(letter=asked.letter_id)
            raise Conflict(f"dead letter {asked.letter_id} is not sent again ({reason}): {detail}", hint)
    raise _missing(store, asked.letter_id)


async def discard(store: Backend, letter_id: str, actor: str) -> None:
    """Throw a dead letter away. Raises ``NotFound``."""
    check_texts(letter_id=letter_id, actor=actor)
    if isinstance(await store.discard(letter_id, actor), NoLetter):
        raise _missing(store, letter_id)


def letter_shape(letter: DeadLetter) -> Shape:
    """A dead letter: ``letter_id message_id reason detail died_at type execution_id flow_id tenant replays``."""
    body = _body(letter)
    said = body if isinstance(body, dict) else {}
    named = {name: said.get(name) for name in ("type", "execution_id", "flow_id")}
    return {
        "letter_id": letter.letter_id,
        "message_id": letter.message.message_id,
        "reason": letter.reason,
        "detail": letter.detail,
        "died_at": iso(letter.died_ms),
        **{name: value if isinstance(value, str) else None for name, value in named.items()},
        "tenant": said.get("tenant_id") if isinstance(said.get("tenant_id"), str) else None,
        "replays": letter.replays,
    }


def _body(letter: DeadLetter) -> Json:
    """The message as JSON; as text where it is none."""
    try:
        return parse(letter.message.body)
    except InputError:
        return letter.message.body.decode(errors="replace")


def _deed_shape(deed: Deed) -> Shape:
    return {
        "at": iso(deed.at_ms), "action": deed.action, "by": deed.actor, "result": deed.result, "force": deed.force,
        "message_id": deed.message_id or None,
    }  # fmt: skip


def _missing(store: Backend, letter_id: str) -> NotFound:
    return NotFound(f"there is no dead letter {letter_id!r} in {store.name}", "plaita dlq ls lists dead letters")
