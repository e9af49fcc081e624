"""Ids of a configuration: what programs that share a stream compare to know whether they speak of the same things.

An id is a prefix and the first twelve hexadecimal digits of a SHA-256 over compact JSON with sorted keys, without
members that are null; texts stripped, booleans as ``true`` and ``false``. Every program that puts messages into a
stream stamps them with its ids, and one of another family is carried out by nobody else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

LEGACY: Final = "legacy"
"""Stands for an id that is not there."""
SCHEMA_VERSION: Final = 1
_SWITCHES: Final = {
    "fencing": "PLAITA_DISABLE_FENCING",
    "tenant_quota": "PLAITA_DISABLE_TENANT_QUOTA",
    "dispatch_target": "PLAITA_DISABLE_DISPATCH_TARGET",
    "affinity": "PLAITA_DISABLE_AFFINITY",
    "tenant_status_gate": "PLAITA_DISABLE_TENANT_STATUS_GATE",
}
_Value = str | int | None


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits as far as a producer knows them. The lease is the documented one of the id, not that of a worker."""

    max_deliveries: int = 5
    lease_ttl_seconds: int = 300
    task_max_age_seconds: int = 2_592_000
    dlq_max_len: int = 1_000


@dataclass(frozen=True, slots=True)
class Generations:
    """The three ids as a message carries them."""

    config_family: str
    config_generation: str
    budget_generation: str


def generations(
    environ: Mapping[str, str],
    queue_name: str,
    consumer_group: str = "plaita-workers",
    dlq_key: str = "",
) -> Generations:
    """The ids of a stream under an environment. Variables that make no sense count as unset, as with every producer."""
    family: dict[str, _Value] = {
        "queue_name": queue_name,
        "consumer_group": consumer_group,
        "dlq_key": dlq_key or f"{queue_name}:dlq",
        "schema_version": SCHEMA_VERSION,
        "max_schema_version": None,
        "tenant_namespace_version": environ.get("PLAITA_TENANT_NAMESPACE_VERSION", "").strip() or "v1",
    }
    limits = budget(environ)
    bounds: dict[str, _Value] = {one.name: getattr(limits, one.name) for one in fields(limits)}
    epoch = environ.get("PLAITA_DEPLOYMENT_EPOCH", "").strip() or LEGACY
    switches: dict[str, _Value] = {
        name: "false" if environ.get(variable, "").strip() == "1" else "true" for name, variable in _SWITCHES.items()
    }
    all_of_it = {**family, **bounds, "deployment_epoch": epoch, "tenant_status_epoch": epoch, **switches}
    return Generations(_id("cf1", family), _id("cfg1", all_of_it), _id("bg1", bounds))


def budget(environ: Mapping[str, str]) -> Budget:
    """Limits that the environment names; whatever is no positive whole number is the default."""
    found = {one.name: _positive(environ.get(f"PLAITA_{one.name.upper()}", "")) for one in fields(Budget)}
    return Budget(**{name: number for name, number in found.items() if number is not None})


def _positive(text: str) -> int | None:
    try:
        number = int(text.strip())
    except ValueError:
        return None
    return number if number > 0 else None


def _id(prefix: str, members: Mapping[str, _Value]) -> str:
    kept = {name: value.strip() if isinstance(value, str) else value for name, value in members.items()}
    text = json.dumps({k: v for k, v in kept.items() if v is not None}, sort_keys=True, separators=(",", ":"))
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
