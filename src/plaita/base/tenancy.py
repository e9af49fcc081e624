"""Whose work this is: the tenant of the running context. Never set, it is the only tenant there is, ``default``."""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import Final

DEFAULT_TENANT_ID: Final = "default"
LEGACY_NAMESPACE: Final = "plaita"

_tenant: ContextVar[str | None] = ContextVar("plaita_tenant", default=None)


@dataclass(frozen=True, slots=True)
class TenantToken:
    """What ``reset_current_tenant`` needs."""

    tenant: Token[str | None]


def current_tenant() -> str:
    """The tenant of this context."""
    return _tenant.get() or DEFAULT_TENANT_ID


def tenant_is_set() -> bool:
    """Did somebody say, in this context, whose work this is?"""
    return _tenant.get() is not None


def set_current_tenant(tenant_id: str | None, *, source: str = "explicit") -> TenantToken:
    """Work for a tenant from here on in this context; nothing means the default one. ``source`` has no effect."""
    return TenantToken(_tenant.set(tenant_id or DEFAULT_TENANT_ID))


def reset_current_tenant(token: TenantToken) -> None:
    """Back to what it was before that ``set_current_tenant``."""
    _tenant.reset(token.tenant)


def tenant_namespace(tenant_id: str | None) -> str:
    """The prefix of a tenant's documented keys: ``plaita``, or ``plaita:<tenant>``."""
    if not tenant_id or tenant_id == DEFAULT_TENANT_ID:
        return LEGACY_NAMESPACE
    return f"{LEGACY_NAMESPACE}:{tenant_id}"
