"""The tenant of the running context, under its documented path."""

from plaita.base.errors import TenantContextMissingError
from plaita.base.tenancy import (
    DEFAULT_TENANT_ID,
    LEGACY_NAMESPACE,
    TenantToken,
    current_tenant,
    reset_current_tenant,
    set_current_tenant,
    tenant_namespace,
)

__all__ = [
    "DEFAULT_TENANT_ID", "LEGACY_NAMESPACE", "TenantContextMissingError", "TenantToken", "current_tenant",
    "reset_current_tenant", "set_current_tenant", "tenant_namespace",
]  # fmt: skip
