"""Which chunker a document gets, and what is said when it is another than asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder
from pydantic import ValidationError

from core.profile import built_in_profiles, load_profile
from core.settings import Settings, load_settings
from ingest.chunkers.chunkers import (
    Chunkers,
    FixedChunker,
    SemanticChunker,
    SentenceChunker,
    StructuralChunker,
)

CLASSES = {
    "sentence": SentenceChunker,
    "fixed": FixedChunker,
    "semantic": SemanticChunker,
    "structural": StructuralChunker,
}


def chosen(embedder: FakeEmbedder | None = None, **values: Any) -> Chunkers:
    return Chunkers(Settings(**{"data": Path("unused"), **values}), embedder)


@pytest.mark.parametrize("name", CLASSES)
def test_the_setting_names_the_chunker(name: str) -> None:
    chunkers = chosen(FakeEmbedder(), chunker=name)
    assert type(chunkers.choose("en")) is CLASSES[name]
    assert chunkers.notes == []


def test_sentences_are_the_default() -> None:
    assert type(chosen().choose("en")) is SentenceChunker


def test_semantic_chunks_need_an_embedder_of_the_language() -> None:
    chunkers = chosen(FakeEmbedder(frozenset({"en"})), chunker="semantic")
    assert type(chunkers.choose("en")) is SemanticChunker
    for language in ("ru", "zh", "ru"):
        assert type(chunkers.choose(language)) is SentenceChunker
    (note,) = chunkers.notes
    assert "ru, zh" in note and "sentences" in note
    without = chosen(chunker="semantic")
    assert type(without.choose("en")) is SentenceChunker and len(without.notes) == 1


@pytest.mark.parametrize(
    ("chunker", "change"),
    [
        ("sentence", {"chunk_size": 500}),
        ("sentence", {"chunk_overlap": 5}),
        ("sentence", {"merge_short": True}),
        ("fixed", {"chunk_overlap": 5}),
        ("semantic", {"semantic_similarity": 0.5}),
        ("semantic", {"semantic_min": 5}),
        ("semantic", {"semantic_max": 700}),
        ("structural", {"structural_max": 700}),
        ("structural", {"chunk_size": 500}),
    ],
)
def test_whatever_decides_the_rows_is_in_the_key(chunker: str, change: dict[str, Any]) -> None:
    embedder = FakeEmbedder()
    key = chosen(embedder, chunker=chunker).key
    assert chosen(embedder, chunker=chunker).key == key
    assert chosen(embedder, chunker=chunker, **change).key != key


def test_the_key_knows_the_chunker_the_merging_and_the_model() -> None:
    keys = [chosen(FakeEmbedder(), chunker=name).key for name in CLASSES]
    assert len(set(map(str, keys))) == len(CLASSES)
    merged = {"merge_short": True}
    assert chosen(**merged).key != chosen(**merged, merge_max=500).key
    assert chosen(**merged).key != chosen(**merged, merge_short_chars=50).key
    models = [
        chosen(FakeEmbedder(languages, name), chunker="semantic").key
        for name in ("one", "two")
        for languages in (None, frozenset({"en"}))
    ]
    assert len(set(map(str, models))) == 4


def test_what_a_chunker_does_not_use_changes_nothing() -> None:
    assert chosen(semantic_max=700, structural_max=700, merge_max=500).key == chosen().key


def test_semantic_bounds_must_agree() -> None:
    with pytest.raises(ValidationError, match=r"semantic_min \(600\)"):
        Settings(data=Path("unused"), semantic_min=600)


@pytest.mark.parametrize("name", built_in_profiles())
def test_built_in_profiles_have_a_valid_chunker(name: str) -> None:
    settings, _ = load_settings({"data": Path("unused")}, load_profile(name).settings)
    structural = name in ("projects", "techdocs")
    assert settings.ingest.chunker == ("structural" if structural else "sentence")
