"""Starts that come as messages."""

from __future__ import annotations

from plaita.base.ids import derived_id
from plaita.ports.inbox import Started
from plaita.ports.runs import NotRetryable, Submitted
from plaita.ports.values import RunId
from plaita.testing.conformance.inbox import MESSAGE, START, publish_flows, send, word
from plaita.testing.conformance.stage import INPUT, RUN, Contract, Stage, start


class StartMessageContract(Contract):
    """Starts that come as messages."""

    async def test_a_start_runs_the_latest_version_or_the_one_it_names(self, stage: Stage) -> None:
        await publish_flows(stage)
        for run_id, version, closure in (("a", None, "closure"), ("b", "", "closure"), ("c", "2", "closure2")):
            await send(stage, {**START, "execution_id": run_id, "version": version, "queue": run_id})
            [claim] = await stage.take(queues=(run_id,))
            assert (claim.header.closure, claim.header.input, claim.header.flow_id) == (closure, INPUT, "flow")

    async def test_starts_with_one_key_are_one_start_and_each_id_finds_it(self, stage: Stage) -> None:
        await publish_flows(stage)
        found = [
            word(await send(stage, {**START, "execution_id": run_id, "dedup_key": "D"})) for run_id in ("u", "v", "u")
        ]
        assert found == ["Started", "Started again", "Started again"]
        assert [claim.header.run_id for claim in await stage.take(9)] == ["u"]
        view = await stage.backend.run(RunId("v"))
        assert view is not None and view.run_id == "u"
        other = {**START, "execution_id": "w", "dedup_key": "D", "params": {"x": 2}}
        assert word(await send(stage, other)) == "conflict"

    async def test_a_key_and_the_ids_that_came_with_it_are_free_once_the_run_is_gone(self, stage: Stage) -> None:
        await publish_flows(stage)
        for run_id in ("u", "v"):
            await send(stage, {**START, "execution_id": run_id, "dedup_key": "D"})
        await stage.backend.cancel(RunId("v"))
        await stage.backend.delete(RunId("v"))
        assert await stage.backend.run(RunId("u")) is None
        assert word(await send(stage, {**START, "execution_id": "v", "dedup_key": "D"})) == "Started"

    async def test_a_start_of_a_flow_that_is_not_published_ends_at_once_and_says_why(self, stage: Stage) -> None:
        await publish_flows(stage)
        for _ in range(2):
            assert word(await send(stage, {**START, "execution_id": "d", "version": "3"})).startswith("Started")
        view = await stage.backend.run(RunId("d"))
        assert view is not None and view.status == "error"
        assert b"flow 'flow' version '3' is not published" in (view.error or b"")
        assert await stage.take() == []
        assert await stage.backend.reopen(RunId("d")) == NotRetryable("no_definition")

    async def test_starts_of_unknown_flows_are_told_apart_by_name_version_and_input(self, stage: Stage) -> None:
        unknown = {**START, "flow_id": "none", "execution_id": "u"}
        others = ({**unknown, "flow_id": "none2"}, {**unknown, "version": "2"}, {**unknown, "params": {}})
        assert word(await send(stage, unknown)) == "Started"
        assert [word(await send(stage, other)) for other in others] == ["conflict"] * 3
        await stage.backend.publish_flow("none", "1", "closure")
        assert word(await send(stage, unknown)) == "Started again"
        view = await stage.backend.run(RunId("u"))
        assert view is not None and (view.flow_id, view.status) == ("none", "error")

    async def test_a_start_without_params_has_an_empty_input(self, stage: Stage) -> None:
        await publish_flows(stage)
        await send(stage, {**START, "params": None})
        [claim] = await stage.take()
        assert claim.header.input == b"{}"

    async def test_a_start_delivered_again_after_a_new_version_is_the_same_start(self, stage: Stage) -> None:
        await publish_flows(stage)
        await send(stage, START)
        await stage.backend.publish_flow("flow", "3", "closure3")
        assert await send(stage, START) == Started(RUN, deduplicated=True)

    async def test_a_start_by_message_and_one_by_call_are_the_same_start(self, stage: Stage) -> None:
        await publish_flows(stage)
        await send(stage, START)
        answer = await stage.backend.submit(start())
        assert isinstance(answer, Submitted)
        assert answer.deduplicated

    async def test_a_start_without_an_id_is_named_after_its_message(self, stage: Stage) -> None:
        await publish_flows(stage)
        body = {"type": "start", "flow_id": "flow"}
        named = RunId(derived_id("message", MESSAGE))
        assert await send(stage, body) == Started(named, deduplicated=False)
        assert await send(stage, body) == Started(named, deduplicated=True)
        assert word(await send(stage, body, "m2")) == "Started"

    async def test_starts_with_one_dedup_key_are_one_run_of_their_tenant(self, stage: Stage) -> None:
        await publish_flows(stage)
        body = {"type": "start", "flow_id": "flow", "dedup_key": "order 7"}
        first = await send(stage, body)
        assert isinstance(first, Started)
        assert await send(stage, body, "m2") == Started(first.run_id, deduplicated=True)
        assert word(await send(stage, {**body, "params": {"y": 2}}, "m3")) == "conflict"
        assert word(await send(stage, {**body, "tenant_id": "other"}, "m4")) == "Started"
