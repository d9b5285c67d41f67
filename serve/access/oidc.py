"""Signing in through an OpenID Connect provider: its keys, its tokens, and who they stand for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx
import jwt

from core.auth import AuthContext, checked_name
from core.errors import CallerError, OperatorError
from core.fields.serve import is_secure, paired
from core.settings import Settings
from serve.access.groups import GroupFile
from serve.errors import NotAuthenticated
from serve.telemetry.logs import log

# With a public key alone: with a shared secret, or none, whoever knows that key could sign.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
REQUIRED = ["exp", "iat", "iss", "aud", "sub"]
TYPES = (None, "JWT", "AT+JWT")  # never LOGOUT+JWT: that one is sent around, and is no login
INVALID = "the token is not valid here"
KEYS_SECONDS = 600.0  # so long a key that the provider has withdrawn still counts; chosen
KEPT_SECONDS = 24 * 3600.0  # how long keys count while the provider does not answer; chosen
# Between two fetches for a key that is not known: whoever invents key ids makes no more than these.
PAUSE_SECONDS = 30.0
FETCH_SECONDS = 5.0
MOST_BYTES = 1_000_000  # of a provider's document
NOBODYS = ("local", "key.")  # the caller without a key, and keys without a user
EMAIL = "email"


class Provider:
    """Hold what a provider publishes of itself: its addresses and its keys.

    `refresh` blocks and belongs on a thread; `key_of` never does.
    """

    def __init__(self, issuer: str) -> None:
        """Fetch nothing yet, so that a server starts while the provider does not answer."""
        self._issuer = issuer
        self._lock = threading.Lock()
        self._document: Mapping[str, Any] = {}
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._fetched = self._tried = float("-inf")

    def is_due(self, key_id: str | None) -> bool:
        """Tell whether the keys are old, or lack this one, and it is time to fetch them again."""
        now = time.monotonic()
        known = key_id in self._keys or (key_id is None and bool(self._keys))
        old = now - self._fetched > KEYS_SECONDS
        return (old or not known) and now - self._tried > PAUSE_SECONDS

    def refresh(self) -> None:
        """Fetch addresses and keys; without an answer those of before count on for a day."""
        with self._lock:
            if time.monotonic() - self._tried <= PAUSE_SECONDS:
                return  # another request has just done so
            self._tried = time.monotonic()
            try:
                document = _fetch(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
                if document.get("issuer") != self._issuer:
                    raise ValueError(f"it calls itself {document.get('issuer')}")
                self._keys = _signing_keys(_fetch(_address(document, "jwks_uri")))
                self._document, self._fetched = document, time.monotonic()
            except (httpx.HTTPError, httpx.InvalidURL, ValueError, jwt.PyJWTError) as error:
                log.error("the provider %s gave no keys: %s", self._issuer, error)

    def key_of(self, key_id: str | None) -> jwt.PyJWK:
        """Return the key of this id, or without one the only key; raises NotAuthenticated."""
        if time.monotonic() - self._fetched > KEPT_SECONDS:
            raise OperatorError("the sign-in provider does not answer", value=self._issuer)
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        if key_id is None or key_id not in self._keys:
            raise NotAuthenticated(INVALID, hint="ask for a new one")
        return self._keys[key_id]

    def address(self, name: str) -> str:
        """Return an address that the provider has published; "" for none."""
        return _address(self._document, name) if self._document.get(name) else ""


def _fetch(url: str) -> Mapping[str, Any]:
    with httpx.stream("GET", url, timeout=FETCH_SECONDS, follow_redirects=False) as response:
        response.raise_for_status()
        content = b""
        for piece in response.iter_bytes():
            content += piece
            if len(content) > MOST_BYTES:
                raise ValueError("its document is too large")
    found = json.loads(content)
    if response.status_code != httpx.codes.OK or not isinstance(found, dict):
        raise ValueError(f"{url} holds no JSON object")
    return found


def _address(document: Mapping[str, Any], name: str) -> str:
    url = document.get(name)
    if not isinstance(url, str) or not is_secure(url):
        raise ValueError(f"its {name} is no https address")
    return url


def _signing_keys(document: Mapping[str, Any]) -> dict[str, jwt.PyJWK]:
    """Return the public keys that may sign; others, shared secrets among them, are left out."""
    found: dict[str, jwt.PyJWK] = {}
    for one in document.get("keys", []):
        if not isinstance(one, dict) or one.get("use", "sig") != "sig" or one.get("kty") == "oct":
            continue
        try:
            key = jwt.PyJWK(one)
        except jwt.PyJWTError:
            continue  # of a kind that nothing here is signed with
        if key.algorithm_name in ALGORITHMS:
            found[str(one.get("kid", ""))] = key
    return found


class OidcTokens:
    """Turn a provider's token into its caller, by the settings `oidc.*`."""

    def __init__(self, settings: Settings) -> None:
        """Check the settings; raises OperatorError."""
        oidc = self._settings = settings.oidc
        self._leeway = settings.jwt.leeway_seconds
        if not oidc.client_id:
            raise OperatorError(
                "signing in needs the name under which the provider knows Carrel",
                hint="set CARREL_OIDC__CLIENT_ID",
            )
        self.provider = Provider(oidc.issuer)
        self._listed = GroupFile(oidc.groups_file) if oidc.groups_file else None
        self._roles = [(group, checked_name("role", name)) for group, name in _pairs(oidc.roles)]
        self._tenants = [
            (group, checked_name("tenant", name)) for group, name in _pairs(oidc.tenants)
        ]

    def is_mine(self, token: str) -> bool:
        """Tell whether a token says that this provider made it, which nobody has checked yet."""
        try:
            claims = jwt.decode(token, options={"verify_signature": False})
        except jwt.PyJWTError:
            return False
        return claims.get("iss") == self._settings.issuer

    def fetch_for(self, token: str) -> None:
        """Fetch the provider's keys where this token may need it; blocks."""
        key_id = _header(token).get("kid")
        if self.provider.is_due(key_id):
            self.provider.refresh()

    def is_due(self, token: str) -> bool:
        """Tell whether `fetch_for` would fetch."""
        return self.provider.is_due(_header(token).get("kid"))

    def verified(self, token: str) -> AuthContext:
        """Return the caller of a token that a program sends, or raise NotAuthenticated."""
        audience = self._settings.audience or [self._settings.client_id]
        return self.caller(self._claims(token, audience))

    def signed_in(self, token: str, nonce: str) -> AuthContext:
        """Return the caller of the ID token that answers a login with this nonce."""
        claims = self._claims(token, [self._settings.client_id])
        party = claims.get("azp", self._settings.client_id)
        if claims.get("nonce") != nonce or party != self._settings.client_id:
            raise NotAuthenticated(INVALID, hint="sign in again")
        return self.caller(claims)

    def _claims(self, token: str, audience: list[str]) -> dict[str, Any]:
        header = _header(token)
        key = self.provider.key_of(header.get("kid"))
        kind = header.get("typ")
        try:
            if (kind.upper() if isinstance(kind, str) else kind) not in TYPES:
                raise jwt.InvalidTokenError
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[str(key.algorithm_name)],
                audience=audience,
                issuer=self._settings.issuer,
                leeway=self._leeway,
                options={"require": REQUIRED},
            )
            if "events" in claims:
                raise jwt.InvalidTokenError
        except jwt.PyJWTError:
            raise NotAuthenticated(INVALID, hint="ask for a new one") from None
        return claims

    def caller(self, claims: Mapping[str, Any]) -> AuthContext:
        """Return who the verified claims of a token stand for; raises NotAuthenticated."""
        user = self._user(claims)
        groups = _groups(claims, self._settings.groups_claim)
        if self._listed is not None:
            groups |= self._listed.groups_of(user)
        tenants = {name for group, name in self._tenants if group in groups}
        if len(tenants) > 1:
            raise NotAuthenticated("your groups name more than one tenant", hint="ask the operator")
        tenant = next(iter(tenants), self._settings.tenant)
        if not tenant:
            raise NotAuthenticated("none of your groups may use this", hint="ask the operator")
        try:
            return AuthContext(
                tenant=tenant,
                user=user,
                roles=frozenset(name for group, name in self._roles if group in groups),
            )
        except CallerError as error:
            raise NotAuthenticated(error.rule, hint="the operator sets oidc.user_claim") from None

    def _user(self, claims: Mapping[str, Any]) -> str:
        name = self._settings.user_claim
        user = claims.get(name)
        if not isinstance(user, str) or user.startswith(NOBODYS[1]) or user == NOBODYS[0]:
            raise NotAuthenticated(f"the token's {name} is no name of a user here")
        if name == EMAIL and claims.get("email_verified") is not True:
            raise NotAuthenticated("the provider has not verified your address")
        return user


def _pairs(entries: list[str]) -> list[tuple[str, str]]:
    return [paired(one) for one in entries]


def _header(token: str) -> dict[str, Any]:
    try:
        header: dict[str, Any] = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise NotAuthenticated(INVALID) from None
    return header


def _groups(claims: Mapping[str, Any], path: str) -> frozenset[str]:
    """Return the groups of a token; a claim whose name holds dots is found by it too."""
    found: Any = claims
    for part in [path] if path in claims else path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    listed = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return frozenset(one for one in listed if isinstance(one, str))
