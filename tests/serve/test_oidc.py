"""Signing in through a real provider of OpenID Connect, and everything that is no sign-in."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from oidc_provider import provider
from serving import error_of, running

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError, OperatorError
from core.settings import Settings, load_settings
from serve.access import oidc
from serve.access.auth import Authenticator
from serve.access.sign_in import BrowserSessions, SignIn
from serve.errors import NotAuthenticated
from serve.services import AppState, make_app_state

BROWSER = {"Sec-Fetch-Site": "none"}


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    with provider() as url:
        yield url


def settings_for(issuer: str, session: Session, **more: Any) -> Settings:
    given = {
        "data": session.settings.data,
        "oidc.issuer": issuer,
        "oidc.client_id": "carrel",
        "oidc.client_secret": "between us",
        "oidc.public_url": "http://127.0.0.1:1",
        "oidc.tenant": "acme",
        "oidc.roles": "authors=editor, bosses=admin",
        "oidc.tenants": "zoo keepers=zoo",
        "oidc.user_claim": "preferred_username",
        "jwt.leeway_seconds": 0,
        "serve.wrong_keys": 0,  # tests send more than people
    }
    return load_settings({**given, **more})[0]


def services_for(issuer: str, session: Session, **more: Any) -> AppState:
    other = copy.copy(session)
    other.settings = settings_for(issuer, session, **more)
    return make_app_state(other)


@pytest.fixture(scope="module")
def served(issuer: str, session: Session) -> Iterator[tuple[str, AppState]]:
    services = services_for(issuer, session)
    with running(services) as url:
        yield url, services


def name_user(issuer: str, sub: str, **claims: Any) -> None:
    claims = {"preferred_username": sub, **claims}
    assert httpx.put(f"{issuer}/users/{sub}", json=claims).status_code == 204


def begun(browser: httpx.Client) -> str:
    """Begin to sign in; return where the provider sends the browser back, let in or not."""
    response = browser.get("/login", headers=BROWSER)
    assert response.status_code == 303, response.text
    return response.headers["location"]


def let_in(place: str, sub: str, **form: str) -> str:
    """Say who one is to the provider; return the query that it sends back."""
    back = httpx.post(place, data={"sub": sub, **form})
    assert back.status_code == 302, back.text
    assert back.headers["location"].startswith("http://127.0.0.1:1/login/callback?")
    return urlsplit(back.headers["location"]).query


def finished(browser: httpx.Client, query: str) -> httpx.Response:
    return browser.get(f"/login/callback?{query}", headers=BROWSER)


@contextmanager
def signed_in(url: str, sub: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as browser:
        done = finished(browser, let_in(begun(browser), sub))
        assert (done.status_code, done.headers["location"]) == (303, "http://127.0.0.1:1/")
        yield browser


def collections(browser: httpx.Client) -> set[str]:
    listed = browser.get("/api/v1/collections").json()["collections"]
    return {one["name"] for one in listed}


def claims(issuer: str, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    given = {"iss": issuer, "aud": "carrel", "sub": "7", "iat": now, "exp": now + 60}
    given |= {"preferred_username": "ann", "groups": ["authors"]} | changes
    return {name: value for name, value in given.items() if value is not None}


def signed(issuer: str, header: dict[str, Any] | None = None, **changes: Any) -> str:
    """Return a token that the provider itself has signed."""
    body = {"header": header or {}, "claims": claims(issuer, **changes)}
    return httpx.post(f"{issuer}/sign", json=body).text


def me(url: str, token: str) -> httpx.Response:
    return httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"})


def test_a_browser_signs_in_and_out(issuer: str, served: tuple[str, AppState]) -> None:
    url, services = served
    assert httpx.get(f"{url}/api/v1/health").json()["login"] == "/login"
    name_user(issuer, "bea", groups=["authors", "strangers"])
    with signed_in(url, "bea") as browser:
        (cookie,) = browser.cookies.jar
        assert (cookie.name, cookie.path) == ("carrel", "/")
        assert {name.lower() for name in cookie._rest} == {"httponly", "samesite"}  # type: ignore[attr-defined]
        found = browser.get("/api/v1/me").json()
        assert (found["tenant"], found["user"], found["roles"]) == ("acme", "bea", ["editor"])
        assert found["signed_in"] and not found["anonymous"]
        assert collections(browser) == {"guide", "closed"}
        kept = browser.cookies["carrel"]
        left = browser.post("/logout").json()["provider"]
        assert left.startswith(f"{issuer}/oauth2/end_session?client_id=carrel&post_logout_redirect")
        assert browser.get("/api/v1/me").status_code == 401
        browser.cookies.set("carrel", kept)
        assert browser.get("/api/v1/me").status_code == 401
        assert browser.post("/logout").json() == {"provider": ""}


def test_a_group_taken_away_ends_its_rights_at_the_next_token(
    issuer: str, served: tuple[str, AppState]
) -> None:
    name_user(issuer, "carl", groups=["authors"])
    with signed_in(served[0], "carl") as browser:
        assert "closed" in collections(browser)
    name_user(issuer, "carl", groups=[])
    with signed_in(served[0], "carl") as browser:
        assert collections(browser) == {"guide"}


def test_a_session_ends_by_its_time_and_by_an_admin(
    issuer: str, served: tuple[str, AppState]
) -> None:
    url = served[0]
    name_user(issuer, "dora")
    name_user(issuer, "ed", groups=["bosses"])
    with signed_in(url, "dora") as dora, signed_in(url, "ed") as ed:
        assert dora.delete("/api/v1/sessions", params={"user": "ed"}).status_code == 403
        assert ed.delete("/api/v1/sessions", params={"user": "dora"}).json() == {"ended": 1}
        assert (dora.get("/api/v1/me").status_code, ed.get("/api/v1/me").status_code) == (401, 200)
    clock = [0.0]
    sessions = BrowserSessions(60, lambda: clock[0])
    secret = sessions.begin(AuthContext(tenant="acme", user="dora"))
    clock[0] = 59.0
    assert sessions.caller(secret) and not sessions.caller(secret[:-1])
    clock[0] = 61.0
    assert sessions.caller(secret) is None


def test_pages_of_other_sites_get_nothing_of_a_session(
    issuer: str, served: tuple[str, AppState]
) -> None:
    name_user(issuer, "fay")
    with signed_in(served[0], "fay") as browser:
        for site in ("cross-site", "same-site"):
            got = browser.get("/api/v1/me", headers={"Sec-Fetch-Site": site})
            assert got.status_code == 401
        sent = browser.post("/logout", headers={"Origin": "https://evil.example"})
        assert error_of(sent)["code"] == "wrong_origin"
        assert browser.get("/api/v1/me").status_code == 200


def test_only_the_browser_that_began_finishes_once(
    issuer: str, served: tuple[str, AppState]
) -> None:
    url = served[0]
    name_user(issuer, "gus")
    with httpx.Client(base_url=url) as browser, httpx.Client(base_url=url) as other:
        query = let_in(begun(browser), "gus")
        asked = parse_qs(query)
        refused = [
            finished(other, query),  # a login that somebody else began
            finished(browser, f"code={asked['code'][0]}&state=x"),
            finished(browser, f"code={asked['code'][0]}"),
            finished(browser, query + "&iss=https%3A%2F%2Fevil.example"),
            finished(browser, f"state={asked['state'][0]}&error=access_denied"),
            finished(browser, f"state={asked['state'][0]}&code=guessed"),
        ]
        begun(other)
        refused.append(finished(other, query))  # its own cookie, another's answer
        assert [one.status_code for one in refused] == [401] * len(refused)
        assert all("\n" not in error_of(one)["message"] for one in refused)
        assert not any("carrel" in one.cookies for one in refused)
        kept = browser.cookies["carrel_login"]
        assert finished(browser, query).status_code == 303
        assert "carrel_login" not in browser.cookies
        browser.cookies.set("carrel_login", kept)
        assert finished(browser, query).status_code == 401  # the provider takes a code once


def test_a_nonce_of_another_login_is_no_good(issuer: str, session: Session) -> None:
    tokens = oidc.OidcTokens(settings_for(issuer, session))
    token = signed(issuer, nonce="n")
    tokens.fetch_for(token)
    assert tokens.signed_in(token, "n").user == "ann"
    for text, nonce in ((token, "m"), (signed(issuer), ""), (signed(issuer, nonce=None), "n")):
        with pytest.raises(NotAuthenticated):
            tokens.signed_in(text, nonce)
    with pytest.raises(NotAuthenticated):  # made for another program that shares the provider
        tokens.signed_in(signed(issuer, nonce="n", aud=["carrel", "b"], azp="b"), "n")


def test_programs_send_tokens(issuer: str, served: tuple[str, AppState]) -> None:
    found = me(served[0], signed(issuer)).json()
    assert (found["tenant"], found["user"], found["roles"]) == ("acme", "ann", ["editor"])
    assert not found["signed_in"]
    assert me(served[0], signed(issuer, {"typ": "at+jwt"}, aud=["x", "carrel"])).status_code == 200
    assert me(served[0], signed(issuer, groups=["zoo keepers"])).json()["tenant"] == "zoo"
    assert me(served[0], signed(issuer, groups="authors")).json()["roles"] == ["editor"]


@pytest.mark.parametrize(
    ("header", "changes"),
    [
        ({}, {"iss": "https://evil.example"}),
        ({}, {"iss": None}),
        ({}, {"aud": "another"}),
        ({}, {"aud": None}),
        ({}, {"exp": 1}),
        ({}, {"exp": None}),
        ({}, {"iat": None}),
        ({}, {"iat": 4_000_000_000, "exp": 4_000_000_060}),
        ({}, {"sub": None}),
        ({}, {"nbf": 4_000_000_000}),
        ({}, {"preferred_username": None}),
        ({}, {"preferred_username": "local"}),  # the caller without a key
        ({}, {"preferred_username": "key.0123456789ab"}),
        ({}, {"preferred_username": "a/b"}),
        ({}, {"preferred_username": 7}),
        ({}, {"preferred_username": "x" * 65}),
        ({"typ": "logout+jwt"}, {}),
        ({}, {"events": {"http://schemas.openid.net/event/backchannel-logout": {}}}),
        ({"alg": "RS512"}, {}),  # the key is for RS256
        ({"kid": "unknown"}, {}),
    ],
)
def test_any_other_token_is_refused_in_one_line(
    issuer: str, served: tuple[str, AppState], header: dict[str, Any], changes: dict[str, Any]
) -> None:
    refused = me(served[0], signed(issuer, header, **changes))
    assert refused.status_code == 401, refused.text
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "\n" not in error_of(refused)["message"]


def test_forged_signatures_are_refused(issuer: str, served: tuple[str, AppState]) -> None:
    (key,) = httpx.get(f"{issuer}/jwks").json()["keys"]
    stranger = rsa.generate_private_key(65537, 2048)
    good = claims(issuer)
    public = jwt.PyJWK(key).key.public_numbers().n.to_bytes(256, "big")
    head, body, _ = signed(issuer).split(".")
    forged = [
        jwt.encode(good, None, "none"),
        jwt.encode(good, stranger, "RS256"),
        jwt.encode(good, stranger, "RS256", headers={"kid": key["kid"]}),
        jwt.encode(good, stranger, "RS256", headers={"jku": "https://evil.example/jwks"}),
        jwt.encode(good, public, "HS256", headers={"kid": key["kid"]}),  # what everybody can read
        f"{head}.{body}.",
        f"{head}.{body}.AAAA",
        "a.b.c",
        "nonsense",
    ]
    assert [me(served[0], one).status_code for one in forged] == [401] * len(forged)


def test_groups_and_names_by_other_settings(issuer: str, session: Session) -> None:
    def caller(given: dict[str, Any], **more: Any) -> Any:
        return oidc.OidcTokens(settings_for(issuer, session, **more)).caller(claims("", **given))

    keycloak = {"groups": None, "realm_access": {"roles": ["authors"]}}
    assert caller(keycloak, **{"oidc.groups_claim": "realm_access.roles"}).roles == {"editor"}
    dotted = {"https://a.example/groups": ["bosses"]}
    assert caller(dotted, **{"oidc.groups_claim": "https://a.example/groups"}).roles == {"admin"}
    for odd in (None, 7, {"authors": 1}, [7, ["authors"]]):
        assert caller({"groups": odd}).roles == set()
    assert caller({"groups": ["admin", "editor"]}).roles == set()  # only groups that are named
    assert caller({}, **{"oidc.user_claim": "sub"}).user == "7"
    by_email = {"oidc.user_claim": "email"}
    assert caller({"email": "a@b.c", "email_verified": True}, **by_email).user == "a@b.c"
    for unsure in (None, False, "true"):
        with pytest.raises(NotAuthenticated):
            caller({"email": "a@b.c", "email_verified": unsure}, **by_email)
    with pytest.raises(NotAuthenticated, match="none of your groups"):
        caller({}, **{"oidc.tenant": ""})
    with pytest.raises(NotAuthenticated, match="more than one tenant"):
        caller({"groups": ["a", "b"]}, **{"oidc.tenants": "a=x,b=y"})


def test_groups_come_from_a_file_too(issuer: str, session: Session, tmp_path: Path) -> None:
    file = tmp_path / "groups.csv"
    file.write_text("\ufeffuser,group\nada,authors\n\nada, bosses\nbob,authors\n")
    settings = settings_for(issuer, session, **{"oidc.groups_file": str(file)})
    tokens = oidc.OidcTokens(settings)

    def roles() -> frozenset[str]:
        return tokens.caller(claims("", groups=[], preferred_username="ada")).roles

    assert roles() == {"editor", "admin"}
    assert tokens.caller(claims("", groups=[], preferred_username="eve")).roles == set()
    file.write_text("user,group\nada,authors\n")
    assert roles() == {"editor"}
    file.write_text("user,group\nada\n")  # with a mistake: those of before
    assert roles() == {"editor"}
    file.unlink()
    assert roles() == {"editor"}
    for bad in ("", "name,group\n", "user,group\nada,\n", "user,group\nada,a,b\n"):
        file.write_text(bad)
        with pytest.raises(OperatorError, match="CSV of users and groups.*groups.csv"):
            oidc.OidcTokens(settings)


def test_keys_and_tokens_of_the_jwt_settings_work_beside(issuer: str, session: Session) -> None:
    own = {"jwt.key": "k" * 32, "jwt.audience": "carrel", "jwt.issuer": "sso"}
    services = services_for(issuer, session, **own)
    with running(services) as url:
        text = jwt.encode(
            claims("sso", tenant="acme", roles=["writer"], sub="bob"), "k" * 32, "HS256"
        )
        assert me(url, text).json()["user"] == "bob"
        assert me(url, signed(issuer)).json()["user"] == "ann"
        assert me(url, signed(issuer, iss="sso")).status_code == 401  # neither has signed it so
        swapped = jwt.encode(claims(issuer, tenant="acme"), "k" * 32, "HS256")
        assert me(url, swapped).status_code == 401
    assert services.authenticator.takes_tokens and not services.authenticator.has_no_key


def test_a_provider_that_does_not_answer_stops_nobody_with_a_key(session: Session) -> None:
    silent = "http://127.0.0.1:9"
    services = services_for(silent, session)
    text, _ = services.keys.create("acme", user="ivy")
    with running(services) as url:
        assert me(url, text).json()["user"] == "ivy"
        began = time.monotonic()
        assert me(url, jwt.encode(claims(silent), "k" * 32)).status_code == 503
        refused = httpx.get(f"{url}/login")
        assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")
        assert "127.0.0.1:9" not in refused.text and time.monotonic() - began < 5


def test_keys_are_fetched_seldom_whatever_is_sent(
    issuer: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    real = oidc._fetch
    monkeypatch.setattr(oidc, "_fetch", lambda url: fetched.append(url) or real(url))
    tokens = oidc.OidcTokens(settings_for(issuer, session))
    for number in range(20):
        invented = signed(issuer, {"kid": f"invented{number}"})
        tokens.fetch_for(invented)
        with pytest.raises(NotAuthenticated):
            tokens.verified(invented)
    assert len(fetched) == 2  # the document and the keys, once


def test_a_provider_that_calls_itself_otherwise_is_not_believed(
    issuer: str, session: Session
) -> None:
    other = issuer.replace("127.0.0.1", "localhost")
    tokens = oidc.OidcTokens(settings_for(other + "/", session))
    tokens.provider.refresh()
    with pytest.raises(OperatorError, match="does not answer"):
        tokens.provider.key_of(None)
    for unsafe in ({"jwks_uri": "http://example.org/keys"}, {"jwks_uri": 7}, {}):
        with pytest.raises(ValueError, match="no https address"):
            oidc._address(unsafe, "jwks_uri")
    keys = [{"kty": "oct", "k": "AAAA", "kid": "a"}, {"kty": "RSA", "use": "enc"}, 7, {"kty": "?"}]
    assert oidc._signing_keys({"keys": keys}) == {}


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"oidc.issuer": "http://example.org"}, "https"),
        ({"oidc.issuer": "https://a@b"}, "https"),
        ({"oidc.public_url": "ftp://a"}, "https"),
        ({"oidc.roles": "=x"}, "GROUP=NAME"),
        ({"oidc.roles": "a="}, "GROUP=NAME"),
        ({"oidc.roles": "a=b c"}, "a role is"),
        ({"oidc.client_id": ""}, "CARREL_OIDC__CLIENT_ID"),
        ({"oidc.session_minutes": 0}, "oidc.session_minutes"),
    ],
)
def test_settings_that_cannot_be_right_are_refused(
    session: Session, changes: dict[str, Any], rule: str
) -> None:
    with pytest.raises((CallerError, OperatorError), match=rule) as refused:
        Authenticator(session.accounts.keys, settings_for("https://id.example", session, **changes))
    assert "between us" not in str(refused.value)


def test_cookies_over_https_belong_to_this_host_alone(session: Session) -> None:
    services = services_for(
        "https://id.example", session, **{"oidc.public_url": "https://carrel.example/"}
    )
    sign_in = services.authenticator.sign_in
    assert isinstance(sign_in, SignIn)
    assert sign_in.is_https and sign_in.home == "https://carrel.example/"
