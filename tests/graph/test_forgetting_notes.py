"""A note that is erased is left in no run, state or note that rests on it, whatever erases it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from fakes import FakeEmbedder, document, write
from scanning import encoded, holding, rows_with
from talks import AUTH, filled, reopening, say

from app.session import Session
from core.profile import Profile
from core.recall import NOTE
from core.trace import RunRecord, Step
from stores.erasure.documents import named_document
from stores.erasure.redaction import NOTE_NOTICE
from stores.runlog.conversations import Conversation
from stores.store import parts

# More digits than the parts of a second have that are stored with a time.
VALUE = "845170913"
FACT = f"The maximum timeout of the zyxovent API is {VALUE} seconds."


class Said(NamedTuple):
    """Hold what one user states, which value tells it, and what is asked in another talk."""

    stated: str
    value: str
    asked: str
    after: str


SAID = {
    "en": Said("my name is Olenqua", "Olenqua", "What is my name?", "and what is the late fee?"),
    "ru": Said("меня зовут Оленква", "Оленква", "Как меня зовут?", "а какой штраф?"),
    "uk": Said("мене звати Оленква", "Оленква", "Як мене звати?", "а який штраф?"),
    "zh": Said("我叫王芳赑", "王芳赑", "我叫什么名字？", "罚款是多少？"),
}
QUESTION = "What is the maximum timeout of the zyxovent API?"
KEEP = {"en": "Remember this.", "ru": "Запомни это.", "uk": "Запам'ятай це.", "zh": "记住这个。"}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    data = filled(
        tmp_path / "data",
        lambda main: [document(main, "zyxovent.md", FACT, title="Zyxovent API")],
    )
    with reopening(data) as opened:
        made = opened()
        other = made.intake.open_collection("default", "other", Profile(name="default"))
        row = document(other, "rules.md", "The late fee is 20 cents a day.")
        write(made.store, other, [row], FakeEmbedder())
        yield made


def begin(session: Session, collection: str = "main") -> Conversation:
    return session.runs.create_conversation(AUTH.tenant, AUTH.user, collection)


def reads_notes(run: RunRecord) -> bool:
    return any(one["kind"] == NOTE for one in run.result["evidence"])


def left(session: Session, *texts: str) -> list[object]:
    """Return the files that hold any of these texts, once all is tidied."""
    session.maintenance.tidy()
    found = holding(session.store.folder, {one for text in texts for one in encoded(text)})
    for name, needle in list(found):
        if name.endswith(".sqlite3"):
            found += [(row, needle) for row in rows_with(session.store.folder / name, needle)]
    assert session.maintenance.examine()["problems"] == []
    return found


def stated_and_read(session: Session, language: str) -> tuple[Conversation, Conversation, str]:
    """State something in one conversation and have another one read it, twice."""
    said = SAID[language]
    first, second = begin(session), begin(session)
    say(session, first.id, said.stated)
    run = say(session, second.id, said.asked)
    assert reads_notes(run) and said.value in run.result["answer"]
    say(session, second.id, said.asked)
    say(session, second.id, said.after)
    return first, second, run.run_id


def delete_note(session: Session, talk: Conversation) -> None:
    [note] = session.notes.list_notes(AUTH)
    shown = session.notes.would_delete_note(AUTH, note.note_id)
    assert session.notes.list_notes(AUTH) == [note]
    assert session.notes.delete_note(AUTH, note.note_id) == shown
    assert (shown["notes"], shown["conversations"]) == (1, 1) and shown["runs"] >= 2
    session.maintenance.tidy()
    (turn,) = session.runs.turns(AUTH, talk)
    assert turn["question"] in [one.stated for one in SAID.values()]  # what was typed stays
    # With its own conversation it goes too; nothing finds the other runs any more.
    session.runs.delete_conversation(talk)


def delete_talk(session: Session, talk: Conversation) -> None:
    shown = session.runs.would_delete_conversation(talk)
    assert session.runs.delete_conversation(talk) == shown
    assert (shown["notes"], shown["conversations"]) == (1, 1) and shown["runs"] >= 2


def forget_tenant(session: Session, talk: Conversation) -> None:
    assert session.maintenance.forget_tenant(talk.tenant)["notes"] == 1


@pytest.mark.parametrize("language", SAID)
@pytest.mark.parametrize("erase", [delete_note, delete_talk, forget_tenant])
def test_a_statement_is_left_in_no_file(
    session: Session, language: str, erase: Callable[[Session, Conversation], None]
) -> None:
    first, second, run_id = stated_and_read(session, language)
    value = SAID[language].value
    assert holding(session.store.folder, encoded(value))
    erase(session, first)
    assert left(session, value) == []
    if erase is forget_tenant:
        return
    run = session.runs.load(AUTH, run_id)
    assert value not in json.dumps([run.result, run.recording], ensure_ascii=False)
    assert "note" in run.result["answer"] and run.recording == {"erased": True}
    again = say(session, second.id, SAID[language].asked)
    assert value not in json.dumps(again.model_dump(mode="json"), ensure_ascii=False)


def forget_document(session: Session) -> None:
    main = session.store.catalogue.collection("default", "main")
    found = named_document(parts(session.store).database.read(), main, "zyxovent.md")
    session.maintenance.forget(main, [found])


def delete_claims(session: Session) -> None:
    for note in session.notes.list_notes(AUTH):
        session.notes.delete_note(AUTH, note.note_id)


def kept_and_read(session: Session, language: str) -> str:
    """Have an answer kept, read in a conversation of another collection, and kept there again."""
    first, other = begin(session), begin(session, "other")
    say(session, first.id, QUESTION)
    say(session, first.id, KEEP[language])
    run = say(session, other.id, QUESTION)
    assert reads_notes(run) and VALUE in run.result["answer"]
    say(session, other.id, KEEP[language])
    third = begin(session, "other")
    say(session, third.id, QUESTION)
    return run.run_id


@pytest.mark.parametrize("language", KEEP)
def test_a_document_goes_with_the_notes_of_it_and_their_readers(
    session: Session, language: str
) -> None:
    run_id = kept_and_read(session, language)
    forget_document(session)
    assert session.notes.list_notes(AUTH) == []
    assert left(session, VALUE, "zyxovent.md") == []
    run = session.runs.load(AUTH, run_id)
    assert "note" in run.result["answer"] and run.recording == {"erased": True}


def test_a_deleted_answer_goes_out_of_the_conversations_that_read_it(session: Session) -> None:
    """The run that gave it stays: it rests on the document, and the document stays."""
    run_id = kept_and_read(session, "en")
    delete_claims(session)
    session.maintenance.tidy()
    database = parts(session.store).database.read()
    rows = database.execute(
        "SELECT collection FROM runs WHERE instr(result, ?)", [VALUE]
    ).fetchall()
    assert {row[0] for row in rows} == {"main"}
    assert session.runs.load(AUTH, run_id).result["answer"] == NOTE_NOTICE


def test_a_run_under_way_keeps_nothing_of_a_note_that_goes(session: Session) -> None:
    said, first, second = SAID["en"], begin(session), begin(session)
    say(session, first.id, said.stated)

    def delete_when_read(step: Step) -> None:
        if any(name == note.note_id for name, _ in step.evidence) and not deleted:
            deleted.append(session.notes.delete_note(AUTH, note.note_id))

    [note] = session.notes.list_notes(AUTH)
    deleted: list[object] = []
    say(session, second.id, said.asked, on_step=delete_when_read)
    assert deleted
    session.runs.delete_conversation(first)
    assert left(session, said.value) == []


def test_later_turns_are_closed_with_the_notes_before_them(session: Session) -> None:
    """As with documents: what a later turn says may repeat what an earlier one has read."""
    said, first, second = SAID["en"], begin(session), begin(session)
    say(session, first.id, said.stated)
    say(session, second.id, said.asked)
    later = say(session, second.id, QUESTION)
    assert not reads_notes(later)
    kept = session.runs.load(AUTH, later.run_id)
    assert "withheld" not in kept.result
    with parts(session.store).database.write() as connection:
        connection.execute("DELETE FROM notes")  # as damage does, or an earlier version did
    assert session.runs.load(AUTH, later.run_id).result["withheld"]
