"""Prompts by settings, files and table; names that change with whatever changes a vector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_models import change_weights, embedder_of

from core.settings import Settings
from models.embeddings import Embedder
from models.folder import ModelFolder, Prompts, files_digest, prompts_of
from models.table import find_card

Copy = Callable[..., Path]


def load(folder: Path | str, cache: Path, prompts: Prompts = Prompts()) -> Embedder:  # noqa: B008
    return embedder_of(folder, cache, prompts=prompts, backend="onnx")


def folder_with(tmp_path: Path, own: dict[str, object] | None) -> ModelFolder:
    if own is not None:
        (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(own))
    return ModelFolder(tmp_path, "x")


SMALL = "multilingual-e5-small"
E5 = ("query: ", "passage: ")
SEARCH = ("search_query: ", "search_document: ")
OWN = {"prompts": {"search_query": SEARCH[0], "search_document": SEARCH[1]}}
STS = {"prompts": {"sts": "s: "}, "default_prompt_name": "sts"}


@pytest.mark.parametrize(
    ("own", "known", "wanted", "expected"),
    [
        (None, None, Prompts(), ("", "")),
        (None, SMALL, Prompts(), E5),
        ({"prompts": {"query": "", "document": ""}}, SMALL, Prompts(), E5),
        ({"prompts": {"query": "q: ", "document": ""}}, SMALL, Prompts(), ("q: ", "")),
        (OWN, None, Prompts(), SEARCH),
        ({"prompts": {"query": "a ", "passage": "b "}}, None, Prompts(), ("a ", "b ")),
        (STS, None, Prompts(), ("s: ", "s: ")),
        (STS, "FRIDA", Prompts(), SEARCH),
        ({"prompts": {"query": "q: "}}, "FRIDA", Prompts("", None), ("", "")),
        (None, SMALL, Prompts(None, "mine "), ("query: ", "mine ")),
    ],
)
def test_settings_beat_files_beat_the_table(
    tmp_path: Path,
    own: dict[str, object] | None,
    known: str | None,
    wanted: Prompts,
    expected: tuple[str, str],
) -> None:
    card = find_card(known, "embedder") if known else None
    assert prompts_of(folder_with(tmp_path, own), card, wanted) == expected


def test_a_prompt_is_put_before_the_text(tiny_folder: Path, model_cache: Path) -> None:
    plain = load(tiny_folder, model_cache)
    prompted = load(tiny_folder, model_cache, Prompts("the ", "forest "))
    assert np.allclose(prompted.embed_query("harbour"), plain.embed_query("the harbour"), atol=1e-6)
    expected = plain.embed_documents(["forest harbour"])
    assert np.allclose(prompted.embed_documents(["harbour"]), expected, atol=1e-6)


def test_every_change_of_prompts_changes_the_name(tiny_folder: Path, model_cache: Path) -> None:
    prompts = [Prompts(), Prompts("a ", ""), Prompts("", "a "), Prompts("a ", "b ")]
    names = {load(tiny_folder, model_cache, given).model_id for given in prompts}
    assert len(names) == 4
    assert all(name.startswith("bert-mean-0@") for name in names)


def test_prompts_change_the_embedded_models_name_too(embedded: Embedder) -> None:
    prompted = embedder_of("embedded", Settings().cache, prompts=Prompts("q: "))
    assert prompted.model_id.startswith("multilingual-e5-small@")
    assert prompted.model_id != embedded.model_id


def test_other_weights_have_another_name(tiny_folder: Path, copy_of: Copy, tmp_path: Path) -> None:
    folder = copy_of(tiny_folder, "bert-mean-0")
    before = load(folder, tmp_path / "cache")
    assert before.model_id == load(tiny_folder, tmp_path / "cache").model_id
    change_weights(folder, lambda w: w["encoder.layer.0.output.dense.weight"].neg_())
    after = load(folder, tmp_path / "cache")
    assert after.model_id != before.model_id
    assert not np.allclose(after.embed_query("the harbour"), before.embed_query("the harbour"))


def test_a_readme_does_not_change_the_name(
    tiny_folder: Path, copy_of: Copy, tmp_path: Path
) -> None:
    folder = copy_of(tiny_folder, "bert-mean-0")
    (folder / "README.md").write_text("other words")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    assert load(folder, tmp_path).model_id == load(tiny_folder, tmp_path).model_id


def test_a_digest_is_remembered_until_a_file_changes(tmp_path: Path) -> None:
    import hashlib

    file, cache = tmp_path / "a.bin", tmp_path / "cache"
    file.write_bytes(b"one")
    first = files_digest([file], cache)
    assert first == hashlib.sha256(b"one").hexdigest()
    memo = next(cache.iterdir())
    assert files_digest([file], cache) == first
    file.write_bytes(b"two")
    assert files_digest([file], cache) == hashlib.sha256(b"two").hexdigest()
    memo.write_text("not json")
    assert files_digest([file], cache) == hashlib.sha256(b"two").hexdigest()
    assert [path.name for path in cache.iterdir()] == [memo.name]


def test_a_cache_that_cannot_be_written_is_only_slower(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    in_the_way = tmp_path / "file" / "cache"
    assert files_digest([tmp_path / "file"], in_the_way)
