"""Limits that follow from the settings, the same for every program that opens a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plaita.backends.generations import LEGACY, generations
from plaita.backends.limits import Fleet, Limits, Streams
from plaita.base.duration import DAY_MS
from plaita.policy.lease import plan_lease
from plaita.settings import Settings

CONFIRM_MS: Final = 1_000
"""How long a caller waits at most until a replica has what it said."""


def limits_of(settings: Settings, environ: Mapping[str, str], streams: Streams | None = None) -> Limits:
    """What a store of these settings is opened with. ``streams``: others than those of the settings."""
    store, messages = settings.store, settings.messages
    named = streams or Streams(store.queue_name, store.dlq_key, store.consumer_group, store.consumer_group_start)
    return Limits(
        lease=plan_lease(settings.worker.lease_ttl_ms),
        cap=messages.tenant_running_max or None,
        message_age_ms=messages.age_seconds_max * 1000,
        row_ttl_ms=store.retention_days * DAY_MS,
        claim_min_idle_ms=store.claim_min_idle_ms,
        deliveries_max=settings.worker.attempts_max,
        dlq_max=store.dlq_max_len,
        history_max=store.history_max_len,
        mirrored=store.documented_keys == "all",
        confirm_ms=CONFIRM_MS if store.durability == "replica" else 0,
        streams=named,
        fleet=_fleet(settings, environ, named),
    )


def _fleet(settings: Settings, environ: Mapping[str, str], streams: Streams) -> Fleet:
    messages = settings.messages
    told = {**environ, "PLAITA_TENANT_NAMESPACE_VERSION": messages.namespace_version}
    told["PLAITA_DEPLOYMENT_EPOCH"] = messages.deployment_epoch
    ids = generations(told, streams.inbox, streams.group, streams.dead)
    compared = messages.epoch_strict and messages.deployment_epoch != LEGACY
    epoch = messages.deployment_epoch if compared else ""
    return Fleet(ids.config_family, ids.config_generation, ids.budget_generation, epoch)
