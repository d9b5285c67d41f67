"""Who is calling: a key or a signed token becomes an AuthContext, and nothing else does."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import jwt
from pydantic import ValidationError

from core.auth import AuthContext, checked_sources
from core.errors import CallerError, OperatorError
from core.metadata import ANY
from core.settings import Settings
from serve.access.oidc import OidcTokens
from serve.access.sign_in import SignIn
from serve.errors import NotAuthenticated
from stores.accounts.keys import PREFIX, Key, Keys
from stores.coordination import Coordination

REQUIRED = ["exp", "sub", "tenant"]
SHORTEST_SECRET = 32  # bytes, RFC 7518 section 3.2
INVALID = "the token is not valid here"


class Tokens:
    """Turn a signed token into its caller: `sub` the user, `tenant`, and `roles` as a list.

    `allowed_sources`, a list of source patterns, and `version_policy` confine them further.
    """

    def __init__(self, settings: Settings) -> None:
        """Read the key; raises OperatorError when it does not fit the algorithm."""
        self._settings = settings
        self._key = _verification_key(settings)

    @property
    def enabled(self) -> bool:
        """Tell whether there is a key to check tokens with."""
        return self._key is not None

    def verified(self, token: str) -> AuthContext:
        """Return the caller, or raise NotAuthenticated."""
        if self._key is None:
            raise NotAuthenticated(INVALID)
        settings = self._settings
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[settings.jwt.algorithm],
                audience=settings.jwt.audience,
                issuer=settings.jwt.issuer or None,
                leeway=settings.jwt.leeway_seconds,
                options={"require": REQUIRED},
            )
        except jwt.PyJWTError:
            raise NotAuthenticated(INVALID, hint="ask for a new one") from None
        return _caller(claims)


def _caller(claims: dict[str, Any]) -> AuthContext:
    roles, sources = claims.get("roles", []), claims.get("allowed_sources")
    policy = claims.get("version_policy", ANY)
    if not (_texts(roles) and isinstance(claims["tenant"], str)):
        raise NotAuthenticated("a token names its tenant as a text and its roles as a list")
    if not (sources is None or _texts(sources)) or not isinstance(policy, str):
        rule = "a token names its allowed_sources as a list and its version_policy as a text"
        raise NotAuthenticated(rule)
    try:
        return AuthContext(
            tenant=claims["tenant"],
            user=claims["sub"],
            roles=frozenset(roles),
            allowed_sources=None if sources is None else checked_sources(sources),
            version_policy=policy,
        )
    except CallerError as error:
        raise NotAuthenticated(error.rule) from None
    except ValidationError:
        raise NotAuthenticated("a version_policy has 1 to 64 characters") from None


def _texts(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(one, str) for one in given)


def _verification_key(settings: Settings) -> str | None:
    secret, path = settings.jwt.key, settings.jwt.public_key
    if secret is None and path is None:
        return None
    if not settings.jwt.audience:
        raise OperatorError(
            "signed tokens need an audience, or those of other services would be good here too",
            hint="set CARREL_JWT__AUDIENCE",
        )
    symmetric = settings.jwt.algorithm == "HS256"
    if symmetric != (path is None):
        raise OperatorError(
            "HS256 takes jwt.key, the other algorithms jwt.public_key",
            value=settings.jwt.algorithm,
            hint="set one of them, and jwt.algorithm",
        )
    if secret is not None and symmetric:
        if len(secret.get_secret_value().encode()) < SHORTEST_SECRET:
            raise OperatorError(f"jwt.key has at least {SHORTEST_SECRET} bytes")
        return secret.get_secret_value()
    assert path is not None  # as not symmetric
    return _public_key(settings, path.expanduser())


def _public_key(settings: Settings, path: Path) -> str:
    try:
        text: str = path.read_text(encoding="ascii")
        jwt.get_algorithm_by_name(settings.jwt.algorithm).prepare_key(text)
    except (OSError, ValueError, TypeError, jwt.PyJWTError) as error:
        raise OperatorError(
            f"jwt.public_key must be a PEM file of a key for {settings.jwt.algorithm}",
            value=f"{path} ({error})",
            hint="give the public key alone",
        ) from None
    if "PRIVATE" in text:
        raise OperatorError("jwt.public_key holds a private key", hint="give the public key alone")
    return text


BEARER = re.compile(r"Bearer +([A-Za-z0-9._~+/=-]{1,8192})", re.ASCII | re.IGNORECASE)
DEFAULT_TENANT = "default"
ANONYMOUS = "local"


@dataclass(frozen=True)
class AuthenticatedCaller:
    """A verified caller and how they were authenticated; `key` is None without an API key."""

    auth: AuthContext
    how: Literal["key", "token", "session", "anonymous"]
    key: Key | None = None


class Authenticator:
    """Verify API keys and signed tokens; callers without either are let in only as anonymous."""

    def __init__(
        self,
        keys: Keys,
        settings: Settings,
        *,
        allow_anonymous: bool = False,
        coordination: Coordination | None = None,
    ) -> None:
        """Read the keys of signed tokens; raises OperatorError when they are unfit."""
        self._keys = keys
        self._tokens = Tokens(settings)
        self._oidc = OidcTokens(settings) if settings.oidc.issuer else None
        self.sign_in: SignIn | None = None
        if self._oidc is not None and settings.oidc.public_url:
            self.sign_in = SignIn(self._oidc, settings, coordination)
        self._anonymous = AuthContext(
            tenant=DEFAULT_TENANT, user=ANONYMOUS, roles=frozenset(settings.serve.anonymous_roles)
        )
        self.allow_anonymous = allow_anonymous

    @property
    def takes_tokens(self) -> bool:
        """Tell whether signed tokens say who bears a name."""
        return self._tokens.enabled or self._oidc is not None

    @property
    def has_no_key(self) -> bool:
        """Return whether no caller could get in: no key is valid, and no token is accepted."""
        good = any(not key.revoked_at for key in self._keys.listed())
        return not good and not self.takes_tokens

    async def prepare(self, header: str | None) -> None:
        """Fetch the keys of a token's provider where they are due; `authenticate` never waits."""
        match = BEARER.fullmatch((header or "").strip())
        if match and not match[1].startswith(PREFIX) and (oidc := self._oidc_of(match[1])):
            if oidc.is_due(match[1]):
                await asyncio.to_thread(oidc.fetch_for, match[1])

    def _oidc_of(self, token: str) -> OidcTokens | None:
        """Return the provider that checks a token; None where the key of `jwt` does."""
        oidc = self._oidc
        return oidc if oidc and (not self._tokens.enabled or oidc.is_mine(token)) else None

    def authenticate(self, header: str | None, session: str = "") -> AuthenticatedCaller:
        """Return who sends this `Authorization` header, or else the secret of a browser's session.

        Raises NotAuthenticated. A wrong key is turned away also where anonymous callers are let in.
        """
        if header is None and session and self.sign_in:
            if (auth := self.sign_in.sessions.caller(session)) is not None:
                return AuthenticatedCaller(auth, "session")
        if header is None:
            if self.allow_anonymous:
                return AuthenticatedCaller(self._anonymous, "anonymous")
            raise NotAuthenticated(
                "a request needs a key",
                hint="send `Authorization: Bearer KEY`; `carrel keys create` makes one",
            )
        match = BEARER.fullmatch(header.strip())
        if match is None:
            raise NotAuthenticated("the Authorization header is `Bearer KEY`")
        if not match[1].startswith(PREFIX):
            if self.allow_anonymous and not self.takes_tokens:
                # Clients of OpenAI cannot send none; they are given any word as their key.
                return AuthenticatedCaller(self._anonymous, "anonymous")
            tokens = self._oidc_of(match[1]) or self._tokens
            return AuthenticatedCaller(tokens.verified(match[1]), "token")
        key = self._keys.verified(match[1])
        if key is None:
            raise NotAuthenticated(
                "the key is unknown, expired or revoked", hint="`carrel keys create` makes one"
            )
        return AuthenticatedCaller(key.auth, "key", key)
