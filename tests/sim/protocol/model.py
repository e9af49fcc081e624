"""The model under one name, as the checker uses it."""

# mypy: ignore-errors
# ruff: noqa: F401
from tests.sim.protocol.holder import (
    Holder,
    call_key,
    call_request,
    calls,
    decide,
    drop,
    load,
    may_begin,
    nonce,
    on_answer,
    tick_holder,
    tick_request,
    tick_store,
)  # fmt: skip
from tests.sim.protocol.machine import FLOWS, Frame, advance
from tests.sim.protocol.store import (
    BUG,
    TERMINAL,
    C,
    Run,
    Store,
    Wait,
    bug,
    child_id,
    contact,
    eligible,
    get,
    used,
    wait_of,
)  # fmt: skip
from tests.sim.protocol.verbs import (
    Settle,
    accept,
    cancel,
    claim,
    claimable,
    delete,
    publish,
    pump,
    release,
    renew,
    settle,
    submit,
    wake,
)  # fmt: skip
