"""The table of known models: valid, found by name or folder, complete for the library of models."""

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from models.table import ModelCard, find_card, model_table


def test_names_are_unique_and_embedders_say_their_dimension() -> None:
    table = model_table()
    assert len({card.short_name.casefold() for card in table}) == len(table)
    assert all(card.dimension and card.pooling for card in table if card.kind == "embedder")
    assert {card.kind for card in table} == {"embedder", "cross-encoder"}


@pytest.mark.parametrize(
    "name",
    [
        "intfloat/multilingual-e5-base",
        "multilingual-e5-base",
        "/models/multilingual-e5-base/",
        "Multilingual-E5-Base",
    ],
)
def test_a_card_is_found_by_name_and_by_folder(name: str) -> None:
    card = find_card(name, "embedder")
    assert card is not None
    assert (card.query_prompt, card.passage_prompt) == ("query: ", "passage: ")


def test_kinds_are_not_mixed_and_strangers_are_unknown() -> None:
    assert find_card("bge-reranker-v2-m3", "embedder") is None
    assert find_card("bge-reranker-v2-m3", "cross-encoder") is not None
    assert find_card("my-own-model", "embedder") is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "no-owner"},
        {"kind": "chat"},
        {"max_tokens": 0},
        {"languages": ["english"]},
        {"colour": "red"},
    ],
)
def test_a_bad_row_is_refused(wrong: dict[str, object]) -> None:
    row = {"name": "a/b", "kind": "embedder", "licence": "MIT", "max_tokens": 512}
    TypeAdapter(ModelCard).validate_python(row)
    with pytest.raises(ValidationError):
        TypeAdapter(ModelCard).validate_python(row | wrong)
