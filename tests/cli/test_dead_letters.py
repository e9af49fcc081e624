"""``plaita dlq``: what a producer sent and nobody could carry out."""

from __future__ import annotations

import asyncio

import pytest

from plaita.backends.sqlite import SqliteBackend
from tests.cli.shell import Shell

pytestmark = pytest.mark.timeout(60)

BODIES = (
    b'{"type": "resume", "execution_id": "gone", "wait_id": "w", "data": 1, "flow_id": "order"}',
    b"[",
)


async def fill(shell: Shell) -> None:
    path = shell.folder / ".plaita" / "plaita.db"
    path.parent.mkdir(exist_ok=True)
    store = SqliteBackend(path)
    for number, body in enumerate(BODIES, 1):
        await store.offer(f"m{number}", body)
    await store.accept(9)
    await store.close()


@pytest.fixture
def refused(shell: Shell) -> Shell:
    """A store with two dead letters: one for an execution that is not there, one that makes no sense."""
    asyncio.run(fill(shell))
    return shell


def test_dead_letters_are_listed_page_by_page(refused: Shell) -> None:
    page = refused.plaita("dlq ls --json --limit 1").json
    [first] = page["items"]
    assert (first["letter_id"], first["reason"], first["execution_id"], first["replays"]) == ("1", "no_run", "gone", 0)
    rest = refused.plaita(f"dlq ls --json --after {page['next']}").json
    assert ([one["reason"] for one in rest["items"]], rest["next"]) == (["invalid_payload"], None)
    assert refused.plaita("dlq ls --after nonsense").code == 2


def test_a_letter_shows_its_message_and_what_was_done_with_it(refused: Shell) -> None:
    refused.plaita("dlq replay 1 --by ann")
    found = refused.plaita("dlq show 1 --json").json
    assert found["message"]["wait_id"] == "w"
    [deed] = found["history"]
    assert (deed["action"], deed["by"], deed["result"], deed["message_id"]) == ("replay", "ann", "ok", "m1")
    told = refused.plaita("dlq show 1").out
    assert "there is no execution 'gone'" in told and "replay by ann: ok" in told


def test_a_letter_is_sent_again_once_unless_forced(refused: Shell) -> None:
    assert refused.plaita("dlq replay 1 --json").json["items"][0]["message_id"] == "m1"
    again = refused.plaita("dlq replay 1")
    assert (again.code, "already_replayed" in again.err, "--force" in again.err) == (1, True, True)


def test_of_several_letters_one_that_is_refused_stops_no_other(refused: Shell) -> None:
    answer = refused.plaita("dlq replay 2 1 7 --json")
    assert answer.code == 1
    first, second, third = answer.json["items"]
    assert ("not_replayable" in first["error"]["message"], second["message_id"]) == (True, "m1")
    assert "there is no dead letter '7'" in third["error"]["message"]


def test_a_discarded_letter_is_gone(refused: Shell) -> None:
    assert refused.plaita("dlq discard 2").code == 0
    assert [one["letter_id"] for one in refused.plaita("dlq ls --json").json["items"]] == ["1"]
    assert refused.plaita("dlq discard 2").code == 4
    assert refused.plaita("dlq show 2").code == 4


def test_a_store_without_dead_letters_says_so(refused: Shell) -> None:
    refused.plaita("dlq discard 1 2")
    assert "no dead letters" in refused.plaita("dlq ls").err


def test_only_a_letter_that_can_be_sent_again_offers_it(refused: Shell) -> None:
    whole, broken = refused.plaita("dlq show 1").err, refused.plaita("dlq show 2").err
    assert whole == "plaita dlq replay 1 sends it again, plaita dlq discard 1 throws it away\n"
    assert broken == "plaita dlq discard 2 throws it away\n"


def test_dead_letters_go_with_the_executions_of_their_age(refused: Shell) -> None:
    kept, gone = (refused.plaita(f"prune --older-than {days}").out for days in (1, 0))
    assert (kept[:1], gone[:1]) == ("0", "0") and "dead letters as old" in gone
    assert "no dead letters" in refused.plaita("dlq ls").err
