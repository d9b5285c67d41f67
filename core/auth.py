"""Who is asking: set by the verified caller only, never from a question or a document."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from core.errors import CallerError
from core.types import Value

NAME = re.compile(r"[\w.@-]{1,64}", re.UNICODE)


def checked_name(what: str, name: str) -> str:
    """Return `name` when it is a plain name, else raise a CallerError."""
    if not NAME.fullmatch(name):
        raise CallerError(
            f"a {what} is 1 to 64 letters, digits, '.', '-', '_' or '@'",
            value=name,
            hint=f"give another {what} name",
        )
    return name


class AuthContext(Value):
    """Carry the caller's rights into every tool.

    `allowed_sources` are source patterns (shell globs) the caller is confined to, None for all of
    the tenant's; `version_policy` is "any" or one exact document version (documents that declare
    none are seen under both). `operator` is the person at the machine who names no caller: they
    know the names of all collections of the tenant, and see no document more for it.
    """

    tenant: str
    user: str = "local"
    roles: frozenset[str] = frozenset()
    allowed_sources: tuple[str, ...] | None = None
    version_policy: str = Field(default="any", min_length=1, max_length=64)
    operator: bool = False

    @field_validator("tenant", "user")
    @classmethod
    def _plain_name(cls, name: str) -> str:
        return checked_name("tenant or user", name)

    @field_validator("roles")
    @classmethod
    def _plain_roles(cls, roles: frozenset[str]) -> frozenset[str]:
        return frozenset(checked_name("role", role) for role in roles)

    @property
    def principals(self) -> frozenset[str]:
        """Return what a document's access list is compared with: roles and "user:<id>"."""
        return self.roles | {f"user:{self.user}"}

    def describe(self) -> dict[str, object]:
        """Return the filter as the trace records it."""
        return {
            "tenant": self.tenant,
            "user": self.user,
            "roles": sorted(self.roles),
            "allowed_sources": None if self.allowed_sources is None else list(self.allowed_sources),
            "version_policy": self.version_policy,
        }
