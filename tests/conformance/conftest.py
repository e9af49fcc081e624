"""What the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """Looks at the server beside the store; answers are texts."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as found:
        yield found
