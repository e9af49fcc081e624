"""The settings themselves. A field is the value, its ``Setting`` the one place that describes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from plaita.settings.keeping import EventSettings, StoreSettings
from plaita.settings.messages import MessageSettings
from plaita.settings.setting import Setting, declare


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a process that drives executions behaves."""

    concurrency: int = declare(
        100,
        Setting(
            "PLAITA_WORKER_CONCURRENCY",
            "whole number",
            "Executions one process advances at the same time.",
            least=1,
            most=10_000,
        ),
    )
    pool_size: int = declare(
        32,
        Setting(
            "PLAITA_WORKER_POOL_SIZE",
            "whole number",
            "Threads for blocking node code.",
            least=1,
            most=1_000,
        ),
    )
    lease_ttl_seconds: float = declare(
        10.0,
        Setting(
            "PLAITA_LEASE_TTL_SECONDS",
            "number",
            "How long a silent process keeps its executions before another one takes them over.",
            least=3,
            most=3_600,
        ),
    )
    renew_seconds: float = declare(
        3.0,
        Setting(
            "PLAITA_LEASE_RENEW_SECONDS",
            "number",
            "How often leases are renewed: at most a third of the lease, and three tenths of it when unset.",
            least=0.1,
            most=1_800,
        ),
    )
    drain_timeout_seconds: float = declare(
        30.0,
        Setting(
            "PLAITA_WORKER_DRAIN_TIMEOUT",
            "number",
            "Grace in seconds for running nodes after SIGTERM; 0 cuts them at once.",
            least=0,
            most=86_400,
        ),
    )
    attempts_max: int = declare(
        5,
        Setting(
            "PLAITA_MAX_DELIVERIES",
            "whole number",
            "Attempts of a node, in all, at an error that would end its execution; and how many processes may take a "
            "producer's message without coming to an end before it is a dead letter.",
            least=1,
            most=100,
        ),
    )
    definition_change: Literal["pinned", "refuse"] = declare(
        "pinned",
        Setting(
            "PLAITA_DEFINITION_CHANGE",
            "choice",
            "`pinned`: an execution goes on with the definition it began with. `refuse`: it ends with the error "
            "`flow_hash_mismatch` when another definition was published under its version meanwhile.",
            choices=("pinned", "refuse"),
        ),
    )
    processes: int = declare(
        1,
        Setting(
            "PLAITA_WORKER_PROCESSES",
            "whole number",
            "Processes of one `plaita worker`. With more than one, a process above them replaces those that die.",
            least=1,
            most=256,
        ),
    )
    instance_id: str = declare(
        "",
        Setting(
            "PLAITA_INSTANCE_ID",
            "text",
            "The name of this worker in lists, commands and metrics; empty: the host and 8 random characters.",
            pattern=r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,127})?",
            expected="up to 128 letters, digits, dots, dashes and underscores",
        ),
    )
    registry: bool = declare(
        True,
        Setting(
            "PLAITA_WORKER_REGISTRY",
            "switch",
            "Whether a worker shows itself in the documented registry and obeys its control channel. On Redis.",
        ),
    )
    metrics_port: int = declare(
        0,
        Setting(
            "PLAITA_METRICS_PORT",
            "whole number",
            "The port of `/metrics` and `/health`; 0 for none. With several processes the first one has this port, the "
            "next one the next, and so on.",
            least=0,
            most=65_535,
        ),
    )
    metrics_host: str = declare(
        "0.0.0.0",  # nosec B104 - the documented default; nothing listens unless a port is set
        Setting(
            "PLAITA_METRICS_HOST",
            "text",
            "The address that `/metrics` and `/health` listen on. They ask for no password.",
            pattern=r"[A-Za-z0-9.:_-]+",
            expected="an address or a host name",
        ),
    )
    alert_webhook: str = declare(
        "",
        Setting(
            "PLAITA_ALERT_WEBHOOK",
            "text",
            "Where each message that becomes a dead letter is posted as JSON; empty for nowhere.",
            pattern=r"(?:https?://\S+)?",
            expected="http://… or https://…",
        ),
    )

    @property
    def lease_ttl_ms(self) -> int:
        """The lease in milliseconds."""
        return round(self.lease_ttl_seconds * 1000)

    @property
    def renew_ms(self) -> int:
        """The renewal period in milliseconds."""
        return round(self.renew_seconds * 1000)

    @property
    def drain_timeout_ms(self) -> int:
        """The grace after SIGTERM in milliseconds."""
        return round(self.drain_timeout_seconds * 1000)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How executions are evaluated."""

    execution_deadline_seconds: float = declare(
        1800.0,
        Setting(
            "PLAITA_EXECUTION_DEADLINE_SECONDS",
            "number",
            "Active time of an execution whose flow declares no timeout; waits do not count.",
            least=0.001,
            most=31_536_000,
        ),
    )
    timezone: str = declare(
        "UTC",
        Setting(
            "PLAITA_TIMEZONE",
            "text",
            "Time zone of `$F.now` and `$F.today`; `Flow.run` in Python uses UTC.",
            pattern=r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*",
            expected="a name of the IANA time zone database, such as Europe/Berlin",
        ),
    )

    @property
    def execution_deadline_ms(self) -> int:
        """The active time in milliseconds."""
        return round(self.execution_deadline_seconds * 1000)


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What the scripts of ``code`` nodes may use."""

    timeout_seconds: float = declare(
        10.0,
        Setting(
            "PLAITA_SANDBOX_TIMEOUT",
            "number",
            "Seconds a script may run, whatever the timeout of its node is.",
            least=0.1,
            most=86_400,
        ),
    )
    memory_mb: int = declare(
        0,
        Setting(
            "PLAITA_SANDBOX_MEMORY_MB",
            "whole number",
            "Address space of a script in MiB; 0 for no limit. Below 64 Python itself hardly starts.",
            least=0,
            most=1_048_576,
        ),
    )
    scripts: int = declare(
        16,
        Setting(
            "PLAITA_SANDBOX_SCRIPTS",
            "whole number",
            "Scripts one process runs at the same time; further ones wait for a place.",
            least=1,
            most=10_000,
        ),
    )
    allowed_backends: tuple[str, ...] = declare(
        ("subprocess", "restricted"),
        Setting(
            "PLAITA_SANDBOX_ALLOWED_BACKENDS",
            "list",
            "What `sandboxBackend` of a `code` node may say; the first available one is the default.",
        ),
    )
    allowed_languages: tuple[str, ...] = declare(
        ("python",),
        Setting(
            "PLAITA_SANDBOX_ALLOWED_LANGUAGES",
            "list",
            "What `language` of a `code` node may say, beside languages that a program registers.",
        ),
    )


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What holds for every `http` node, whatever its fields say."""

    block_private: bool = declare(
        False,
        Setting(
            "PLAITA_HTTP_BLOCK_PRIVATE",
            "switch",
            "Every `http` node refuses addresses that are not public, as with `blockPrivateNetworks`.",
        ),
    )
    response_bytes_max: int = declare(
        10_485_760,
        Setting(
            "PLAITA_HTTP_MAX_RESPONSE_BYTES",
            "whole number",
            "The largest body an `http` node accepts, counted after decompression.",
            least=1,
            most=1_000_000_000,
        ),
    )
    dns_ttl_seconds: float = declare(
        30.0,
        Setting(
            "PLAITA_HTTP_DNS_TTL",
            "number",
            "How long the addresses of a name are used again, in seconds; 0 asks for every new connection.",
            least=0,
            most=86_400,
        ),
    )
    connections_max: int = declare(
        500,
        Setting(
            "PLAITA_HTTP_CONNECTOR_LIMIT",
            "whole number",
            "Requests of `http` nodes that one event loop has open at once; more wait for their turn.",
            least=1,
            most=100_000,
        ),
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a process, one group a component."""

    store: StoreSettings = field(default_factory=StoreSettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    events: EventSettings = field(default_factory=EventSettings)
    messages: MessageSettings = field(default_factory=MessageSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    imports: tuple[str, ...] = declare(
        (),
        Setting(
            "PLAITA_IMPORTS",
            "list",
            "Modules or `.py` files with custom nodes, imported before any flow is loaded.",
        ),
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = declare(
        "INFO",
        Setting(
            "PLAITA_LOG_LEVEL",
            "choice",
            "The least level of an event that a worker writes to its log.",
            choices=("DEBUG", "INFO", "WARNING", "ERROR"),
        ),
    )
    log_format: Literal["text", "json"] = declare(
        "text",
        Setting(
            "PLAITA_LOG_FORMAT",
            "choice",
            "How a worker writes its log: lines for people, or one JSON object a line.",
            choices=("text", "json"),
        ),
    )
