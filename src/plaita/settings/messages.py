"""Settings of what producers send, and of the tenants they send it for."""

from __future__ import annotations

from dataclasses import dataclass

from plaita.settings.setting import Setting, declare


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """Which messages are carried out."""

    age_seconds_max: int = declare(
        2_592_000,
        Setting(
            "PLAITA_TASK_MAX_AGE_SECONDS",
            "whole number",
            "A message older than that starts nothing; 0 for no limit.",
            least=0,
            most=315_360_000,
        ),
    )
    deployment_epoch: str = declare(
        "legacy",
        Setting(
            "PLAITA_DEPLOYMENT_EPOCH",
            "text",
            "What `plaita:tenant_status:epoch` must say before messages start something for tenants; `legacy` asks for"
            " nothing. On Redis.",
        ),
    )
    epoch_strict: bool = declare(
        True,
        Setting(
            "PLAITA_TENANT_STATUS_EPOCH_STRICT",
            "switch",
            "`false`: the deployment epoch is only stamped on messages and not compared. On Redis.",
        ),
    )
    namespace_version: str = declare(
        "v1",
        Setting(
            "PLAITA_TENANT_NAMESPACE_VERSION",
            "text",
            "Part of the family of a fleet: messages of another family are left to others. On Redis.",
        ),
    )
    tenant_running_max: int = declare(
        0,
        Setting(
            "PLAITA_TENANT_MAX_RUNNING",
            "whole number",
            "Executions of a tenant that run at the same time; further ones wait for a slot. 0 for no limit.",
            least=0,
            most=1_000_000,
        ),
    )
