"""Who is calling: a key or a signed token becomes an AuthContext, and nothing else does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from core.auth import AuthContext
from core.settings import Settings
from serve.errors import NotAuthenticated
from serve.tokens import Tokens
from stores.keys import PREFIX, Key, Keys

BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/=-]{1,4096})", re.ASCII | re.IGNORECASE)
DEFAULT_TENANT = "default"
ANONYMOUS = "local"


@dataclass(frozen=True)
class Entry:
    """Hold a verified caller and how they got in; `key` is None without one."""

    auth: AuthContext
    how: Literal["key", "token", "anonymous"]
    key: Key | None = None


class Doorkeeper:
    """Verify what callers present; without a key only who may be anonymous gets in."""

    def __init__(self, keys: Keys, settings: Settings, *, allow_anonymous: bool = False) -> None:
        """Read the keys of signed tokens; raises OperatorError when they are unfit."""
        self._keys = keys
        self._tokens = Tokens(settings)
        self._anonymous = AuthContext(
            tenant=DEFAULT_TENANT,
            user=ANONYMOUS,
            roles=frozenset(settings.serve_anonymous_roles),
        )
        self.allow_anonymous = allow_anonymous

    @property
    def takes_tokens(self) -> bool:
        """Tell whether signed tokens say who bears a name."""
        return self._tokens.enabled

    @property
    def has_no_key(self) -> bool:
        """Tell whether nobody could get in: no key is good, and no token is accepted."""
        good = any(not key.revoked_at for key in self._keys.listed())
        return not good and not self._tokens.enabled

    def caller(self, header: str | None) -> AuthContext:
        """Return who sends this `Authorization` header, or raise NotAuthenticated."""
        return self.entry(header).auth

    def entry(self, header: str | None) -> Entry:
        """Return who sends this `Authorization` header and with which key.

        Raises NotAuthenticated. A wrong key is turned away also where anonymous callers are let in.
        """
        if header is None:
            if self.allow_anonymous:
                return Entry(self._anonymous, "anonymous")
            raise NotAuthenticated(
                "a request needs a key",
                hint="send `Authorization: Bearer KEY`; `carrel keys create` makes one",
            )
        match = BEARER.fullmatch(header.strip())
        if match is None:
            raise NotAuthenticated("the Authorization header is `Bearer KEY`")
        if not match[1].startswith(PREFIX):
            return Entry(self._tokens.verified(match[1]), "token")
        key = self._keys.verified(match[1])
        if key is None:
            raise NotAuthenticated(
                "the key is unknown, expired or revoked", hint="`carrel keys create` makes one"
            )
        return Entry(key.auth, "key", key)
