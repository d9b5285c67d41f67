"""The corpus directory, the ranking of documents, and what a run of all queries holds."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from fakes import FakeEmbedder

from core.errors import CallerError, DataLockedError, OperatorError
from evals.compare import evaluate
from evals.corpus import build_corpus, open_corpus
from evals.dataset import read_dataset
from evals.runner import PIPELINES, Hit, Hits, run_queries, summed_notes, warm_up_texts
from ingest.steps import Steps


def quiet(stage: str, done: int, total: int) -> None:
    assert done >= 0


def hit(name: str, score: float) -> Hit:
    return Hit(name, f"{name} {score}", score)


def test_a_document_ranks_where_its_best_chunk_does():
    found = Hits([hit("b", 0.9), hit("a", 0.8), hit("b", 0.7), hit("c", 0.6), hit("a", 0.1)])
    assert found.documents() == [("b", 0.9), ("a", 0.8), ("c", 0.6)]
    assert Hits().documents() == []


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_every_pipeline_finds_what_shares_its_words(dataset, settings, pipeline):
    result = evaluate(read_dataset(dataset()), pipeline, settings, quiet)
    assert result["metrics"]["recall@5"] == 1.0
    assert result["metrics"]["precision@3"] == pytest.approx(1 / 3, abs=1e-6)
    assert (result["n"], result["pipeline"], result["dataset"]) == (3, pipeline, "tiny")
    assert result["latency_ms"]["p95"] >= result["latency_ms"]["p50"] > 0


def count_embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    embedded: list[int] = []
    original = FakeEmbedder.embed_documents

    def counted(self, texts):
        embedded.append(len(texts))
        return original(self, texts)

    monkeypatch.setattr(FakeEmbedder, "embed_documents", counted)
    return embedded


def test_a_corpus_is_ingested_once_wherever_it_lies(dataset, settings, monkeypatch):
    embedded = count_embedded(monkeypatch)
    first = build_corpus(read_dataset(dataset()), settings, quiet)
    assert sum(embedded) == 4
    moved = build_corpus(read_dataset(dataset(name="copy")), settings, quiet)
    assert moved.settings.data == first.settings.data
    assert sum(embedded) == 4, "nothing is embedded again"
    assert first.left_out == moved.left_out == []
    assert first.settings.data.is_relative_to(settings.cache / "evals")


def test_another_corpus_or_chunk_size_has_another_directory(dataset, settings):
    base = read_dataset(dataset())
    other = read_dataset(dataset({"owl": "Owls.", "walrus": "w", "candle": "c"}, name="other"))
    smaller = settings.model_copy(update={"chunk_size": 300})
    folders = {
        build_corpus(base, settings, quiet).settings.data,
        build_corpus(other, settings, quiet).settings.data,
        build_corpus(base, smaller, quiet).settings.data,
    }
    assert len(folders) == 3


def test_an_interrupted_ingest_is_completed(dataset, settings, monkeypatch):
    found = read_dataset(
        dataset({f"d{n}": f"word{n} text" for n in range(9)}, qrels=[("q1", "d0", 1)])
    )
    slow = settings.model_copy(update={"ingest_batch": 2})
    write = Steps.write
    written: list[object] = []

    def stop_at_the_third(self, batch):
        write(self, batch)
        written.append(batch)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Steps, "write", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        build_corpus(found, slow, quiet)
    monkeypatch.setattr(Steps, "write", write)
    again = build_corpus(found, slow, quiet)
    assert again.left_out == []
    run = run_queries(found, again, "keyword", quiet)
    assert len(run.runs) == 1


def test_documents_without_text_are_told_and_count_as_not_found(dataset, settings):
    documents = {"owl": "The owl hunts.", "empty": ""}
    qrels = [("q1", "owl", 1), ("q1", "empty", 1)]
    result = evaluate(read_dataset(dataset(documents, qrels=qrels)), "keyword", settings, quiet)
    assert result["metrics"]["recall@100"] == 0.5
    (warning,) = result["warnings"]
    assert "documents that ingest left out count as not found: 1 (empty)" in warning
    assert "no text" in warning


def test_one_evaluation_at_a_time(dataset, settings):
    found = read_dataset(dataset())
    impatient = settings.model_copy(update={"lock_wait_s": 0})
    corpus = build_corpus(found, impatient, quiet)
    with open_corpus(corpus.settings), pytest.raises(DataLockedError, match="CARREL_CACHE"):
        build_corpus(found, impatient, quiet)


def test_a_cache_that_is_no_folder(dataset, settings):
    settings.cache.write_text("a file")
    with pytest.raises(OperatorError, match="CARREL_CACHE"):
        build_corpus(read_dataset(dataset()), settings, quiet)


def test_a_corpus_of_nothing_is_an_error(dataset, settings):
    found = read_dataset(dataset({"owl": "", "walrus": ""}, qrels=[("q1", "owl", 1)]))
    with pytest.raises(CallerError, match="nothing of the corpus"):
        build_corpus(found, settings, quiet)


def test_a_query_that_is_not_accepted_finds_nothing_and_is_told(dataset, settings):
    queries = {"q1": "owl hunts at night", "q2": "walrus " * 5000}
    found = read_dataset(dataset(queries=queries, qrels=[("q1", "owl", 1), ("q2", "walrus", 1)]))
    result = evaluate(found, "agentic", settings, quiet)
    assert result["metrics"]["mrr"] == 0.5
    assert result["latency_ms"]["p50"] > 0
    assert "does not accept" in result["warnings"][0]
    assert "q2" in result["warnings"][0]


def test_warm_up_never_uses_a_text_that_is_timed(dataset):
    found = read_dataset(dataset())
    assert warm_up_texts(found, 2) == ["nobody judged this one"] * 2
    alone = dataclasses.replace(found, unused=[])
    timed = {query.text for query in found.queries}
    assert not timed & set(warm_up_texts(alone, 5))
    assert len(warm_up_texts(alone, 5)) == 5
    assert warm_up_texts(dataclasses.replace(alone, queries=found.queries[:1]), 1)
    assert warm_up_texts(found, 0) == []


def test_notes_that_differ_in_figures_alone_are_one():
    notes = Counter({"weight 0.31 of 2": 1, "weight 0.7 of 2": 2, "keywords only": 3, "12 cut": 1})
    assert summed_notes(notes, 6) == [
        "keywords only (3 of 6 queries)",
        "weight … of … (3 of 6 queries)",
        "12 cut (1 of 6 queries)",
    ]


def test_the_distance_is_that_of_the_best_chunk(dataset, settings):
    texts = {"q1": "The owl hunts mice at night in the old barn.", "q2": "walrus in the cold sea"}
    found = read_dataset(dataset(queries=texts, qrels=[("q1", "owl", 1), ("q2", "walrus", 1)]))
    corpus = build_corpus(found, settings, quiet)
    for pipeline in ("vector", "agentic"):
        exact, near = run_queries(found, corpus, pipeline, quiet, distances=True).runs
        assert near.distance is not None
        assert near.distance > 0.1
        assert exact.distance is not None
        assert exact.distance < near.distance
    (first, _) = run_queries(found, corpus, "vector", quiet).runs
    assert first.distance is None, "nobody asked for it"


def test_types_and_languages_have_figures_of_their_own(dataset, settings):
    queries = {"q1": "owl hunts at night", "q2": "морж спит в холодном море", "q3": "candle wax"}
    documents = {"owl": "The owl hunts at night.", "walrus": "морж спит в море", "candle": "wax"}
    metadata = {"q1": {"type": "factual"}, "q3": {"type": "factual"}}
    found = read_dataset(dataset(documents, queries, metadata=metadata))
    result = evaluate(found, "keyword", settings, quiet)
    assert {name: part["n"] for name, part in result["by_type"].items()} == {
        "factual": 2,
        "(no type)": 1,
    }
    assert {name: part["n"] for name, part in result["by_language"].items()} == {"en": 2, "ru": 1}
    total = sum(part["metrics"]["mrr"] * part["n"] for part in result["by_type"].values())
    assert total / 3 == pytest.approx(result["metrics"]["mrr"], abs=1e-6)


def test_one_language_and_no_types_have_no_groups(dataset, settings):
    result = evaluate(read_dataset(dataset()), "keyword", settings, quiet)
    assert "by_type" not in result
    assert "by_language" not in result


def test_a_paired_comparison(dataset, settings):
    result = evaluate(read_dataset(dataset()), "keyword", settings, quiet, against="classic")
    against = result["against"]
    assert against["pipeline"] == "classic"
    for metric, value in result["metrics"].items():
        gap = against["differences"][metric]
        assert gap["difference"] == pytest.approx(value - against["metrics"][metric], abs=1e-5)
        assert gap["wins"] + gap["ties"] + gap["losses"] == 3
        assert 0 < gap["p"] <= 1


@pytest.mark.parametrize(
    ("pipeline", "against"), [("best", None), ("hybrid", "best"), ("hybrid", "hybrid")]
)
def test_wrong_pipelines(dataset, settings, pipeline, against):
    with pytest.raises(CallerError) as caught:
        evaluate(read_dataset(dataset()), pipeline, settings, quiet, against=against)
    assert caught.value.exit_code == 2
    assert not settings.cache.exists(), "nothing is ingested before the names are checked"
