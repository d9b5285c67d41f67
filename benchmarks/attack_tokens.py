"""Signed tokens that are not what they seem, at servers that check with a secret and with a key."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from benchmarks.attack_world import CALLERS, SECRET, Tally, World, attacked, claims_of, encoded
from benchmarks.attack_world import token as hashed_token

HEADER = {"alg": "HS256", "typ": "JWT"}
NAMES = ("../zoo", "acme/../zoo", "acme\x00zoo", "acme zoo", "", "acme'--", "*", "a" * 65, "a:b",
         "acme\u202e", "user:eve", "\ud800", "acme\n")  # fmt: skip
ODD: tuple[Any, ...] = (None, 1.5, -1, [], {}, [[]], "", 1e400, float("nan"), [1], {"acme": 1})
AUDIENCES = ("other", "Carrel", "carrel ", "carre", "carrell", ["x"], [], {}, None, 1, "")
ISSUERS = ("other", "SSO", "ss", "s", ["sso"], {"sso": 1}, None, 1, "", "ssso", "sso ")
ROLES = ("admin", "admin,board", {"admin": 1}, {"0": "admin"}, None, 1, True, [["admin"]], [None],
         [1], [{"a": 1}], ["admin", ""], ["a b"], ["user:eve"], ["*"], ["admin\x00"])  # fmt: skip
HEADERS = ({"crit": ["x"]}, {"kid": [1]}, {"kid": 1}, {"crit": ["b64"], "b64": False})
PAYLOADS = (b"[]", b"1", b"null", b'"x"', b"", b"{", b"[" * 2000, b'{"a":' * 600)
Case = tuple[str, str]


class Keys:
    """Make tokens as the owner of one kind of key would, and as somebody without it."""

    def __init__(self, symmetric: bool, folder: Path) -> None:
        """Make keys; a public one is written to a file."""
        self.symmetric = symmetric
        made = [rsa.generate_private_key(65537, 2048) for _ in range(2)]
        self.private, self.foreign = made
        shown = [key.public_key() for key in made]
        self.jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(shown[1]))
        forms = (
            (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
            (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
            (serialization.Encoding.PEM, serialization.PublicFormat.PKCS1),
        )
        self.public = [shown[0].public_bytes(*form) for form in forms]
        self.path = folder / "public.pem"
        self.path.write_bytes(self.public[0])

    @property
    def settings(self) -> tuple[list[str], dict[str, str]]:
        """Return the settings and variables of a server that checks with this kind of key."""
        if self.symmetric:
            return ["reasoner=rules"], {}
        chosen = [f"jwt_public_key={self.path}", "jwt_algorithm=RS256"]
        return ["reasoner=rules", *chosen], {"CARREL_JWT__KEY": ""}

    def good(self, header: dict[str, Any], claims: dict[str, Any] | bytes) -> str:
        """Sign as the owner."""
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        if self.symmetric:
            return hashed_token(json.dumps({**HEADER, **header}).encode(), payload)
        return self.signed(self.private, header, payload)

    def signed(self, private: rsa.RSAPrivateKey, header: dict[str, Any], payload: bytes) -> str:
        """Sign with a private key."""
        first = encoded(json.dumps({**HEADER, "alg": "RS256", **header}).encode())
        text = f"{first}.{encoded(payload)}"
        algorithm = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256)
        return f"{text}.{encoded(algorithm.sign(text.encode(), private))}"


def forged(keys: Keys, draw: random.Random, address: str) -> Iterator[Case]:
    """Yield tokens of somebody without the key, for ever."""
    while True:
        claims = claims_of(draw.choice(["admin", "other", "board"]))
        payload = json.dumps(claims).encode()
        name = draw.choice(["none", "None", "NONE", "nOnE", "", "HS256 ", "hs256", "RS256", "HS1"])
        unsigned = f"{encoded(json.dumps({'alg': name}).encode())}.{encoded(payload)}"
        yield "alg none", unsigned + draw.choice([".", "", ".AA", f".{encoded(b'x' * 32)}"])
        odd = draw.choice([None, [], {}, ["none", "HS256"], 0, True])
        yield "alg odd", hashed_token(json.dumps({"alg": odd}).encode(), payload, b"")
        for public in keys.public:  # the public key as if it were a secret
            algorithm, hashing = draw.choice([("HS256", "sha256"), ("HS512", "sha512")])
            header = json.dumps({"alg": algorithm}).encode()
            yield "alg confusion", hashed_token(header, payload, public, hashing)
        header = json.dumps({"alg": draw.choice(["RS256", "ES256", "EdDSA", "PS256"])}).encode()
        yield "alg confusion", hashed_token(header, payload, draw.choice(keys.public))
        # The key itself names the key; an address to fetch it from must not be asked.
        added: dict[str, Any] = draw.choice(
            [{"jwk": keys.jwk}, {"jku": address}, {"x5u": address}, {"jwk": keys.jwk, "kid": "0"}]
        )
        yield "embedded key", keys.signed(keys.foreign, added, payload)
        kid = draw.choice(
            ["../../../../dev/null", "' UNION SELECT '", "/dev/null", "x\x00", "| id"]
        )
        yield "kid", hashed_token(json.dumps({**HEADER, "kid": kid}).encode(), payload, b"")
        good = keys.good({}, claims)
        head, body, mark = good.split(".")
        other = encoded(json.dumps({**claims, "roles": ["admin", "board"]}).encode())
        yield "payload exchanged", f"{head}.{other}.{mark}"
        yield "signature cut", good[: draw.randrange(len(good) - 2)]
        place = draw.randrange(len(good) - 1)  # the last character may hold unused bits
        changed = draw.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef0123456789-_")
        if good[place] not in f".{changed}":
            yield "one character", good[:place] + changed + good[place + 1 :]
        parts = [f"{good}.{mark}", f"{good}.", f".{good}", f"{head}..{mark}", "..", "a.b.c", body]
        yield "segments", draw.choice([*parts, f"{good}.{mark}.{mark}"])
        yield "oversized", good + "A" * draw.choice([4096, 20_000, 60_000])
        deep = b"[" * draw.choice([500, 1500, 2900])
        yield "deep header", f"{encoded(deep)}.{encoded(payload)}.{mark}"


def unfit(keys: Keys, draw: random.Random) -> Iterator[Case]:
    """Yield tokens that the owner of the key signed and that are no good here, for ever."""
    now = int(time.time())
    while True:
        claims = claims_of("admin")
        back, ahead = now - draw.randrange(70, 10**9), now + draw.randrange(100, 10**9)
        gone = draw.choice(["exp", "sub", "tenant", "aud", "iss"])
        changes: dict[str, dict[str, Any]] = {
            "expired": {"exp": back},
            "not yet": {draw.choice(["nbf", "iat"]): ahead},
            "audience": {"aud": draw.choice(AUDIENCES)},
            "issuer": {"iss": draw.choice(ISSUERS)},
            "roles": {"roles": draw.choice(ROLES)},
            "tenant or user": {draw.choice(["tenant", "sub"]): draw.choice(NAMES)},
            "types": {draw.choice(["tenant", "sub", "exp"]): draw.choice(ODD)},
        }
        for what, changed in changes.items():
            yield what, keys.good({}, claims | changed)
        yield "claim missing", keys.good({}, {k: v for k, v in claims.items() if k != gone})
        yield "header", keys.good(draw.choice(HEADERS), claims)
        yield "not an object", keys.good({}, draw.choice(PAYLOADS))


def accepted(keys: Keys, draw: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield good tokens with things in them that must change nothing, and whose they are."""
    while True:
        kind = draw.choice(list(CALLERS))
        claims = claims_of(kind)
        more = {"role": "admin", "acl": ["board"], "scope": "admin", "user": "eve", "Tenant": "zoo",
                "groups": ["board"], "allowed_sources": ["*"], "version_policy": "any"}  # fmt: skip
        header = draw.choice([{}, {"kid": "1"}, {"kid": "../x"}, {"jwk": keys.jwk}, {"x5c": ["x"]}])
        yield "other claims", keys.good(header, claims | more), kind
        # RFC 7519, section 4: the last of two members of one name is the one that counts.
        text = json.dumps({"roles": ["admin"], "tenant": "zoo", "sub": "zed"})[:-1]
        twice = f"{text}, {json.dumps(claims)[1:]}"
        yield "claims twice", keys.good({}, twice.encode()), kind


def attack_tokens(folder: Path, cases: int, seed: int) -> Iterable[Tally]:
    """Send tokens to a server for each setting; only good ones may get in, as who they name."""
    for symmetric in (True, False):
        below = folder / ("secret" if symmetric else "public")
        below.mkdir()
        keys = Keys(symmetric, below)
        settings, variables = keys.settings
        with (
            listening() as (address, connected),
            attacked(below, settings, variables=variables) as world,
        ):
            tallies = send_all(world, keys, random.Random(seed), max(1, cases // 2), address)
            tallies.append(
                Tally(f"tokens, {_kind(keys)}: keys fetched from an address they name", 1)
            )
            if connected:
                tallies[-1].broken.append(f"{len(connected)} connections")
            if (wrong := world.server_errors()) or world.tracebacks():
                tallies[0].broken.append(f"{wrong} x 5xx, {world.tracebacks()} tracebacks")
            yield from tallies


def send_all(
    world: World, keys: Keys, draw: random.Random, cases: int, address: str
) -> list[Tally]:
    """Send a third of each kind, the good ones between the bad ones."""
    kind = _kind(keys)
    bad, good = Tally(f"tokens, {kind}: forged or unfit"), Tally(f"tokens, {kind}: good, with more")
    outside, inside = forged(keys, draw, address), unfit(keys, draw)
    fine = accepted(keys, draw)
    seen: Counter[str] = Counter()
    with httpx.Client(base_url=world.url, timeout=60, verify=False) as client:
        for number in range(cases):
            if number % 3 == 2:
                what, text, who = next(fine)
                got = client.get("/api/v1/me", headers={"Authorization": f"Bearer {text}"})
                tenant, user, roles = CALLERS[who]
                me = got.json()
                same = got.status_code == 200 and (me["tenant"], me["user"]) == (tenant, user)
                good.check(same and me["roles"] == sorted(roles), f"{what}: {got.text[:200]}")
                continue
            what, text = next((outside, inside)[number % 3])
            seen[what] += 1
            got = client.get("/api/v1/me", headers={"Authorization": f"Bearer {text}"})
            # A head that is too long never comes to be looked at.
            refused = got.status_code == 401 or (
                what == "oversized" and got.status_code in (400, 431)
            )
            quiet = SECRET not in got.text and "Traceback" not in got.text
            bad.check(refused and quiet, f"{what}: {got.status_code} {text[:200]}")
    bad.note = f"{len(seen)} kinds"
    return [bad, good]


def _kind(keys: Keys) -> str:
    return "HS256" if keys.symmetric else "RS256"


class listening:  # noqa: N801 - used as a function
    """Listen on a port that nothing may ask; give its address and who connected."""

    def __enter__(self) -> tuple[str, list[str]]:
        self._socket = socket.create_server(("127.0.0.1", 0))
        connected: list[str] = []

        def accept() -> None:
            while True:
                try:
                    sock, _ = self._socket.accept()
                except OSError:
                    return
                connected.append("asked")
                sock.close()

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/jwks.json", connected

    def __exit__(self, *_: object) -> None:
        self._socket.close()
