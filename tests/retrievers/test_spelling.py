"""Misspelt words: what is corrected, what is left, and whose documents decide."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.language.scan import words_replaced
from core.settings import Settings
from retrievers.spelling import corrections, is_visible
from retrievers.types import Index, Query

ANN = AuthContext(tenant="acme")
TEXTS = {
    "a": "The harbour pilot guides ships; the lighthouse keeper lights the lamp.",
    "b": "Маяк стоит у гавани, его построил инженер.",
}


COMMON = {"nebula", "harbour", "lighthouse", "keeper", "treasure", "pilot"}


class Reader(FakeEmbedder):
    """Cut all words but a few into many pieces."""

    def pieces(self, word: str) -> int:
        return 1 if word in COMMON else 2 if word == "pilon" else 3


@pytest.fixture
def filled(index, store, collection, embedder) -> Index:
    rows = [document(collection, name, text) for name, text in TEXTS.items()]
    rows.append(document(collection, "c", "The treasure is buried.", acl=["boss"]))
    write(store, collection, rows, embedder)
    made: Index = index(drift_similarity=0.0)  # the fake embedder compares words alone
    return replace(made, embedder=Reader())


@pytest.mark.parametrize(
    ("typed", "language", "expected"),
    [
        ("Who is the harbuor pilot?", "en", {"harbuor": "harbour"}),
        ("Where is the lighthose keper?", "en", {"lighthose": "lighthouse", "keper": "keeper"}),
        ("Кто построил мояк?", "ru", {"мояк": "маяк"}),
        ("Who is the harbour pilot?", "en", {}),
        ("What is a nebula?", "en", {}),
        ("Где находится причал?", "ru", {}),  # a word of the dictionary is no misspelling
        ("Who is Pilon?", "en", {}),  # a name
        ("Is the tresure buried?", "en", {}),  # only others may see the word that is meant
        ("港口在哪里?", "zh", {}),
        ("", "en", {}),
    ],
)
def test_words_that_no_document_has(filled: Index, typed, language, expected) -> None:
    assert corrections(filled, Query(typed, ANN, language=language)) == expected


def test_who_may_see_the_word_gets_the_correction(filled: Index) -> None:
    boss = AuthContext(tenant="acme", roles=frozenset({"boss"}))
    found = corrections(filled, Query("Tresure: is it there?", boss, language="en"))
    assert found == {"Tresure": "Treasure"}
    assert words_replaced("Tresure: is it there?", found) == "Treasure: is it there?"


def test_who_asks_back_may_take_a_name_for_misspelt(filled: Index) -> None:
    asked = Query("Who is Pilon?", ANN, language="en")
    assert corrections(filled, asked, surely=False) == {"Pilon": "Pilot"}
    known = Query("Where is the nebula?", ANN, language="en")
    assert corrections(filled, known, surely=False) == {}


def test_many_unknown_words_are_another_language(filled: Index) -> None:
    text = "Harbuor pilto keper lighthose shps"
    assert corrections(filled, Query(text, ANN, language="en")) == {}


def test_a_correction_that_drifts_is_thrown_away(filled: Index) -> None:
    strict = replace(filled, settings=Settings(drift_similarity=1.0))
    assert corrections(strict, Query("Who is the harbuor pilot?", ANN, language="en")) == {}


def test_without_a_vocabulary_nothing_is_a_misspelling(filled: Index, embedder) -> None:
    plain = replace(filled, embedder=embedder)
    assert corrections(plain, Query("Who is the harbuor pilot?", ANN, language="en")) == {}


def test_a_word_is_visible_only_to_who_may_read_it(filled: Index) -> None:
    boss = AuthContext(tenant="acme", roles=frozenset({"boss"}))
    assert is_visible(filled, Query("", boss, language="en"), "treasure")
    assert not is_visible(filled, Query("", ANN, language="en"), "treasure")
    assert is_visible(filled, Query("", ANN, language="en"), "lighthouse")
    assert not is_visible(filled, Query("", boss, language="en"), "zeppelin")
