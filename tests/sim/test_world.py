"""Real workers under everything that can go wrong: no world breaks a rule of the protocol, and the two stores agree.

``PLAITA_SIM_SEEDS`` (a number, or ``from:to``) makes the search longer; ``make sim SEED=n`` reruns one world.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from plaita.testing.loop import VirtualLoop
from plaita.testing.simulation.coverage import never, table
from plaita.testing.simulation.story import Verdict, play
from plaita.testing.simulation.world import KINDS

SEEDS = "60"
SHARD = 5


def shards() -> list[range]:
    first, _, last = os.environ.get("PLAITA_SIM_SEEDS", SEEDS).rpartition(":")  # noqa: TID251 - the length of a search
    begin, end = int(first or 0), int(last)
    return [range(at, min(at + SHARD, end)) for at in range(begin, end, SHARD)]


@pytest.fixture
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shards of this batch, in whatever process, leave their counts."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if base.name.startswith("popen-") else base) / "simulated"
    place.mkdir(exist_ok=True)
    return place


@pytest.mark.timeout(240)
@pytest.mark.parametrize("seeds", shards(), ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}")
def test_no_world_breaks_a_rule_and_the_batch_has_seen_everything(seeds: range, board: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        verdicts = [play(seed, kind) for kind in KINDS]
        for verdict in verdicts:
            counts.update(verdict.counts)
            assert not verdict.violations, in_words(verdict)
        assert len({v.digest for v in verdicts}) == 1, f"seed {seed}: the stores went different ways"
    report(board, seeds, counts)


def report(board: Path, seeds: range, counts: Counter[str]) -> None:
    """The last shard of a whole batch judges what the batch has seen."""
    name = board / f"{seeds.start}.json"
    name.with_suffix(".part").write_text(json.dumps(counts))
    name.with_suffix(".part").rename(name)
    wanted = [board / f"{shard.start}.json" for shard in shards()]
    if not all(path.exists() for path in wanted):
        return
    whole: Counter[str] = Counter()
    for path in wanted:
        whole.update(json.loads(path.read_text()))
    first, last = shards()[0].start, shards()[-1].stop - 1
    sys.stdout.write(f"\nworlds {first} to {last}, each on {', '.join(KINDS)}:\n{table(whole.items())}\n")
    assert not never(whole), f"worlds {first} to {last} have never seen: {', '.join(never(whole))}"


def in_words(verdict: Verdict) -> str:
    return f"{verdict.report}\n\nmake sim SEED={verdict.seed}   ({verdict.backend})"


def test_a_world_takes_the_same_steps_in_every_process() -> None:
    code = "from plaita.testing.simulation.story import play; print(play(1).digest)"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_world_that_is_over_leaves_nothing_behind() -> None:
    gc.collect()
    before = loops()
    play(3)
    gc.collect()
    assert loops() == before


def loops() -> int:
    return sum(isinstance(thing, VirtualLoop) for thing in gc.get_objects())
