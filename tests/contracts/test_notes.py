"""Contract of Notes: founded on a turn or a claim, for their owner alone, and gone with it."""

from __future__ import annotations

from itertools import count

import pytest
from builders import run_record
from fakes import FakeEmbedder, Shelf, document, write

from core.auth import AuthContext
from core.errors import AbsentError, CallerError
from core.notes import ClaimSource, Note, NoteDraft, OwnerEdit, TurnSource
from core.types import Claim
from stores.runlog.conversations import Conversation, KeptTurn
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")
EVE = AuthContext(tenant="acme", user="eve")
RIVAL = AuthContext(tenant="rival", user="ann")
numbers = count(1)


def talk(store: Store, auth: AuthContext = ANN) -> Conversation:
    return store.runs.create_conversation(auth.tenant, auth.user, "main")


def turn(store: Store, where: Conversation, text: str) -> TurnSource:
    run_id = f"{next(numbers):012x}"
    store.runs.save_turn(where, KeptTurn(run_id, text), "", title=text)
    return TurnSource(conversation=where.id, run_id=run_id, quote=text)


def note(
    store: Store, text: str, auth: AuthContext = ANN, where: Conversation | None = None, **more: str
) -> Note:
    source = turn(store, where or talk(store, auth), text)
    draft = NoteDraft.model_validate({"content": text, "provenance": source, **more})
    [written] = store.notes.write_notes(auth, [draft])
    return written


def contents(store: Store, auth: AuthContext = ANN, *, current: bool = False) -> list[str]:
    return [one.content for one in store.notes.list_notes(auth, current=current)]


def test_a_note_is_found_by_its_owner_alone(store: Store) -> None:
    made = note(store, "My name is Olena.")
    assert store.notes.load_note(ANN, made.note_id) == made
    assert made.keywords == ["name", "Olena"] and made.language == "en"
    assert contents(store) == ["My name is Olena."]
    for other in (EVE, RIVAL):
        assert contents(store, other) == []
        assert store.notes.find_by_words(other, "Olena name", 5) == []
        with pytest.raises(AbsentError, match="no such note of yours"):
            store.notes.load_note(other, made.note_id)
        with pytest.raises(AbsentError):
            store.notes.delete_note(other, made.note_id)
        with pytest.raises(AbsentError):
            store.notes.edit_note(other, made.note_id, "mine")


def test_a_note_without_its_turn_is_not_written(store: Store) -> None:
    source = turn(store, talk(store), "I live in Lviv.")
    for draft, auth in (
        (NoteDraft(content="I live in Lviv.", provenance=source), EVE),
        (NoteDraft(content="I live in Rome.", provenance=source), ANN),
        (_with(source, quote="I live in Rome."), ANN),
        (_with(source, run_id="gone"), ANN),
        (_with(source, conversation="gone"), ANN),
    ):
        assert store.notes.write_notes(auth, [draft]) == []
    edited = OwnerEdit(earlier="x", origin=source)
    assert store.notes.write_notes(ANN, [NoteDraft(content="x", provenance=edited)]) == []


def _with(source: TurnSource, **changes: str) -> NoteDraft:
    named = source.model_copy(update=changes)
    return NoteDraft(content=named.quote, provenance=named)


def test_a_later_note_of_a_subject_supersedes_the_earlier_one(store: Store) -> None:
    where, named = talk(store), {"subject": "i|name", "replaces": "true"}
    first = note(store, "My name is Anna.", value="anna", where=where, **named)
    second = note(store, "My name is Berta now.", value="berta", where=where, **named)
    kept = store.notes.load_note(ANN, first.note_id)
    assert (kept.superseded_by, kept.superseded_at) == (second.note_id, second.observed_at)
    assert contents(store, current=True) == ["My name is Berta now."]
    assert contents(store) == ["My name is Berta now.", "My name is Anna."]
    assert store.notes.delete_note(ANN, second.note_id)["notes"] == 1
    assert contents(store, current=True) == ["My name is Anna."]


def test_an_earlier_note_that_comes_later_is_the_superseded_one(store: Store) -> None:
    named = {"subject": "i|name", "replaces": "true"}
    note(store, "My name is now Berta.", value="berta", observed_at="2026-05-01", **named)
    note(store, "My name is Anna.", value="anna", observed_at="2025-05-01", **named)
    assert contents(store, current=True) == ["My name is now Berta."]


@pytest.mark.parametrize(
    ("first", "second", "stay"),
    [
        ("I live in Rome.", "I live in Oslo.", 2),
        ("I live in Rome.", "I now live in Oslo.", 1),
        ("Я живу в Туле.", "Я переехал в Казань.", 1),
        ("Я живу в Туле.", "Я живу в Казани.", 2),
        ("Я живу у Львові.", "Тепер я живу в Києві.", 1),
        ("我住在上海。", "我住在北京。", 2),
        ("我住在上海。", "我搬到了北京。", 1),
    ],
)
def test_of_two_conversations_only_what_says_that_it_changed_supersedes(
    store: Store, first: str, second: str, stay: int
) -> None:
    one = note(store, first, subject="i|live", value="one", replaces="true")
    note(store, second, subject="i|live", value="other", replaces="true")
    assert len(contents(store, current=True)) == stay
    links = store.notes.load_note(ANN, one.note_id).links
    assert ("contradicts" in {link.kind for link in links}) == (stay == 2)


def test_where_it_is_unclear_which_holds_both_stay_and_are_linked(store: Store) -> None:
    first = note(store, "My sister is Anna.", subject="i|sister", value="anna")
    second = note(store, "My sister is Berta.", subject="i|sister", value="berta")
    links = store.notes.load_note(ANN, first.note_id).links
    assert ("contradicts", second.note_id) in {(one.kind, one.note_id) for one in links}
    assert len(contents(store, current=True)) == 2


def test_what_is_stated_again_is_more_important_and_no_second_note(store: Store) -> None:
    where = talk(store)
    first = note(store, "I prefer tea.", where=where)
    again = note(store, "I prefer tea.", where=where)
    assert again.note_id == first.note_id and again.importance > first.importance
    assert len(contents(store)) == 1


def test_what_another_conversation_states_lives_as_long_as_that(store: Store) -> None:
    liked = {"subject": "i|like|tea", "value": "yes"}
    first, second = talk(store), talk(store)
    one = note(store, "I prefer tea.", where=first, **liked)
    other = note(store, "I prefer tea.", where=second, **liked)
    assert one.note_id != other.note_id and len(contents(store, current=True)) == 1
    store.runs.delete_conversation(store.runs.load_conversation(ANN, first.id))
    assert contents(store, current=True) == ["I prefer tea."]


def test_a_denial_supersedes_what_it_denies_and_nothing_else(store: Store) -> None:
    lives = {"subject": "i|live", "replaces": "true"}
    note(store, "I live in Rome.", value="rome", **lives)
    note(store, "I don't live in Paris.", value="not paris", **lives)
    assert contents(store, current=True) == ["I don't live in Paris.", "I live in Rome."]
    note(store, "I no longer live in Rome.", value="not rome", **lives)
    assert "I live in Rome." not in contents(store, current=True)


def test_what_is_no_longer_so_ends_what_says_more_of_it(store: Store) -> None:
    for name, said in (("rex", "I have a dog named Rex."), ("max", "I have a dog named Max.")):
        note(store, said, subject=f"=possession|dog name {name}", value="yes", replaces="true")
    note(store, "I have no dog.", subject="=possession|dog", value="no", replaces="true")
    assert len(contents(store, current=True)) == 3  # it does not say that this changed
    gone = {"subject": "=possession|dog name max", "value": "no", "replaces": "true"}
    note(store, "I no longer have a dog named Max.", **gone)
    assert "I have a dog named Rex." in contents(store, current=True)
    note(store, "I don't have a dog any more.", **(gone | {"subject": "=possession|dog"}))
    assert not [one for one in contents(store, current=True) if one.startswith("I have a")]
    note(store, "I speak German and French.", subject="=usage|speak german french", value="yes")
    note(store, "I no longer speak French.", **(gone | {"subject": "=usage|speak french"}))
    assert "I speak German and French." in contents(store, current=True)


def test_words_and_vectors_find_notes(store: Store, embedder: FakeEmbedder) -> None:
    for text in ("My dog is called Rex.", "We meet on Friday at noon.", "Меня зовут Олена."):
        note(store, text)
    assert [one.note.content for one in store.notes.find_by_words(ANN, "dogs", 2)] == [
        "My dog is called Rex."
    ]
    assert store.notes.find_by_words(ANN, "зовут", 2)[0].note.content == "Меня зовут Олена."
    left = store.notes.unembedded_notes(ANN, "fake")
    assert len(left) == 3
    vectors = {name: embedder.embed_query(text) for name, text in left.items()}
    store.notes.store_note_vectors(ANN, "fake", vectors, embedder.similarity)
    assert store.notes.unembedded_notes(ANN, "fake") == {}
    best = store.notes.find_by_vector(ANN, "fake", embedder.embed_query("meet Friday noon"), 1)
    assert best[0].note.content == "We meet on Friday at noon."
    assert store.notes.find_by_vector(EVE, "fake", embedder.embed_query("Friday"), 1) == []


def test_notes_of_one_topic_are_linked_and_tagged(store: Store) -> None:
    first = note(store, "Our release deadline is in May.")
    second = note(store, "The release deadline moved to June.")
    kinds = {one.kind for one in second.links if one.note_id == first.note_id}
    assert "topical" in kinds
    assert "deadlin" in store.notes.load_note(ANN, first.note_id).tags


def test_an_edit_is_a_version_under_the_same_id(store: Store) -> None:
    made = note(store, "My name is Olena.", subject="i|name", value="olena")
    edited = store.notes.edit_note(ANN, made.note_id, " My name is\nOlha. ")
    assert (edited.note_id, edited.content) == (made.note_id, "My name is Olha.")
    assert isinstance(edited.provenance, OwnerEdit)
    earlier = store.notes.load_note(ANN, edited.provenance.earlier)
    assert (earlier.content, earlier.superseded_by) == ("My name is Olena.", made.note_id)
    assert store.notes.find_by_words(ANN, "Olena", 5) == []
    again = store.notes.edit_note(ANN, made.note_id, "My name is Oksana.")
    assert contents(store, current=True) == ["My name is Oksana."]
    assert store.notes.delete_note(ANN, again.note_id)["notes"] == 3
    assert contents(store) == []
    with pytest.raises(CallerError, match="1 to 2000"):
        store.notes.edit_note(ANN, note(store, "I like tea.").note_id, "x" * 2001)


def test_a_deleted_conversation_takes_its_notes_along(store: Store) -> None:
    where = talk(store)
    made = note(store, "I live in Lviv.", where=where)
    store.notes.edit_note(ANN, made.note_id, "I live in Rome.")
    stays = note(store, "I work in Kyiv.")
    store.runs.delete_conversation(store.runs.load_conversation(ANN, where.id))
    assert contents(store) == ["I work in Kyiv."]
    assert store.notes.find_by_words(ANN, "Rome Lviv", 5) == []
    assert store.notes.load_note(ANN, stays.note_id).links == []


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ("My name is Olena.", "I live in Lviv.", "Olena"),
        ("Меня зовут Олег.", "Я живу в Туле.", "Олег"),
        ("Мене звати Оля.", "Я живу у Львові.", "Оля"),
        ("我叫李四。", "我住在北京。", "李四"),
    ],
)
def test_a_deleted_note_leaves_the_context_of_those_beside_it(
    store: Store, first: str, second: str, word: str
) -> None:
    source = turn(store, talk(store), f"{first} {second}")
    one, other = (
        NoteDraft(
            content=text, context=beside, provenance=source.model_copy(update={"quote": text})
        )
        for text, beside in ((first, second), (second, first))
    )
    [made, _] = store.notes.write_notes(ANN, [one, other])
    assert len(store.notes.find_by_words(ANN, word, 5)) == 2
    store.notes.delete_note(ANN, made.note_id)
    [left] = store.notes.list_notes(ANN)
    assert (left.content, left.context) == (second, "")
    assert store.notes.find_by_words(ANN, word, 5) == []


@pytest.mark.parametrize("edited", [False, True])
def test_a_claim_is_withheld_and_forgotten_with_its_document(shelf: Shelf, edited: bool) -> None:
    store = shelf.store
    made = claim_note(shelf, "The dam is 90 m high.", acl=["staff"])
    staff = AuthContext(tenant="acme", user="ann", roles=frozenset({"staff"}))
    assert made is not None
    if edited:
        store.notes.edit_note(staff, made.note_id, "The dam has 90 m.")
    assert len(contents(store, staff)) == 1 + edited
    assert contents(store, ANN) == []
    assert store.notes.find_by_words(ANN, "dam", 5) == []
    assert store.notes.unembedded_notes(ANN, "fake") == {}
    assert len(store.notes.unembedded_notes(staff, "fake")) == 1 + edited
    named = store.maintenance.named_document(shelf.collection, "dam")
    counts = store.maintenance.forget(shelf.collection, [named])
    assert counts["notes"] == 1 + edited
    assert contents(store, staff) == []


def test_only_a_verified_claim_of_the_run_is_kept(shelf: Shelf) -> None:
    assert claim_note(shelf, "The dam is 90 m high.", content="The dam is 91 m high.") is None


def claim_note(
    shelf: Shelf, text: str, acl: list[str] | None = None, content: str = ""
) -> Note | None:
    store, collection = shelf.store, shelf.collection
    write(store, collection, [document(collection, "dam", text, acl=acl or [])], shelf.embedder)
    reader = AuthContext(tenant="acme", user="ann", roles=frozenset(acl or []))
    [chunk] = store.catalogue.list_passages(reader, collection, "dam", 0, 9)
    item = store.catalogue.evidence(reader, collection.id, [chunk["chunk_id"]])[chunk["chunk_id"]]
    claim = Claim(text=text, citations=[item.cited(0, len(text))])
    result = {"answer": text, "refused": False, "evidence": [item.model_dump()]}
    result["claims"] = [claim.model_dump()]
    store.runs.save(run_record("ab12", collection="main", result=result), reader)
    source = ClaimSource(run_id="ab12", citations=claim.citations)
    draft = NoteDraft(content=content or text, provenance=source)
    return next(iter(store.notes.write_notes(reader, [draft])), None)


def test_a_tenant_takes_all_its_notes_along(store: Store) -> None:
    note(store, "I live in Lviv.")
    note(store, "I live in Rome.", RIVAL)
    assert store.maintenance.forget_tenant("acme")["notes"] == 1
    assert contents(store) == [] and contents(store, RIVAL) == ["I live in Rome."]
