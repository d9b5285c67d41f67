"""Signed tokens (JWT): one algorithm, one key, and claims that must be there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from core.auth import AuthContext, checked_sources
from core.errors import CallerError, OperatorError
from core.settings import Settings
from core.versions import ANY
from serve.errors import NotAuthenticated

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
        import jwt

        if self._key is None:
            raise NotAuthenticated(INVALID)
        settings = self._settings
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key,
                algorithms=[settings.jwt_algorithm],
                audience=settings.jwt_audience,
                issuer=settings.jwt_issuer or None,
                leeway=settings.jwt_leeway_seconds,
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
    secret, path = settings.jwt_key, settings.jwt_public_key
    if secret is None and path is None:
        return None
    if not settings.jwt_audience:
        raise OperatorError(
            "signed tokens need an audience, or those of other services would be good here too",
            hint="set CARREL_JWT_AUDIENCE",
        )
    symmetric = settings.jwt_algorithm == "HS256"
    if symmetric != (path is None):
        raise OperatorError(
            "HS256 takes jwt_key, the other algorithms jwt_public_key",
            value=settings.jwt_algorithm,
            hint="set one of them, and jwt_algorithm",
        )
    if secret is not None and symmetric:
        if len(secret.get_secret_value().encode()) < SHORTEST_SECRET:
            raise OperatorError(f"jwt_key has at least {SHORTEST_SECRET} bytes")
        return secret.get_secret_value()
    assert path is not None  # as not symmetric
    return _public_key(settings, path.expanduser())


def _public_key(settings: Settings, path: Path) -> str:
    import jwt

    try:
        text: str = path.read_text(encoding="ascii")
        jwt.get_algorithm_by_name(settings.jwt_algorithm).prepare_key(text)
    except (OSError, ValueError, TypeError, jwt.PyJWTError) as error:
        raise OperatorError(
            f"jwt_public_key must be a PEM file of a key for {settings.jwt_algorithm}",
            value=f"{path} ({error})",
            hint="give the public key alone",
        ) from None
    if "PRIVATE" in text:
        raise OperatorError("jwt_public_key holds a private key", hint="give the public key alone")
    return text
