"""Signed tokens: what is accepted, and everything that is not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from core.errors import OperatorError
from core.settings import load_settings
from serve.access.auth import Tokens
from serve.errors import NotAuthenticated

SECRET = "k" * 32
GOOD = {"sub": "ann", "tenant": "acme", "roles": ["editor"], "aud": "carrel", "iss": "sso"}


def tokens(**values: Any) -> Tokens:
    given = {"jwt_key": SECRET, "jwt_audience": "carrel", "jwt_issuer": "sso"} | values
    return Tokens(load_settings(given)[0])


def signed(key: str = SECRET, algorithm: str = "HS256", **changes: Any) -> str:
    claims = GOOD | {"exp": int(time.time()) + 300} | changes
    return jwt.encode({k: v for k, v in claims.items() if v is not None}, key, algorithm)


def test_a_token_is_its_caller() -> None:
    auth = tokens().verified(signed())
    assert (auth.tenant, auth.user, auth.roles) == ("acme", "ann", {"editor"})
    assert tokens().verified(signed(roles=None)).roles == frozenset()
    assert tokens().verified(signed(exp=int(time.time()) - 30)).user == "ann"  # clocks differ


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"sub": None},
        {"sub": ""},
        {"sub": "a/b"},
        {"tenant": None},
        {"tenant": 3},
        {"tenant": "a b"},
        {"roles": "admin"},
        {"roles": [1]},
        {"roles": ["a b"]},
        {"aud": "other"},
        {"aud": None},
        {"iss": "other"},
        {"iss": None},
        {"nbf": int(time.time()) + 4000},
        {"key": "x" * 32},
        {"algorithm": "HS512", "key": "k" * 64},
    ],
)
def test_any_other_token_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(NotAuthenticated):
        tokens().verified(signed(**changes))


def test_a_token_without_a_signature_is_refused() -> None:
    plain = jwt.encode(GOOD | {"exp": int(time.time()) + 300}, None, "none")
    for text in (plain, "", "a.b.c", signed()[:-3] + "AAA"):
        with pytest.raises(NotAuthenticated):
            tokens().verified(text)


def pem(path: Path, private: Any, *, public: bool) -> Path:
    if public:
        data = private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    else:
        data = private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    path.write_bytes(data)
    return path


def test_a_public_key_checks_and_is_no_secret(tmp_path: Path) -> None:
    private = ed25519.Ed25519PrivateKey.generate()
    path = pem(tmp_path / "key.pem", private, public=True)
    checks = tokens(jwt_key=None, jwt_public_key=path, jwt_algorithm="EdDSA")
    claims = GOOD | {"exp": int(time.time()) + 300}
    assert checks.verified(jwt.encode(claims, private, "EdDSA")).user == "ann"
    with pytest.raises(NotAuthenticated):  # the public key, used as if it were a secret
        checks.verified(signed(key=SECRET))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"jwt_audience": ""}, "audience"),
        ({"jwt_key": "short"}, "at least 32 bytes"),
        ({"jwt_algorithm": "RS256"}, "jwt.public_key"),
        ({"jwt_public_key": "missing.pem"}, "HS256 takes jwt.key"),
        ({"jwt_key": None, "jwt_public_key": "missing.pem", "jwt_algorithm": "ES256"}, "PEM file"),
    ],
)
def test_settings_that_do_not_fit_stop_the_start(values: dict[str, Any], words: str) -> None:
    with pytest.raises(OperatorError, match=words) as refused:
        tokens(**values)
    assert "short" not in str(refused.value)


def test_a_private_key_is_not_taken(tmp_path: Path) -> None:
    path = pem(tmp_path / "key.pem", ec.generate_private_key(ec.SECP256R1()), public=False)
    with pytest.raises(OperatorError, match="private key"):
        tokens(jwt_key=None, jwt_public_key=path, jwt_algorithm="ES256")


def test_without_a_key_no_token_is_good() -> None:
    none = tokens(jwt_key=None)
    assert not none.enabled
    with pytest.raises(NotAuthenticated):
        none.verified(signed())
