"""Sync a source in this process, with the fake embedder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder

import app.session
from app.session import Session
from app.syncing import SyncReport, sync_source
from core.auth import AuthContext
from core.settings import load_settings
from ingest.connectors.address import parse_address
from stores.runlog.sources import SourceRow

ANN = AuthContext(tenant="acme", user="ann")


class Room:
    """Hold a session and the one source of a test."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.rows = session.accounts.sources()

    def add(self, address: str, name: str = "src", **values: Any) -> SourceRow:
        options = {"private": values.pop("private", True)}
        options["parameters"] = values.pop("parameters", {})
        text = parse_address(name, address).text
        row = SourceRow("acme", "", name, "main", text, options, **values)
        self.rows.add(row)
        return row

    def sync(self, row: SourceRow, **values: Any) -> SyncReport:
        return sync_source(self.session, row, **values)

    def counts(self, row: SourceRow, **values: Any) -> tuple[int, int, int, int]:
        report = self.sync(row, **values)
        assert report.failed == []
        return report.new, report.changed, report.unchanged, report.removed

    def names(self) -> list[str]:
        """Return what ann sees in the collection."""
        try:
            found = self.session.catalogue.visible_collection(ANN, "main")
        except Exception:
            return []
        listed = self.session.catalogue.list_documents(ANN, found, after="", limit=500)
        return [one["document_id"] for one in listed]

    def text(self, name: str) -> str:
        found = self.session.catalogue.visible_collection(ANN, "main")
        passages = self.session.catalogue.list_passages(ANN, found, name, 0, 9)
        return " ".join(one["text"] for one in passages)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: FakeEmbedder) -> Iterator[Room]:
    monkeypatch.setattr(app.session, "open_embedder", lambda settings: embedder)
    given = {"data": tmp_path / "data", "sources.requests_per_s": 1000, "sources.retries": 0}
    with Session(load_settings(given)[0], create=True) as session:
        yield Room(session)
