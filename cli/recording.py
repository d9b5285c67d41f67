"""What the operator changes at the command line, recorded where the tenant's admins see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.running import host

if TYPE_CHECKING:
    from core.settings import Settings
    from stores.audit import Kind
    from stores.database import Database

OPERATOR = "command.line"  # the user that the audit log names


def record(database: Database, settings: Settings, kind: Kind, tenant: str, **facts: Any) -> None:  # noqa: ANN401
    """Add a row to the audit log; when this returns it is kept."""
    from core.auth import AuthContext
    from stores.audit import AuditLog, Entry

    if (here := host()) is not None:
        settings = here.session.settings  # the server's log has the server's key
    if settings.audit:
        auth = AuthContext(tenant=tenant, user=OPERATOR)
        AuditLog(database, settings).append([Entry(kind, auth, facts)])
