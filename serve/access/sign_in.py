"""Signing in with a browser: the way to the provider and back, and who is signed in since."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlencode

import httpx2
from cachetools import TTLCache
from cryptography.fernet import Fernet, InvalidToken

from core.auth import AuthContext
from core.distribution import require_extra
from core.errors import OperatorError
from core.settings import Settings
from serve.access.oidc import INVALID, OidcTokens
from serve.errors import NotAuthenticated
from serve.telemetry.logs import log
from stores.coordination import Coordination, SharedCoordination

CALLBACK = "/login/callback"
WAY_SECONDS = 600  # how long a person may take at the provider; chosen
MOST_SIGNED_IN = 10_000  # the one signed in longest ago goes; chosen, not measured
FETCH_SECONDS = 10.0  # an exchange of a code for a token
AGAIN = "sign in again"


class BrowserSessions:
    """Remember who is signed in, under the hash of a secret that only their browser has.

    In memory alone: when the server ends, so does every session.
    """

    def __init__(self, seconds: float, now: Callable[[], float] = time.monotonic) -> None:
        """Let each session end after so many seconds."""
        self._kept: TTLCache[str, AuthContext] = TTLCache(MOST_SIGNED_IN, seconds, now)
        self._lock = threading.Lock()

    def begin(self, auth: AuthContext) -> str:
        """Sign a caller in and return the secret of the session."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._kept[_digest(secret)] = auth
        return secret

    def caller(self, secret: str) -> AuthContext | None:
        """Return who is signed in with this secret; None when nobody is, or no longer."""
        with self._lock:
            return self._kept.get(_digest(secret))

    def end(self, secret: str) -> AuthContext | None:
        """End a session; return whose it was."""
        with self._lock:
            return self._kept.pop(_digest(secret), None)

    def end_all_of(self, tenant: str, user: str) -> int:
        """End every session of a user; return how many there were."""
        with self._lock:
            of_user = [key for key, auth in self._kept.items() if _is(auth, tenant, user)]
            for key in of_user:
                del self._kept[key]
        return len(of_user)


class SharedSessions(BrowserSessions):
    """Remember who is signed in for all servers of a catalogue, which may end one by one."""

    def __init__(self, seconds: float, shared: SharedCoordination) -> None:
        """Let each session end after so many seconds."""
        super().__init__(seconds)
        self._seconds, self._shared = seconds, shared

    def begin(self, auth: AuthContext) -> str:
        """Sign a caller in at all servers."""
        secret = secrets.token_urlsafe(32)
        value = auth.model_dump(mode="json")
        self._shared.put("session", _digest(secret), value, self._seconds)
        return secret

    def caller(self, secret: str) -> AuthContext | None:
        """Return who is signed in."""
        found = self._shared.get("session", _digest(secret))
        return AuthContext.model_validate(found) if found else None

    def end(self, secret: str) -> AuthContext | None:
        """End a session at all servers."""
        found = self._shared.remove("session", _digest(secret))
        return AuthContext.model_validate(found[0]) if found else None

    def end_all_of(self, tenant: str, user: str) -> int:
        """End every session of a user at all servers."""
        return len(self._shared.remove("session", tenant=tenant, user=user))


def _is(auth: AuthContext, tenant: str, user: str) -> bool:
    return (auth.tenant, auth.user) == (tenant, user)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class SignIn:
    """Send a browser to the provider and check what it brings back.

    What must be known again then (state, nonce, the verifier of PKCE) is in a cookie of that
    browser, encrypted: another browser cannot finish a login, nor a page begin one for somebody.
    """

    def __init__(
        self, tokens: OidcTokens, settings: Settings, coordination: Coordination | None = None
    ) -> None:
        """Check that the packages are there; raises OperatorError."""
        require_extra("oidc", "signing in", otherwise="unset CARREL_OIDC__PUBLIC_URL")
        self._authlib: Any = import_module("authlib.integrations.httpx_client")  # of an extra
        self._tokens = tokens
        self._oidc = settings.oidc
        key, seconds = Fernet.generate_key(), 60.0 * settings.oidc.session_minutes
        self.sessions = BrowserSessions(seconds)
        if isinstance(coordination, SharedCoordination):
            key = coordination.agreed("way", key.decode()).encode()
            self.sessions = SharedSessions(seconds, coordination)
        self._way = Fernet(key)
        self.is_https = settings.oidc.public_url.startswith("https:")

    @property
    def home(self) -> str:
        """Return the address of the page, with a slash at its end."""
        return self._oidc.public_url.rstrip("/") + "/"

    @property
    def _redirect(self) -> str:
        return self._oidc.public_url.rstrip("/") + CALLBACK

    def begin(self) -> tuple[str, str]:
        """Return where the browser goes, and what it keeps meanwhile; may block."""
        way = {name: secrets.token_urlsafe(32) for name in ("state", "nonce", "code_verifier")}
        with self._client() as client:
            url, _ = client.create_authorization_url(self._address("authorization_endpoint"), **way)
        return str(url), self._way.encrypt(json.dumps(way).encode()).decode()

    def finish(self, given: Mapping[str, str], kept: str) -> AuthContext:
        """Return who signed in; `given` is the query, `kept` the cookie. Blocks.

        Raises NotAuthenticated for a way that this browser has not begun, and where the provider
        refuses.
        """
        try:
            way = json.loads(self._way.decrypt(kept, ttl=WAY_SECONDS))
        except (InvalidToken, TypeError):
            rule = "this browser has not begun to sign in, or too long ago"
            raise NotAuthenticated(rule, hint=AGAIN) from None
        if not hmac.compare_digest(given.get("state", "").encode(), way["state"].encode()):
            raise NotAuthenticated("the answer is to another sign-in", hint=AGAIN)
        if given.get("iss", self._oidc.issuer) != self._oidc.issuer:  # RFC 9207
            raise NotAuthenticated("the answer is of another provider", hint=AGAIN)
        if "code" not in given:
            raise NotAuthenticated("the provider did not let you in", hint=AGAIN)
        token = self._exchanged(given["code"], way["code_verifier"])
        self._tokens.fetch_for(token)
        return self._tokens.signed_in(token, way["nonce"])

    def _exchanged(self, code: str, verifier: str) -> str:
        """Return the ID token that the provider gives for a code."""
        try:
            with self._client() as client:
                found: Any = client.fetch_token(
                    self._address("token_endpoint"), code=code, code_verifier=verifier
                )
        except self._authlib.OAuthError as error:
            log.warning("the provider gave no token: %s", error)
            raise NotAuthenticated("the provider took no such code", hint=AGAIN) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            log.error("the provider gave no token: %s", error)
            raise OperatorError("the sign-in provider does not answer") from None
        token = found.get("id_token")
        if not isinstance(token, str):
            raise NotAuthenticated(INVALID, hint=AGAIN)
        return token

    def farewell(self) -> str:
        """Return where a browser goes to leave the provider too; "" where that has no such page."""
        page = self._tokens.provider.address("end_session_endpoint")
        asked = {"client_id": self._oidc.client_id, "post_logout_redirect_uri": self.home}
        return f"{page}{'&' if '?' in page else '?'}{urlencode(asked)}" if page else ""

    def _address(self, name: str) -> str:
        provider = self._tokens.provider
        if provider.is_due(None):
            provider.refresh()
        if not (url := provider.address(name)):
            raise OperatorError("the sign-in provider does not answer", value=self._oidc.issuer)
        return url

    def _client(self) -> Any:  # noqa: ANN401 - authlib carries no types
        secret = self._oidc.client_secret
        return self._authlib.OAuth2Client(
            client_id=self._oidc.client_id,
            client_secret=secret.get_secret_value() if secret else None,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            scope=self._oidc.scopes,
            redirect_uri=self._redirect,
            code_challenge_method="S256",
            timeout=FETCH_SECONDS,
            follow_redirects=False,
        )
