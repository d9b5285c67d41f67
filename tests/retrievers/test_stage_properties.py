"""What holds of every stage, whatever the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fakes import FakeEmbedder, document, write
from hypothesis import given
from hypothesis import strategies as st
from stage_builders import ANN, WithVectors, WordReranker, ids

from core.settings import Settings
from core.types import Evidence
from retrievers.factors import boost_entities, factors
from retrievers.stages import (
    adapt_count,
    coverage,
    near_duplicates,
    neighbours,
    rerank,
    token_budget,
)
from retrievers.types import Index, Query
from stores.store import Store

RANKING = [rerank, factors, boost_entities]
CUTTING = [near_duplicates, coverage, adapt_count, token_budget]
STAGES = [*RANKING, *CUTTING, neighbours]
REPEATABLE = [near_duplicates, adapt_count, token_budget]
QUESTIONS = [
    "Where is the harbour?",
    "What is jax.lax.scan in 2.1?",
    "Покажи пример кода",
    "Який висновок?",
    "什么是港口?",
    "Is jax.lax.scan in Print or in the Chapter?",
    "",
    "?",
]
TEXTS = [
    "the harbour is open",
    "the harbour is open",
    "the harbour is not open",
    "гавань открыта",
    "港口开放",
    "x = jax.lax.scan(f)\nprint(x)",
    "\n".join(f"Chapter {n}" for n in range(12)),
    "...",
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, list[Evidence]]]:
    settings = Settings(data=tmp_path_factory.mktemp("library"))
    with Store(settings, "fake", create=True) as store:
        collection = store.intake.open_collection("acme", "main", None)
        rows = [
            document(collection, f"d{n}", *(f"{text} {n}" for text in TEXTS), version=version)
            for n, version in enumerate(("", "2.1", "2.2"))
        ]
        write(store, collection, rows, FakeEmbedder())
        index = Index(store, collection, FakeEmbedder(), settings, WordReranker())
        keys = [chunk.chunk_id for row in rows for chunk in row.chunks]
        found = store.catalogue.evidence(ANN, collection.id, keys)
        yield index, [found[key] for key in keys]


@st.composite
def rankings(draw: st.DrawFn) -> list[tuple[int, float]]:
    """Draw positions of different chunks with scores, best first, with many ties."""
    chosen = draw(st.lists(st.integers(0, 23), unique=True, max_size=24))
    scores = draw(st.lists(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), min_size=24, max_size=24))
    return list(zip(chosen, sorted(scores, reverse=True), strict=False))


def prepared(library, ranking, question) -> tuple[WithVectors, list[Evidence]]:
    index, chunks = library
    index = replace(
        index, settings=Settings(data=index.store.folder, rerank_pool=7, context_tokens=100)
    )
    vector = FakeEmbedder().embed_query(question)
    evidence = [chunks[place].model_copy(update={"score": score}) for place, score in ranking]
    return WithVectors(index, Query(question, ANN), vector), evidence


CASES = given(rankings(), st.sampled_from(QUESTIONS))


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
@CASES
def test_a_stage_returns_a_ranking_of_known_chunks(library, stage, ranking, question) -> None:
    search, evidence = prepared(library, ranking, question)
    before = list(evidence)
    after, note = stage(search, evidence)
    assert evidence == before, "the evidence it was given is not its own"
    assert stage(search, evidence) == (after, note)
    assert len(set(ids(after))) == len(after)
    assert all(math.isfinite(item.score) for item in after)
    assert [item.score for item in after] == sorted((i.score for i in after), reverse=True)
    known = ids(library[1]) if stage is neighbours else ids(evidence)
    assert set(ids(after)) <= set(known)
    assert isinstance(note, str)


@pytest.mark.parametrize("stage", CUTTING, ids=lambda stage: stage.__name__)
@CASES
def test_what_only_cuts_keeps_the_order_and_the_scores(library, stage, ranking, question) -> None:
    search, evidence = prepared(library, ranking, question)
    after, _ = stage(search, evidence)
    kept = set(ids(after))
    wanted = [item for item in evidence if item.chunk_id in kept]
    assert [(i.chunk_id, i.score) for i in after] == [(i.chunk_id, i.score) for i in wanted]
    assert bool(after) == bool(evidence)


@pytest.mark.parametrize("stage", RANKING, ids=lambda stage: stage.__name__)
@CASES
def test_equals_keep_their_order(library, stage, ranking, question) -> None:
    search, evidence = prepared(library, ranking, question)
    after, _ = stage(search, evidence)
    assert sorted(ids(after)) == sorted(ids(evidence))
    places = {key: place for place, key in enumerate(ids(evidence))}
    for one, other in zip(after, after[1:], strict=False):
        assert one.score > other.score or places[one.chunk_id] < places[other.chunk_id]


@pytest.mark.parametrize("stage", REPEATABLE, ids=lambda stage: stage.__name__)
@CASES
def test_a_second_time_changes_nothing(library, stage, ranking, question) -> None:
    search, evidence = prepared(library, ranking, question)
    once, _ = stage(search, evidence)
    assert stage(search, once)[0] == once
