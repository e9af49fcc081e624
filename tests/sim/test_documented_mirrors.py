"""Whatever is done to a store on Redis, in any order: what operators see is what the headers say."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest
import redis
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, run_state_machine_as_test

from plaita.backends.redis.codec import Stored, stored_of
from plaita.ports.values import STATUSES
from tests.sim.test_agreement_machine import AgreementMachine

MADE_OF_RUNS = (
    "execution:lease:", "execution:fence:", "execution:nofail:", "execution:g1wakeups:", "execution:",
)  # fmt: skip
KEPT = ("execution:fencegen:", "execution:index")


class WatchedMachine(AgreementMachine):
    """Looks at the documented keys after every step."""

    client: ClassVar[Any]

    @invariant()
    def the_documented_keys_say_what_the_headers_say(self) -> None:
        if self.stores is None:
            return
        ids = [name for status in STATUSES for name in self.client.zrange(f"plaita:runs:status:{status}", 0, -1)]
        for run_id in ids:
            self._look_at(run_id, stored_of(run_id, self.client.hget(f"plaita:run:{run_id}", "h").encode()))
        assert self._named() <= set(ids)
        assert set(self.client.zrange("plaita:execution:index", 0, -1)) == set(ids)

    def _look_at(self, run_id: str, stored: Stored) -> None:
        text = self.client.get(f"plaita:execution:{run_id}")
        row, header = json.loads(text), stored.row
        assert text.startswith(f'{{"status":"{header.status}",')
        assert (row["end_time"] is None) == (header.ended is None)
        assert row["error"] is None or header.status == "error"
        lease, fence = self.client.mget(f"plaita:execution:lease:{run_id}", f"plaita:execution:fence:{run_id}")
        if header.nonce is None:
            assert (lease, fence) == (None, None)
            return
        generation = str(header.generation)
        assert (fence, self.client.get(f"plaita:execution:fencegen:{run_id}")) == (generation, generation)
        assert lease is None or lease.endswith(f":{generation}")

    def _named(self) -> set[str]:
        """Runs that any key names that goes with its run."""
        found = {name.removeprefix("plaita:") for name in self.client.scan_iter("plaita:execution:*")}
        left = {name for name in found if not name.startswith(KEPT)}
        return {next(name.removeprefix(p) for p in MADE_OF_RUNS if name.startswith(p)) for name in left}


@pytest.mark.timeout(300)
def test_the_documented_keys_follow_every_order_of_steps(redis_of_session: str) -> None:
    with redis.Redis.from_url(redis_of_session, decode_responses=True) as found:

        class OnServer(WatchedMachine):
            redis_url = redis_of_session
            client = found

        run_state_machine_as_test(
            OnServer, settings=settings(stateful_step_count=40, max_examples=10, phases=[Phase.generate])
        )
