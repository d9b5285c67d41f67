"""A server and the commands over a directory whose newest rows are gone: what goes on, and how."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from commands import Carrel, write_files
from serving import running

from app.session import Session
from cli.upkeep.ingest import run_ingest
from core.settings import load_settings
from serve.self_checks import SelfChecks
from serve.services import AppState, make_app_state
from stores.accounts.audit import AuditLog
from stores.accounts.keys import Keys
from stores.store import parts

FIRST = {"candle.md": "# Candles\n\nThe maximum height of the candle flame is 42 mm.\n"}
SECOND = {"tea.md": "# Tea\n\nGreen tea is brewed with water of eighty degrees.\n"}
QUESTION = "What is the maximum height of the candle flame?"
CATALOGUE = "catalogue.sqlite3"
GONE = "rows of the catalogue are missing"


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """Hold a directory whose catalogue is older than its last commits, and an admin's key."""
    base = tmp_path_factory.mktemp("lost")
    data = base / "data"
    flags = {"data": data, "reasoner": "rules"}
    for number, files in enumerate((FIRST, SECOND)):
        given = {"profile": None, "tenant": "acme", "acl": "", "prune": False, "quiet": True}
        folder = write_files(base / str(number), files)
        assert run_ingest([folder], "main", flags=flags, **given).ok
        if number == 0:
            with Session(load_settings(flags)[0]) as session:
                store = session.store
                roles = frozenset({"admin", "writer"})
                text, _ = Keys(parts(store).database).create("acme", user="ada", roles=roles)
                AuditLog(parts(store).database, session.settings)
            shutil.copy(data / CATALOGUE, base / CATALOGUE)
    shutil.copy(base / CATALOGUE, data / CATALOGUE)
    (data / "uploads" / "0123").mkdir(parents=True)
    yield data, text


@pytest.fixture
def copied(lost: tuple[Path, str], tmp_path: Path) -> tuple[Path, str]:
    shutil.copytree(lost[0], tmp_path / "data", dirs_exist_ok=True)
    return tmp_path / "data", lost[1]


def test_a_server_reads_on_and_says_so(copied: tuple[Path, str]) -> None:
    data, key = copied
    values = {"data": data, "reasoner": "rules", "serve.writer_roles": ["writer"]}
    with Session(load_settings(values)[0], check_later=True) as session:
        services = make_app_state(session)
        headers = {"Authorization": f"Bearer {key}"}
        with running(services) as url, httpx.Client(base_url=url, headers=headers) as client:
            _asked(services, client)
        assert (data / "uploads" / "0123").is_dir()  # it may be all that is left of an upload
        kept = [json.loads(line) for line in (data / "audit.aside").read_text().splitlines()]
        assert {"login", "answer", "retrieval"} <= {row["kind"] for row in kept}


def _asked(services: AppState, client: httpx.Client) -> None:
    limit = time.monotonic() + 60
    while services.session.store.maintenance.checking and time.monotonic() < limit:
        time.sleep(0.05)
    health = client.get("/api/v1/health")
    assert (health.status_code, health.json()["status"]) == (200, "degraded")
    assert any(GONE in one for one in health.json()["reasons"])
    asked = {"query": "flame", "collection": "main"}
    found = client.post("/api/v1/search", json=asked).json()
    assert "42 mm" in found["results"][0]["text"]
    assert any(GONE in one for one in found["warnings"])
    answer = client.post(
        "/api/v1/chat", json={"question": QUESTION, "collection": "main"}, timeout=60
    )
    assert answer.status_code == 200
    assert "42 mm" in answer.json()["answer"]
    said = " ".join(answer.json()["warnings"])
    assert GONE in said and "the run was not kept" in said
    listed = client.get("/api/v1/documents", params={"collection": "main"}).json()
    assert [one["title"] for one in listed["documents"]] == ["Candles"]
    assert any(GONE in one for one in listed["warnings"])
    for refused in (
        client.post("/api/v1/documents", params={"name": "a.txt"}, content=b"text"),
        client.delete("/api/v1/documents", params={"collection": "main", "document_id": "x"}),
        client.post("/api/v1/conversations", json={"collection": "main"}),
        client.post("/api/v1/keys", json={"user": "bob"}),
    ):
        assert refused.status_code in (404, 503), refused.text
        assert refused.status_code == 404 or GONE in refused.json()["error"]["message"]
    assert any(GONE in one for one in SelfChecks(services.session, services.settings).check())


def test_the_commands_read_on_and_the_doctor_goes_on(
    copied: tuple[Path, str], carrel: Carrel
) -> None:
    data, _ = copied
    of = ["--data", str(data)]
    asked = ["--tenant", "acme", "-c", "main", *of]
    found = carrel("search", "flame", *asked)
    assert found.code == 0
    assert "42 mm" in found.out
    assert GONE in found.err
    answer = carrel("ask", QUESTION, *asked)
    assert answer.code == 0
    assert "42 mm" in answer.out
    assert GONE in answer.err
    refused = carrel("keys", "create", "--tenant", "acme", "--user", "bob", *of)
    assert refused.code == 4
    assert "--accept-loss" in refused.err
    assert carrel("doctor", "--accept-loss", *of).code == 2
    for more in ((), ("--repair",)):
        told = carrel("doctor", *more, *of)
        assert told.code == 1
        assert "commits are gone" in told.out and "1 folders of uploads" in told.out
    done = carrel("doctor", "--repair", "--accept-loss", *of)
    assert "missing rows were accepted" in done.out
    assert carrel("doctor", *of).code == 0
    assert carrel("audit", "verify", *of).code == 0
    assert "loss_accepted" in carrel("audit", "list", *of).out
    found = carrel("search", "flame", *asked)
    assert (found.code, GONE in found.err) == (0, False)
    assert carrel("keys", "create", "--tenant", "acme", "--user", "bob", *of).code == 0
