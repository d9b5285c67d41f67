"""The server checks its data by itself, says when it is damaged, and answers from words then."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator

import httpx
import pytest
from serving import Served

from app.session import Session
from core.settings import load_settings
from serve.self_checks import SelfChecks
from serve.telemetry.logs import CHECKS
from stores.store import parts


@pytest.fixture
def whole(session: Session) -> Iterator[Session]:
    yield session
    condition = parts(session.store).database.condition
    condition.distrusted = ""
    condition.clear("")


def checks(session: Session, interval_s: float = 3600) -> SelfChecks:
    values = {"data": session.store.folder, "reasoner": "rules", "checks.interval_s": interval_s}
    return SelfChecks(session, load_settings(values)[0])


def test_a_sound_directory_is_one_line(whole: Session, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, CHECKS):
        assert checks(whole).check() == []
    [line] = [record.getMessage() for record in caplog.records]
    assert line.startswith("self-check: all is as it was written")


def test_damage_is_told_by_health_and_by_answers(
    whole: Session,
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with served.client("reader") as client:
        _damaged_and_whole(whole, client, monkeypatch, caplog)


def _damaged_and_whole(
    whole: Session,
    client: httpx.Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert client.get("/api/v1/health").json() == {"status": "ok"}
    with monkeypatch.context() as patch:
        found = "8 of 8 of its passages are not found by their vector"
        patch.setattr("stores.integrity.selfcheck.self_check", lambda *_: found)
        assert len(checks(whole).check()) == len(whole.store.catalogue.collections())
    assert "not found by their vector" in caplog.text
    health = client.get("/api/v1/health").json()
    assert health["status"] == "degraded"
    said = " ".join(health["reasons"])
    assert "keyword search only" in said
    assert not any(name in said for name in ("guide", "closed", "zoo", "acme"))  # of no tenant
    found = client.post("/api/v1/search", json={"query": "flame", "collection": "guide"}).json()
    assert "42 mm" in found["results"][0]["text"]
    assert any("keyword search only" in warning for warning in found["warnings"])
    assert any("keywords only" in warning for warning in found["warnings"])
    assert checks(whole).check() == []
    assert client.get("/api/v1/health").json() == {"status": "ok"}


def test_the_timer_checks_again_and_again(whole: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def broken() -> list[str]:
        seen.append(1)
        raise RuntimeError("a mistake")

    monkeypatch.setattr(whole.store.maintenance, "check_again", broken)
    timer = checks(whole, interval_s=1)
    timer.start()
    limit = time.monotonic() + 60
    while len(seen) < 2 and time.monotonic() < limit:
        time.sleep(0.05)
    timer.close()
    assert len(seen) >= 2  # what goes wrong does not end it
