"""A served data directory to attack: two tenants, hidden documents, callers of every kind.

`attacked(folder)` ingests, serves in a process of its own and gives a `World`. Each document that
somebody may not see holds a word of `MARKS`, which stands nowhere else.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from cli.upkeep.ingest import run_ingest

CARREL = "from cli.app import main; main()"
SECRET = "attack-key-of-at-least-32-bytes!"
AUDIENCE, ISSUER = "carrel", "sso"
COLLECTION = "guide"
MARKS = {"board": "HIDDENBOARDZQ", "zoo": "HIDDENZOOZQ"}
OPEN = {
    "travel.txt": "Travel\n\nThe travel budget of the Lyon office is 4200 euros in 2024. Anna Roth"
    " signs the travel requests of the Lyon office. Trains come before planes.\n",
    "candle.md": "# Candles\n\nThe maximum height of the candle flame is 42 mm. A candle burns"
    " because the wick draws melted wax up to the flame.\n",
}
CORPORA = (
    ("acme", COLLECTION, "", OPEN),
    ("acme", COLLECTION, "board", {"board.txt": f"The merger code word is {MARKS['board']}.\n"}),
    ("acme", "closed", "board", {"plan.txt": f"The secret plan is {MARKS['board']}.\n"}),
    ("zoo", COLLECTION, "", {"mole.txt": f"The mole of the zoo is {MARKS['zoo']}.\n"}),
)
CALLERS: dict[str, tuple[str, str, list[str]]] = {
    "user": ("acme", "ann", []),
    "writer": ("acme", "wim", ["writer"]),
    "board": ("acme", "eve", ["board"]),
    "admin": ("acme", "ada", ["admin"]),
    "other": ("zoo", "zed", ["admin", "writer"]),
}
UNLIMITED = ("serve_ask_rate=0", "serve_rate=0", "serve_wrong_keys=0")
LONG = 100_000  # seconds that a token is good for


@dataclass
class Tally:
    """Count attempts of one kind and keep what broke."""

    what: str
    tried: int = 0
    broken: list[str] = field(default_factory=list)
    note: str = ""

    def check(self, good: bool, said: str) -> None:
        """Count one attempt; `said` tells what broke when it is not good."""
        self.tried += 1
        if not good:
            self.broken.append(said)


@dataclass
class World:
    """Hold a running server and how its callers sign in."""

    url: str
    pid: int
    data: Path
    log: Path

    def client(self, kind: str = "") -> httpx.Client:
        """Return a client that calls as one of CALLERS, "" without a key."""
        headers = {"Authorization": f"Bearer {token_of(kind)}"} if kind else {}
        # No certificates: reading them takes longer than most requests here.
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, verify=False)

    def threads(self) -> int:
        """Return how many threads the server has."""
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def resident(self) -> int:
        """Return the server's resident memory in bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096

    def server_errors(self) -> int:
        """Return how many answers had a status of 500 or more but 503, which says "busy"."""
        with self.client("admin") as client:
            lines = client.get("/metrics").text.splitlines()
        wrong = (line for line in lines if 'status="5' in line and 'status="503"' not in line)
        return int(sum(float(line.rsplit(" ", 1)[1]) for line in wrong if "_total" in line))

    def tracebacks(self) -> int:
        """Return how many tracebacks the server wrote."""
        return self.log.read_text(errors="replace").count("Traceback")


def encoded(raw: bytes) -> str:
    """Encode a part of a token."""
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(
    header: bytes, payload: bytes, key: bytes = SECRET.encode(), hashed: str = "sha256"
) -> str:
    """Sign any bytes as a token, also those that no library would."""
    signed = f"{encoded(header)}.{encoded(payload)}"
    return f"{signed}.{encoded(hmac.new(key, signed.encode(), hashed).digest())}"


def claims_of(kind: str = "user") -> dict[str, Any]:
    """Return the claims of a good token."""
    tenant, user, roles = CALLERS[kind]
    given = {"sub": user, "tenant": tenant, "roles": roles, "aud": AUDIENCE, "iss": ISSUER}
    return given | {"exp": int(time.time()) + LONG}


def token_of(kind: str) -> str:
    """Return a good token: unlike a key it cannot be revoked by what is generated."""
    return token(b'{"alg":"HS256","typ":"JWT"}', json.dumps(claims_of(kind)).encode())


def ingest(data: Path, tenant: str, collection: str, acl: str, files: dict[str, str]) -> None:
    """Write the files and ingest them."""
    name = hashlib.sha256(f"{tenant}{collection}{acl}{sorted(files)}".encode()).hexdigest()[:8]
    folder = data.parent / f"files-{name}"
    folder.mkdir()
    for file, text in files.items():
        (folder / file).write_text(text, encoding="utf-8")
    flags = {"data": data, "reasoner": "rules"}
    rest: dict[str, Any] = {"profile": None, "prune": False, "quiet": True}
    summary = run_ingest([folder], collection, tenant=tenant, acl=acl, flags=flags, **rest)
    if not summary.ok:
        raise SystemExit(f"nothing of {folder} could be ingested")


@contextlib.contextmanager
def attacked(
    folder: Path,
    settings: Sequence[str] = ("reasoner=rules",),
    corpora: Sequence[tuple[str, str, str, dict[str, str]]] = CORPORA,
    variables: dict[str, str] | None = None,
) -> Iterator[World]:
    """Serve fresh data below a folder until the block ends; `settings` are NAME=VALUE."""
    data, log = folder / "data", folder / "server.log"
    for tenant, collection, acl, files in corpora:
        ingest(data, tenant, collection, acl, files)
    signing = (f"jwt_audience={AUDIENCE}", f"jwt_issuer={ISSUER}")
    given = [part for one in (*UNLIMITED, *signing, *settings) for part in ("--set", one)]
    command = [sys.executable, "-c", CARREL, "serve", "--port", "0", "--data", str(data), *given]
    # A variable that is "" is not set at all: other keys than the secret sign the tokens.
    added = {"CARREL_JWT__KEY": SECRET} | (variables or {})
    environment = os.environ | {name: value for name, value in added.items() if value}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            if not url.startswith("http"):
                raise SystemExit(f"the server did not start: {log.read_text(errors='replace')}")
            yield World(url, process.pid, data, log)
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
