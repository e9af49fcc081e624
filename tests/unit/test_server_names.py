"""Documented server names that need no Redis."""

from __future__ import annotations

import asyncio

import pytest

from plaita.base.errors import NotSupported
from plaita.server.control import ControlCommand
from plaita.server.execution_lease import NullExecutionLease, holder_instance_id, new_holder_token
from plaita.server.factory import create_storage_component
from plaita.server.registry import ServiceInfo
from plaita.server.tenant_context import (
    current_tenant,
    reset_current_tenant,
    set_current_tenant,
    tenant_namespace,
)


@pytest.mark.parametrize(("tenant", "namespace"), [
    (None, "plaita"), ("", "plaita"), ("default", "plaita"), ("acme", "plaita:acme"),
])  # fmt: skip
def test_the_default_tenant_has_the_plain_prefix(tenant: str | None, namespace: str) -> None:
    assert tenant_namespace(tenant) == namespace


def test_a_tenant_holds_until_it_is_reset() -> None:
    assert current_tenant() == "default"
    token = set_current_tenant("acme", source="explicit")
    assert current_tenant() == "acme"
    reset_current_tenant(token)
    assert current_tenant() == "default"


async def test_a_tenant_of_one_task_is_not_seen_by_another() -> None:
    async def work(tenant: str | None) -> str:
        if tenant:
            set_current_tenant(tenant)
        await asyncio.sleep(0)
        return current_tenant()

    assert [*await asyncio.gather(work("acme"), work(None))] == ["acme", "default"]


@pytest.mark.parametrize("given", [{}, {"file": "orders.db"}])
def test_a_storage_in_a_file_needs_the_path_of_the_file(given: dict[str, str]) -> None:
    with pytest.raises(NotSupported, match="takes path, not"):
        create_storage_component("sqlite", "flow", **given)


def test_a_service_describes_itself_and_is_read_again() -> None:
    service = ServiceInfo("i1", "worker", "host", metadata={"a": 1}, active_tasks=2)
    assert ServiceInfo.from_json(service.to_json()) == service
    assert ServiceInfo.from_dict({**service.to_dict(), "unknown": 1}) == service
    assert service.status == "starting" and service.start_time is not None


def test_a_command_keeps_what_it_does_not_know() -> None:
    command = ControlCommand.from_json('{"command": "stop", "graceful": false, "reason": "update"}')
    assert (command.command, command.graceful, command.extra) == (ControlCommand.STOP, False, {"reason": "update"})
    assert command.timestamp is not None


def test_the_lease_of_a_single_process_is_always_granted() -> None:
    lease = NullExecutionLease()
    assert lease.try_acquire("e", "h", 1) and lease.renew("e", "h", 1) and lease.release("e", "h")
    assert lease.get_holder("e") is None


def test_the_name_of_a_holder_tells_its_instance() -> None:
    assert holder_instance_id(new_holder_token("worker", "i1")) == "i1"
    assert [holder_instance_id(name) for name in (new_holder_token(), "x", None)] == [None, None, None]
