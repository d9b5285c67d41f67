"""A document that is forgotten is in no conversation's memory, also when a run is under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import FakeEmbedder, document, write
from scanning import encoded, holding

import app.session
from app.session import Session
from core.auth import AuthContext
from core.profile import Profile
from core.settings import load_settings
from core.trace import Step
from stores.erasure.documents import named_document
from stores.erasure.redaction import NOTICE
from stores.store import parts

ANN = AuthContext(tenant="default", user="ann")
SECRET = "The maximum timeout of the zyxovent API is 8451 seconds."
STAYS = "The timeout of the harbour gate is ten minutes."
QUESTION = "What is the maximum timeout of the zyxovent API?"


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    monkeypatch.setattr(app.session, "open_embedder", lambda settings: FakeEmbedder())
    flags = {"data": tmp_path / "data", "reasoner": "rules"}
    with Session(load_settings(flags)[0], create=True) as opened:
        main = opened.store.intake.open_collection("default", "main", Profile(name="default"))
        rows = [
            document(main, "zyxovent.md", SECRET, title="Zyxovent API"),
            document(main, "gate.md", STAYS, title="Gate"),
        ]
        write(opened.store, main, rows, FakeEmbedder())
        yield opened


def forget(session: Session) -> None:
    main = session.store.catalogue.collection("default", "main")
    found = named_document(parts(session.store).database.read(), main, "zyxovent.md")
    session.store.maintenance.forget(main, [found])


def nothing_left(session: Session) -> None:
    session.store.maintenance.tidy()
    needles = encoded("zyxovent.md") | encoded("Zyxovent") | encoded("8451")
    assert holding(session.store.folder, needles) == []


def test_a_conversation_forgets_and_goes_on(session: Session) -> None:
    name = session.store.runs.create_conversation("default", "ann", "main").id
    run = session.ask(QUESTION, ANN, "", conversation=name)
    assert "8451" in run.result["answer"]
    assert session.caches.results.entries
    assert holding(session.store.folder, encoded("8451"))
    forget(session)
    assert session.caches.results.entries == 0
    nothing_left(session)
    kept = session.store.runs.load_conversation(ANN, name)
    (turn,) = session.store.runs.turns(ANN, kept)
    assert (turn["answer"], turn["question"], kept.title) == (NOTICE, QUESTION, QUESTION)
    again = session.ask("What is the timeout of the harbour gate?", ANN, "", conversation=name)
    assert "ten minutes" in again.result["answer"]
    assert "warnings" in again.result and not again.result["warnings"]
    assert session.store.runs.load_conversation(ANN, name).turns == 2


def test_a_run_under_way_keeps_nothing_of_it(session: Session) -> None:
    name = session.store.runs.create_conversation("default", "ann", "main").id
    seen: list[Step] = []

    def forget_when_found(step: Step) -> None:
        seen.append(step)
        if step.tool and len([one for one in seen if one.tool]) == 1:
            forget(session)

    session.ask(QUESTION, ANN, "", conversation=name, on_step=forget_when_found)
    nothing_left(session)
    kept = session.store.runs.load_conversation(ANN, name)
    assert (kept.turns, kept.checkpoint_id, kept.waiting) == (1, "", None)
    again = session.ask("What is the timeout of the harbour gate?", ANN, "", conversation=name)
    assert "ten minutes" in again.result["answer"]
