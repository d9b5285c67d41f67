"""Contract of RunLog: each finds their own runs and conversations, and nobody else's."""

from __future__ import annotations

import pytest
from builders import run_record
from fakes import FakeEmbedder, Shelf, document, write

from core.auth import AuthContext
from core.errors import AbsentError, CallerError
from core.trace import RunRecord, Step
from core.types import Claim, Clarification, Evidence
from stores.runlog.conversations import Conversation, KeptTurn
from stores.sqlite.catalogue import Collection
from stores.store import Store

ANN = AuthContext(tenant="acme", user="ann")
EVE = AuthContext(tenant="acme", user="eve")


@pytest.fixture
def kept(store: Store) -> Store:
    for record in (
        run("abc1", "2026-01-01"),
        run("abd2", "2026-01-02"),
        run("a%_3", "2026-01-03"),
        run("zzz9", "2026-01-09", user="bob"),
        run("yyy8", "2026-01-08", tenant="rival"),
    ):
        store.runs.save(record)
    return store


@pytest.mark.parametrize(
    ("asked", "found"), [("abc1", "abc1"), ("abc", "abc1"), ("a%", "a%_3"), ("last", "a%_3")]
)
def test_a_run_is_found(kept: Store, asked: str, found: str) -> None:
    assert kept.runs.load(ANN, asked).run_id == found


@pytest.mark.parametrize("asked", ["ab", "a", "%", "_bc1", "zzz9", "yyy8", "nothing", "'"])
def test_an_unclear_or_foreign_name_is_refused(kept: Store, asked: str) -> None:
    with pytest.raises(CallerError, match="a run is named by"):
        kept.runs.load(ANN, asked)


def test_a_run_comes_back_as_it_was_kept(kept: Store) -> None:
    asked = run("abc1", "2026-02-01", trail=[Step(node="retrieve", tool="search", ms=0.5)])
    kept.runs.save(asked)
    assert kept.runs.load(ANN, "abc1") == asked


def test_the_newest_runs_of_the_user_are_listed(kept: Store) -> None:
    assert [r.run_id for r in kept.runs.newest(ANN, 2)] == ["a%_3", "abd2"]
    assert kept.runs.newest(EVE, 5) == []


def test_a_run_is_kept_again_under_its_id(kept: Store) -> None:
    kept.runs.save(run("abc1", "2026-02-01"))
    assert kept.runs.load(ANN, "last").run_id == "abc1"
    assert len(kept.runs.newest(ANN, 9)) == 3


def run(run_id: str, created_at: str, **values: object) -> RunRecord:
    said = {"answer": "Because… 因为"}
    return run_record(run_id, created_at=created_at, **{"result": said, **values})


def resting(item: Evidence, run_id: str = "rests") -> RunRecord:
    """Return a run whose answer rests on one passage."""
    claim = Claim(text=item.text, citations=[item.cited(4, 8)])
    result = {
        "answer": item.text,
        "refused": False,
        "evidence": [item.model_dump()],
        "claims": [claim.model_dump()],
    }
    return run(run_id, "2026-03-01", result=result)


@pytest.fixture
def passage(store: Store, collection: Collection, embedder: FakeEmbedder) -> Evidence:
    row = document(collection, "d", "The reed bends.")
    write(store, collection, [row], embedder)
    [found] = store.catalogue.evidence(ANN, collection.id, [row.chunks[0].chunk_id]).values()
    return found


def test_what_its_user_may_not_see_any_more_is_left_out(shelf: Shelf, passage: Evidence) -> None:
    assert shelf.runs.save(resting(passage), ANN) is False
    assert "reed" in str(shelf.runs.load(ANN, "rests").result)
    closed = shelf.row("d", "The reed bends.", acl=["boss"])
    shelf.write(closed)
    assert "reed" not in str(shelf.runs.load(ANN, "rests").result)
    boss = ANN.model_copy(update={"roles": frozenset({"boss"})})
    assert "reed" in str(shelf.runs.load(boss, "rests").result)


def test_a_run_that_ends_after_its_document_is_deleted_has_no_text_of_it(
    shelf: Shelf, passage: Evidence
) -> None:
    assert shelf.maintenance.erase(ANN, shelf.collection, "d")
    late = resting(passage)
    assert shelf.runs.save(late, ANN) is True
    assert "reed" not in str(shelf.runs.load(ANN, "rests"))
    assert "reed" in str(late)  # its caller still gets what was found


def turn(store: Store, talk: Conversation, run_id: str) -> None:
    store.runs.save(run(run_id, "2026-01-01"))
    kept = KeptTurn(run_id, f"{run_id}?")
    store.runs.save_turn(talk, kept, f"after {run_id}", title="First")


def test_a_conversation_has_its_turns_in_order(store: Store) -> None:
    begun = store.runs.create_conversation("acme", "ann", "main")
    assert (begun.title, begun.turns, begun.checkpoint_id, begun.waiting) == ("", 0, "", None)
    turn(store, begun, "r1")
    turn(store, begun, "r2")
    talk = store.runs.load_conversation(ANN, begun.id)
    assert (talk.title, talk.turns, talk.checkpoint_id) == ("First", 2, "after r2")
    assert talk.updated_at >= begun.updated_at
    turns = store.runs.turns(ANN, talk)
    assert [(one["run_id"], one["question"]) for one in turns] == [("r1", "r1?"), ("r2", "r2?")]
    assert turns[0]["answer"] == "Because… 因为"
    store.runs.rename_conversation(talk, "Other")
    assert store.runs.load_conversation(ANN, talk.id).title == "Other"
    assert not store.runs.is_closed(ANN, talk)


def test_a_turn_that_asks_back_waits_for_its_reply(store: Store) -> None:
    begun = store.runs.create_conversation("acme", "ann", "main")
    asks = Clarification(question="Which oak?", options=["red", "white"])
    store.runs.save_turn(begun, KeptTurn("r1", "Oak?", asks), "s1", title="Oak?", waiting=True)
    waiting = store.runs.load_conversation(ANN, begun.id).waiting
    assert waiting is not None
    assert (waiting.run_id, waiting.question, waiting.clarification) == ("r1", "Oak?", asks)
    store.runs.save_turn(begun, KeptTurn("r1", "Oak?", asks, "red"), "s2", title="No")
    talk = store.runs.load_conversation(ANN, begun.id)
    assert (talk.waiting, talk.turns, talk.title) == (None, 1, "Oak?")
    [kept] = store.runs.turns(ANN, talk)
    assert (kept["reply"], kept["clarification"]["question"]) == ("red", "Which oak?")


def test_conversations_are_their_owners(store: Store) -> None:
    talks = [store.runs.create_conversation("acme", "ann", "main") for _ in range(3)]
    turn(store, talks[0], "r1")
    listed = store.runs.newest_conversations(ANN, 2)
    assert [one.id for one in listed] == [talks[0].id, talks[2].id]  # last used first
    [last] = store.runs.newest_conversations(ANN, 2, before=listed[-1].id)
    assert last.id == talks[1].id
    for auth in (EVE, AuthContext(tenant="rival", user="ann")):
        assert store.runs.newest_conversations(auth, 9) == []
        with pytest.raises(AbsentError):
            store.runs.load_conversation(auth, talks[0].id)
    with pytest.raises(AbsentError):
        store.runs.load_conversation(ANN, talks[0].id[:-1])


def test_a_deleted_conversation_takes_its_runs_along(store: Store) -> None:
    talk = store.runs.create_conversation("acme", "ann", "main")
    turn(store, talk, "r1")
    store.runs.save(run("alone", "2026-01-02"))
    assert store.runs.count_runs(talk) == 1
    store.runs.delete_conversation(talk)
    assert [one.run_id for one in store.runs.newest(ANN, 9)] == ["alone"]
    with pytest.raises(AbsentError):
        store.runs.load_conversation(ANN, talk.id)


def test_answers_of_turns_that_rest_on_what_was_closed_are_left_out(
    shelf: Shelf, passage: Evidence
) -> None:
    talk = shelf.runs.create_conversation("acme", "ann", "main")
    shelf.runs.save(resting(passage), ANN)
    shelf.runs.save_turn(talk, KeptTurn("rests", "What bends?"), "s", title="")
    assert not shelf.runs.is_closed(ANN, talk)
    closed = shelf.row("d", "The reed bends.", acl=["boss"])
    shelf.write(closed)
    assert shelf.runs.is_closed(ANN, talk)
    [kept] = shelf.runs.turns(ANN, shelf.runs.load_conversation(ANN, talk.id))
    assert "reed" not in str(kept) and kept["question"] == "What bends?"


def test_one_opinion_on_a_document_for_each_user_who_sees_it(shelf: Shelf) -> None:
    runs, here = shelf.runs, shelf.collection.id
    shelf.write(shelf.row("d", "The reed bends."), shelf.row("e", "A secret.", acl=["boss"]))
    runs.rate_document(ANN, here, "d", "down")
    runs.rate_document(ANN, here, "d", "up")
    with pytest.raises(AbsentError):
        runs.rate_document(ANN, here, "e", "up")
    [mine] = runs.list_ratings(ANN, here)
    assert (mine.document_id, mine.rating) == ("d", "up") and mine.passage
    assert runs.list_ratings(EVE, here) == [] == list(runs.export_feedback(ANN))
    shelf.write(shelf.row("d", "The reed bends, again."))  # an opinion outlives another text
    assert [one.rating for one in runs.list_ratings(ANN, here)] == ["up"]
    shelf.write(shelf.row("d", "The reed bends.", acl=["boss"]))
    assert runs.list_ratings(ANN, here) == []
    assert (runs.delete_ratings(EVE), runs.delete_ratings(ANN)) == (0, 1)


def test_what_was_recommended_is_counted_once_for_each_user(shelf: Shelf) -> None:
    runs, here = shelf.runs, shelf.collection.id
    shelf.write(shelf.row("d", "The reed bends."), shelf.row("e", "The oak does not."))
    runs.rate_document(ANN, here, "d", "viewed")
    [mine] = runs.list_ratings(ANN, here)
    assert mine.rating == "viewed"
    for _ in range(2):
        runs.note_listed(ANN, [mine.key, "other"])
    runs.rate_document(ANN, here, "d", "down")
    runs.rate_document(ANN, here, "e", "adopted")  # which was not listed
    assert runs.adoption("acme") == {
        "users": 1, "listed": 2, "viewed": 1, "adopted": 0, "liked": 0,
    }  # fmt: skip
    assert runs.adoption("rival")["listed"] == 0
    told = {opinion for _, _, opinion in runs.opinions_of_all("acme", here)}
    assert told == {"viewed", "listed", "down", "adopted"}
    assert (runs.delete_ratings(ANN), runs.adoption("acme")["listed"]) == (3, 0)


def test_one_opinion_on_a_run_for_each_user(kept: Store) -> None:
    kept.runs.save_feedback("acme", "ann", "abc1", "up", "good")
    kept.runs.save_feedback("acme", "ann", "abc1", "down", "no, bad")
    kept.runs.save_feedback("acme", "bob", "zzz9", "up", "")
    kept.runs.save_feedback("rival", "ann", "yyy8", "up", "")
    [mine] = kept.runs.export_feedback(ANN)
    assert (mine["run_id"], mine["rating"], mine["comment"]) == ("abc1", "down", "no, bad")
    assert (mine["question"], mine["answer"]) == ("Why?", "Because… 因为")
    everyone = [one["run_id"] for one in kept.runs.export_feedback(EVE, everyone=True)]
    assert sorted(everyone) == ["abc1", "zzz9"]
    assert list(kept.runs.export_feedback(EVE)) == []
