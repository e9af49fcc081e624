"""Settings of what is kept: the store, and the events that programs publish beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plaita.settings.setting import Setting, declare


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where executions live."""

    url: str = declare(
        "sqlite:///.plaita/plaita.db",
        Setting(
            "PLAITA_STORE",
            "text",
            "The store. A relative SQLite path inside `.plaita/` is looked for upwards from the working directory.",
            pattern=r"memory:|(?:sqlite:///|rediss?://|rediss?\+sentinel://|unix://).+",
            expected="sqlite:///PATH, redis://HOST:PORT/DB, rediss://…, unix:///SOCKET, redis+sentinel://… or memory:",
        ),
    )
    sqlite_synchronous: Literal["FULL", "NORMAL"] = declare(
        "FULL",
        Setting(
            "PLAITA_SQLITE_SYNCHRONOUS",
            "choice",
            "`FULL`: an accepted commit survives a power cut. `NORMAL`: it survives the death of any process.",
            choices=("FULL", "NORMAL"),
        ),
    )
    durability: Literal["local", "replica"] = declare(
        "local",
        Setting(
            "PLAITA_DURABILITY",
            "choice",
            "`replica`: what is accepted from outside, and the end of an execution, waits two seconds at most until a "
            "replica has it. On Redis.",
            choices=("local", "replica"),
        ),
    )
    tenancy: Literal["single", "multi"] = declare(
        "single",
        Setting(
            "PLAITA_TENANCY",
            "choice",
            "`multi`: the storages of the documented interface write only once a tenant was set.",
            choices=("single", "multi"),
        ),
    )
    redis_url: str = declare(
        "redis://localhost:6379/0",
        Setting(
            "PLAITA_REDIS_URL",
            "text",
            "The store when `PLAITA_STORE` names none; `REDIS_URL` when unset. Documented programs look here first.",
            pattern=r"(?:rediss?://|rediss?\+sentinel://|unix://).+",
            expected="redis://HOST:PORT/DB, rediss://…, unix:///SOCKET or redis+sentinel://…",
        ),
    )
    queue_name: str = declare(
        "plaita:flow:queue",
        Setting("PLAITA_QUEUE_NAME", "text", "The stream of producers that a worker reads. On Redis."),
    )
    consumer_group: str = declare(
        "plaita-workers",
        Setting("PLAITA_CONSUMER_GROUP", "text", "The group in which workers read the stream of producers. On Redis."),
    )
    consumer_group_start: str = declare(
        "0",
        Setting(
            "PLAITA_CONSUMER_GROUP_START_ID",
            "text",
            "From which entry on a new group reads. On Redis.",
            pattern=r"0|\$|\d{1,20}-\d{1,20}",
            expected="0 (everything), $ (what comes) or the id of an entry",
        ),
    )
    dlq_key: str = declare(
        "",
        Setting(
            "PLAITA_DLQ_KEY",
            "text",
            "The stream of dead letters; that of the stream of producers with `:dlq` when empty. On Redis.",
            pattern=r".*",
            expected="the key of a stream",
        ),
    )
    dlq_max_len: int = declare(
        1_000,
        Setting(
            "PLAITA_DLQ_MAX_LEN",
            "whole number",
            "Entries the stream of dead letters keeps on Redis.",
            least=1,
            most=10_000_000,
        ),
    )
    history_max_len: int = declare(
        10_000,
        Setting(
            "PLAITA_HISTORY_MAX_LEN",
            "whole number",
            "Entries of its history that an execution keeps on Redis, the newest ones. SQLite keeps all.",
            least=100,
            most=10_000_000,
        ),
    )
    documented_keys: Literal["all", "none"] = declare(
        "all",
        Setting(
            "PLAITA_DOCUMENTED_KEYS",
            "choice",
            "What Redis shows programs of release 0.63 of executions that start now: their rows, leases and waits, or "
            "nothing, in two fifths less memory.",
            choices=("all", "none"),
        ),
    )
    claim_min_idle_ms: int = declare(
        60_000,
        Setting(
            "PLAITA_CLAIM_MIN_IDLE_MS",
            "whole number",
            "After how many milliseconds a message is taken from a process that took it and did not finish. On Redis.",
            least=1,
            most=86_400_000,
        ),
    )
    retention_days: int = declare(
        30,
        Setting(
            "PLAITA_EXECUTION_STATE_TTL_DAYS",
            "whole number",
            "How long an ended execution is kept.",
            least=1,
            most=36_500,
        ),
    )


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Events that programs publish under the documented keys of Redis."""

    ttl_seconds: int = declare(
        604_800,
        Setting(
            "PLAITA_EVENT_TTL_SECONDS",
            "whole number",
            "How long `RedisEventStorage` and `RedisEventBus` keep an event.",
            least=1,
            most=315_360_000,
        ),
    )
    reconcile_seconds: float = declare(
        300.0,
        Setting(
            "PLAITA_EVENT_RECONCILE_INTERVAL",
            "number",
            "How often a worker on Redis looks for published events that it did not hear, in seconds.",
            least=0.1,
            most=86_400,
        ),
    )
    backfill_seconds: float = declare(
        3_600.0,
        Setting(
            "PLAITA_EVENT_RECONCILE_BACKFILL",
            "number",
            "How far back it looks, in seconds.",
            least=0,
            most=2_592_000,
        ),
    )
    no_reconcile: bool = declare(
        False,
        Setting(
            "PLAITA_DISABLE_EVENT_RECONCILE",
            "switch",
            "Published events are only heard, and never looked for.",
        ),
    )
