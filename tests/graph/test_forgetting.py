"""A document that is forgotten is in no conversation's memory, also when a run is under way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import document
from scanning import encoded, holding
from talks import AUTH, begin, filled, reopening, say

from app.session import Session
from core.trace import Step
from stores.erasure.documents import named_document
from stores.erasure.redaction import NOTICE
from stores.store import parts

SECRET = "The maximum timeout of the zyxovent API is 845170913 seconds."
STAYS = "The timeout of the harbour gate is ten minutes."
QUESTION = "What is the maximum timeout of the zyxovent API?"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    data = filled(
        tmp_path / "data",
        lambda main: [
            document(main, "zyxovent.md", SECRET, title="Zyxovent API"),
            document(main, "gate.md", STAYS, title="Gate"),
        ],
    )
    with reopening(data) as opened:
        yield opened()


def forget(session: Session) -> None:
    main = session.store.catalogue.collection("default", "main")
    found = named_document(parts(session.store).database.read(), main, "zyxovent.md")
    session.store.maintenance.forget(main, [found])


def nothing_left(session: Session) -> None:
    session.store.maintenance.tidy()
    needles = encoded("zyxovent.md") | encoded("Zyxovent") | encoded("845170913")
    assert holding(session.store.folder, needles) == []


def test_a_conversation_forgets_and_goes_on(session: Session) -> None:
    name = begin(session)
    run = say(session, name, QUESTION)
    assert "845170913" in run.result["answer"]
    assert session.caches.results.entries
    assert holding(session.store.folder, encoded("845170913"))
    forget(session)
    assert session.caches.results.entries == 0
    nothing_left(session)
    kept = session.store.runs.load_conversation(AUTH, name)
    (turn,) = session.store.runs.turns(AUTH, kept)
    assert (turn["answer"], turn["question"], kept.title) == (NOTICE, QUESTION, QUESTION)
    again = say(session, name, "What is the timeout of the harbour gate?")
    assert "ten minutes" in again.result["answer"]
    assert "warnings" in again.result and not again.result["warnings"]
    assert session.store.runs.load_conversation(AUTH, name).turns == 2


def test_a_run_under_way_keeps_nothing_of_it(session: Session) -> None:
    name = begin(session)
    seen: list[Step] = []

    def forget_when_found(step: Step) -> None:
        seen.append(step)
        if step.tool and len([one for one in seen if one.tool]) == 1:
            forget(session)

    say(session, name, QUESTION, on_step=forget_when_found)
    nothing_left(session)
    kept = session.store.runs.load_conversation(AUTH, name)
    assert (kept.turns, kept.checkpoint_id, kept.waiting) == (1, "", None)
    again = say(session, name, "What is the timeout of the harbour gate?")
    assert "ten minutes" in again.result["answer"]
