"""Who is asking: set by the verified caller only, never from a question or a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from pydantic import Field, field_validator

from core.errors import CallerError
from core.metadata import ANY, LATEST, Filter
from core.types import FrozenModel

NAME = re.compile(r"[\w.@-]{1,64}", re.UNICODE)


USER = "user:"
MOST_SOURCES, LONGEST_SOURCE = 500, 1000  # each is compared with every source


def checked_principal(name: str) -> str:
    """Return what may stand in an access list, a role or user:NAME, else raise a CallerError."""
    if name.startswith(USER):
        return USER + checked_name("user", name.removeprefix(USER))
    return checked_name("role", name)


def checked_name(what: str, name: str) -> str:
    """Return `name` when it is a plain name, else raise a CallerError."""
    if not NAME.fullmatch(name):
        raise CallerError(
            f"a {what} is 1 to 64 letters, digits, '.', '-', '_' or '@'",
            value=name,
            hint=f"give another {what} name",
        )
    return name


def checked_sources(sources: Sequence[str]) -> tuple[str, ...]:
    """Return source patterns that somebody gave for a caller, else raise a CallerError."""
    if len(sources) > MOST_SOURCES:
        raise CallerError(f"at most {MOST_SOURCES} source patterns", value=len(sources))
    for one in sources:
        if not 0 < len(one) <= LONGEST_SOURCE or "\x00" in one:
            rule = f"a source pattern has 1 to {LONGEST_SOURCE} characters"
            raise CallerError(rule, value=one, hint="such as 'docs/*'")
    return tuple(sources)


class AuthContext(FrozenModel):
    """Carry the caller's rights into every tool.

    `allowed_sources` are source patterns (shell globs) the caller is confined to, None for all of
    the tenant's; `version_policy` is "any", "latest" (of each document the newest version they may
    see) or one exact version; documents that declare none are seen under each. `operator` is the
    person at the machine who names no caller: they know the names of all collections of the tenant,
    and see no document more for it. `where` is no right: it narrows one question or one call.
    """

    tenant: str
    user: str = "local"
    roles: frozenset[str] = frozenset()
    allowed_sources: tuple[str, ...] | None = None
    version_policy: str = Field(default=ANY, min_length=1, max_length=64)
    operator: bool = False
    where: tuple[Filter, ...] = ()

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
        return self.roles | {f"{USER}{self.user}"}

    @property
    def asked_version(self) -> str:
        """Return the one version that the policy names, "" for none."""
        return "" if self.version_policy in (ANY, LATEST) else self.version_policy

    @property
    def rights(self) -> AuthContext:
        """Return the caller as verified, without what narrows a question."""
        return self.model_copy(update={"where": ()}) if self.where else self

    @property
    def unconfined(self) -> AuthContext:
        """Return an operator without sources and version, which they chose; of others, the same."""
        if not self.operator:
            return self
        return self.model_copy(update={"allowed_sources": None, "version_policy": ANY})

    def narrowed(self, where: Sequence[Filter]) -> AuthContext:
        """Return the caller within these filters too."""
        return self.model_copy(update={"where": (*self.where, *where)}) if where else self

    def describe(self) -> dict[str, object]:
        """Return the filter as the trace records it."""
        return {
            "tenant": self.tenant,
            "user": self.user,
            "roles": sorted(self.roles),
            "allowed_sources": None if self.allowed_sources is None else list(self.allowed_sources),
            "version_policy": self.version_policy,
            **({"where": [str(one) for one in self.where]} if self.where else {}),
        }


_tenant: ContextVar[str] = ContextVar("tenant", default="")


def current_tenant() -> str:
    """Return the tenant that data is read for now, "" for all of them."""
    return _tenant.get()


@contextmanager
def reading_for(tenant: str) -> Iterator[None]:
    """Let reads inside the block be of one tenant: a database that has a wall keeps out others."""
    token = _tenant.set(tenant)
    try:
        yield
    finally:
        _tenant.reset(token)
