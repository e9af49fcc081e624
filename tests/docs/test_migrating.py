"""The page about migrating does what it says, on what an installation of the published system left."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import redis

from tests.cli.shell import ROOT, Shell
from tests.support.published import restore

PAGE = (ROOT / "docs" / "guide" / "migrate-from-0.63.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- commands: adopted -->\n```sh\n(.*?)```", re.DOTALL)


def test_the_commands_of_the_page_take_over_what_can_be(tmp_path: Path, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        restore(client)
    reader = replace(Shell(tmp_path), variables={"PLAITA_STORE": redis_url})
    (block,) = BLOCK.findall(PAGE)
    looked, done = (reader.plaita(line.removeprefix("plaita ")) for line in block.splitlines())
    assert "waits  paid  suspended  take over" in looked.out
    assert "waits  paid  suspended  taken over" in done.out
    assert (looked.code, done.code) == (1, 1)
    verdicts = {line.split("  ")[3].partition(":")[0] for line in done.out.splitlines()}
    assert verdicts == {"taken over", "running", "no definition", "other definition", "unreadable"}
    assert verdicts | {"ended", "ours", "refused"} == set(re.findall(r"^\| `([a-z ]+)` \|", PAGE, re.MULTILINE))
    again = reader.plaita("adopt --json").json
    assert (again["counts"]["ours"], again["counts"]["ended"]) == (6, 1)


def test_there_is_nothing_to_take_over_on_another_store(tmp_path: Path) -> None:
    reader = Shell(tmp_path)
    reader.plaita("prune")
    answer = reader.plaita("adopt --store memory:")
    assert answer.code == 2
    assert "are on Redis" in answer.err
