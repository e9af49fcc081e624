"""The event loop of a command: which error leaves it."""

from __future__ import annotations

import asyncio

import pytest

from plaita.base.errors import NotFound, Unavailable
from plaita.cli.turning import turn


async def failing(*errors: BaseException) -> None:
    async def fail(error: BaseException) -> None:
        raise error

    async with asyncio.TaskGroup() as outer:

        async def nested() -> None:
            async with asyncio.TaskGroup() as inner:
                for error in errors:
                    inner.create_task(fail(error))

        outer.create_task(nested())


def test_an_intentional_error_leaves_the_groups_of_tasks_it_was_raised_in() -> None:
    with pytest.raises(NotFound, match="nosuch"):
        turn(failing(NotFound("nosuch")))


def test_of_several_intentional_errors_the_first_one_is_told() -> None:
    with pytest.raises(Unavailable, match="one"):
        turn(failing(Unavailable("one"), NotFound("two")))


def test_what_nobody_raised_on_purpose_is_not_hidden_behind_another_error() -> None:
    with pytest.raises(ExceptionGroup) as raised:
        turn(failing(Unavailable("one"), KeyError("two")))
    assert raised.group_contains(KeyError)
