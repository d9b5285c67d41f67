"""Each branch of the failure tree (SPEC T5), reached by configuration or by a fault."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from fakes import FakeEmbedder, document, write

from core.auth import AuthContext
from core.errors import ModelError
from retrievers import expansion, hybrid
from retrievers.fusion import TEXT, VECTOR
from retrievers.hybrid import hybrid_search
from retrievers.types import Index, Query
from stores.sqlite.catalogue import Collection
from stores.store import Store

ANN = AuthContext(tenant="acme")
BOTH = {VECTOR: 10, TEXT: 10}
TEXTS = {
    "best": "harbour pilot crane tide lighthouse",
    "half": "harbour pilot forest meadow river",
    "less": "harbour meadow river forest hill",
    "none": "quiet mountain village bridge road",
}


@pytest.fixture
def filled(store: Store, collection: Collection, embedder: FakeEmbedder) -> Collection:
    rows = [document(collection, name, text) for name, text in TEXTS.items()]
    write(store, collection, rows, embedder)
    return collection


class BrokenEmbedder(FakeEmbedder):
    def embed_query(self, text: str):
        raise ModelError("the embedder gives no numbers", value="nan")


def search(index: Index, text: str, **query):
    return hybrid_search(index, Query(text, ANN, **query), [VECTOR, TEXT], BOTH, 10)


def with_settings(index: Index, **changes) -> Index:
    return replace(index, settings=index.settings.model_copy(update=changes))


@pytest.mark.parametrize("model", [None, BrokenEmbedder()], ids=["missing", "broken"])
def test_without_vectors_only_good_hits_by_words_are_kept(
    filled: Collection, index: Callable[..., Index], model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hybrid, "CUTOFF_ALONE", 0.9)
    text = "harbour pilot crane tide lighthouse"
    bare = replace(index(), embedder=model)
    found = search(bare, text)
    assert [item.document_id for item in found.evidence] == ["best"]
    assert any(note.startswith("keywords only") for note in found.notes)
    monkeypatch.setattr(hybrid, "CUTOFF_ALONE", 0.0)
    assert len(search(bare, text).evidence) == 3


def test_weak_vectors_lose_weight_to_words_where_a_profile_says_so(
    filled: Collection, index: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = index(**{"selection.factor_amounts": ["weak=0.2"]})
    monkeypatch.setattr(hybrid, "WEAK", -1.0)
    [rank] = [one for one in search(made, "harbour pilot").stages if one.name == "rank"]
    assert rank.note.endswith("vectors weigh 0.4")
    monkeypatch.setattr(hybrid, "WEAK", 1.0)
    [rank] = [one for one in search(made, "harbour pilot").stages if one.name == "rank"]
    assert "weigh" not in rank.note


def test_a_vector_search_without_an_embedder_falls_back_to_words(
    filled: Collection, index: Callable[..., Index]
) -> None:
    bare = replace(index(), embedder=None)
    found = hybrid_search(bare, Query("harbour crane", ANN), [VECTOR], {VECTOR: 10}, 10)
    assert found.evidence[0].document_id == "best"
    assert found.notes


class Backwards:
    """Prefer the passages that a search likes least."""

    model_id = "backwards"
    languages = None

    def score(self, question, passages):
        return [place / len(passages) for place, _ in enumerate(passages)]


def test_without_time_the_ranking_is_not_re_ranked(
    filled: Collection, index: Callable[..., Index]
) -> None:
    ranked = with_settings(
        replace(index(), reranker=Backwards()), stage_rerank=True, stage_factors=False
    )
    calm = search(ranked, "harbour pilot", deadline=time.monotonic() + 60)
    late = search(ranked, "harbour pilot", deadline=time.monotonic() + 0.1)
    order = [item.document_id for item in late.evidence]
    assert [item.document_id for item in calm.evidence] == order[::-1]
    assert any("not re-ranked" in stage.note for stage in late.stages)


class Writer:
    def __init__(self, passage: str) -> None:
        self.passage = passage
        self.asked: list[str] = []

    def write_passage(self, question: str, language: str) -> str:
        self.asked.append(question)
        return self.passage


WEAK = {"drift_similarity": 0.0}


@pytest.fixture
def _weak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every search be weak, and none so weak that a passage stands for the query."""
    monkeypatch.setattr(expansion, "QUERY2DOC_DISTANCE", 0.0)
    monkeypatch.setattr(expansion, "HYDE_DISTANCE", 2.0)


@pytest.mark.usefixtures("_weak")
def test_without_a_model_nothing_is_written(
    filled: Collection, index: Callable[..., Index]
) -> None:
    found = search(with_settings(index(), **WEAK), "harbour hill")
    assert not any("passage" in note for note in found.notes)


@pytest.mark.usefixtures("_weak")
def test_a_written_passage_finds_what_the_question_does_not_say(
    filled: Collection, index: Callable[..., Index]
) -> None:
    writer = Writer("lighthouse tide crane pilot harbour")
    writing = with_settings(replace(index(), writer=writer), **WEAK)
    before = search(with_settings(index(), **WEAK), "hill harbour")
    found = search(writing, "hill harbour")
    assert before.evidence[0].document_id == "less"
    assert found.evidence[0].document_id == "best"
    assert writer.asked == ["hill harbour"]
    assert any("Query2Doc" in note for note in found.notes)


@pytest.mark.usefixtures("_weak")
@pytest.mark.parametrize(
    ("distance", "similarity"),
    [(2.0, 0.0), (0.0, 1.0)],
    ids=["the search is not weak", "the passage drifts"],
)
def test_the_gates_of_a_written_passage(
    filled: Collection,
    index: Callable[..., Index],
    monkeypatch: pytest.MonkeyPatch,
    distance: float,
    similarity: float,
) -> None:
    writing = replace(index(), writer=Writer("lighthouse tide crane"))
    plain = search(with_settings(index(), **WEAK), "hill harbour")
    monkeypatch.setattr(expansion, "QUERY2DOC_DISTANCE", distance)
    found = search(with_settings(writing, drift_similarity=similarity), "hill harbour")
    assert found.evidence == plain.evidence


@pytest.mark.usefixtures("_weak")
def test_the_last_resort_replaces_the_vector(
    filled: Collection, index: Callable[..., Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = with_settings(replace(index(), writer=Writer("quiet mountain village")), **WEAK)
    monkeypatch.setattr(expansion, "HYDE_DISTANCE", 0.0)
    found = search(writing, "hill")
    assert any("HyDE" in note for note in found.notes)
    top = max(found.evidence, key=lambda item: item.scores[VECTOR])
    assert top.document_id == "none"


def test_a_re_ranker_works_as_soon_as_one_is_named(
    filled: Collection, index: Callable[..., Index]
) -> None:
    plain = search(index(), "harbour pilot")
    named = search(
        with_settings(replace(index(), reranker=Backwards()), stage_factors=False), "harbour pilot"
    )
    assert "rerank" in [stage.name for stage in named.stages]
    assert "rerank" not in [stage.name for stage in plain.stages]
    assert {i.document_id for i in named.evidence} == {i.document_id for i in plain.evidence}
    assert named.evidence[0].document_id != plain.evidence[0].document_id
