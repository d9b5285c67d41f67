"""The tables of models: valid, unique, found by name and folder, known to `carrel llm serve`."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from core.errors import CallerError
from models.folder import EMBEDDED
from models.named import find_named, named_models
from models.table import (
    READER,
    ChatCard,
    ModelCard,
    chat_table,
    find_card,
    find_chat_card,
    model_table,
    published_weights,
)


def test_names_and_files_are_unique_and_complete() -> None:
    table = chat_table()
    assert len({card.name.casefold() for card in table}) == len(table)
    assert len({card.file.casefold() for card in table}) == len(table)
    assert len({card.sha256 for card in table}) == len(table)
    sizes = [card.bytes or 0 for card in table]
    assert sizes == sorted(sizes)
    assert all(card.quantisation in card.file for card in table)


def test_each_has_a_rank_and_serves_no_more_than_it_was_made_for() -> None:
    assert sorted(card.rank for card in chat_table()) == list(range(1, len(chat_table()) + 1))
    assert all(card.slot_context <= card.context for card in chat_table())


@pytest.mark.parametrize(
    "name", ["qwen3-8b", "Qwen3-8B-Q4_K_M.gguf", "/models/Qwen3-8B-Q4_K_M.gguf"]
)
def test_a_card_is_found_by_name_and_by_file(name: str) -> None:
    card = find_chat_card(name)
    assert card is not None
    assert card.name == "Qwen3-8B"


@pytest.mark.parametrize(
    "wrong",
    [
        {"file": "../escape.gguf"},
        {"file": "weights.bin"},
        {"name": "a/b"},
        {"sha256": "abc"},
        {"bytes": 0},
        {"thinking": "maybe"},
        {"colour": "red"},
    ],
)
def test_a_bad_row_is_refused(wrong: dict[str, object]) -> None:
    row = chat_table()[0].model_dump()
    TypeAdapter(ChatCard).validate_python(row)
    with pytest.raises(ValidationError):
        TypeAdapter(ChatCard).validate_python(row | wrong)


def test_published_weights_belong_to_known_models() -> None:
    weights = published_weights()
    assert set(weights) <= {card.name for card in model_table()} | {EMBEDDED, READER}
    assert weights[READER]["encoder"] == weights[EMBEDDED]["sha256"]
    assert all(set(row) - {"encoder"} == {"bytes", "sha256"} for row in weights.values())


def test_the_embedded_model_lies_here_and_chat_models_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "Qwen3-0.6B-Q8_0.gguf").write_bytes(b"GGUF")
    here = {model.name: model.path for model in named_models(tmp_path)}
    assert here["embedded"] is not None
    assert here["Qwen3-0.6B"] == tmp_path / "Qwen3-0.6B-Q8_0.gguf"
    assert here["Qwen3-8B"] is None


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    assert find_named("bge-m3", tmp_path).name == "BAAI/bge-m3"
    with pytest.raises(CallerError) as error:
        find_named("gpt-oss", tmp_path)
    assert "`carrel models list` shows all" in str(error.value)


def test_names_of_encoders_are_unique_and_embedders_say_their_dimension() -> None:
    table = model_table()
    assert len({card.name.rpartition("/")[2].casefold() for card in table}) == len(table)
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
def test_a_bad_row_of_an_encoder_is_refused(wrong: dict[str, object]) -> None:
    row = {"name": "a/b", "kind": "embedder", "licence": "MIT", "max_tokens": 512}
    TypeAdapter(ModelCard).validate_python(row)
    with pytest.raises(ValidationError):
        TypeAdapter(ModelCard).validate_python(row | wrong)
