"""The entity channel: candidates that name what the question names."""

from __future__ import annotations

import pytest
from fakes import document, write
from stage_builders import ANN, searched

from retrievers import factors as entities
from retrievers.factors import boost_entities, entity_shares, question_names

TEXTS = {
    "both": "Marie Curie worked with NASA on radium.",
    "one": "Marie Curie was born in Warsaw.",
    "half": "Marie went home, the curry was good.",
    "none": "The harbour is open.",
    "russian": "Мария Кюри родилась в Варшаве.",
}


@pytest.fixture
def candidates(store, collection, embedder):
    rows = [
        document(collection, name, text, language="ru" if name == "russian" else "en")
        for name, text in TEXTS.items()
    ]
    write(store, collection, rows, embedder)
    keys = [row.chunks[0].chunk_id for row in rows]
    found = store.catalogue.evidence(ANN, collection.id, keys)
    return [found[key] for key in keys]


def named(index, question, candidates) -> dict[str, float]:
    shares = entity_shares(searched(index(entity_model="rules"), question), candidates)
    documents = {item.chunk_id: item.document_id for item in candidates}
    return {documents[key]: share for key, share in shares.items()}


def test_candidates_are_ranked_by_the_names_they_share(index, candidates) -> None:
    shares = named(index, "Did Marie Curie work with NASA?", candidates)
    assert list(shares) == ["both", "one"]
    assert shares["both"] == 1.0
    assert 0 < shares["one"] < 0.5  # NASA is the rarer name


def test_a_name_is_found_in_another_case(index, candidates) -> None:
    assert named(index, "Где родилась дочь Марии Кюри?", candidates) == {"russian": 1.0}


@pytest.mark.parametrize("question", ["Where is the harbour?", "where?", ""])
def test_a_question_without_names_ranks_nothing(index, candidates, question) -> None:
    assert question_names(searched(index(entity_model="rules"), question)) == []
    assert named(index, question, candidates) == {}


def test_evidence_that_names_them_rises(index, candidates, monkeypatch) -> None:
    monkeypatch.setattr(entities, "ENTITIES_WEIGHT", 0.5)
    search = searched(index(entity_model="rules"), "Did Marie Curie work with NASA?")
    evidence = [item.model_copy(update={"score": 0.4}) for item in reversed(candidates)]
    after, note = boost_entities(search, evidence)
    assert [i.document_id for i in after] == ["both", "one", "russian", "none", "half"]
    assert after[0].score == pytest.approx(0.9)
    assert (after[0].scores, after[2].scores) == ({"entities": 1.0}, {})
    assert note == "2 name entities of the question"
    assert boost_entities(searched(index(), "Where is it?"), evidence) == (evidence, "")


def test_nothing_is_ranked_without_candidates(index, store) -> None:
    assert entity_shares(searched(index(), "Who was Marie Curie?"), []) == {}
