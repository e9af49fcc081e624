"""What the handed cases are tried with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from plaita.backends.redis import RedisBackend
from plaita.backends.sqlite import SqliteBackend
from tests.spec.handed_shop import Counter, Shop
from tests.support.http_stub import Stub, serving


@pytest.fixture
def counter() -> Counter:
    return Counter()


@pytest.fixture
def stub(counter: Counter) -> Iterator[Stub]:
    with serving(counter.answer) as running:
        yield running


@pytest.fixture(params=["sqlite", "redis"])
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """A shop on each store; at the end its own auditor finds nothing."""
    if request.param == "sqlite":
        shop = Shop(SqliteBackend(tmp_path / "store.db"))
    else:
        shop = Shop(RedisBackend(request.getfixturevalue("redis_url")))
    yield shop
    assert await shop.store.audit() == []
    await shop.store.close()
