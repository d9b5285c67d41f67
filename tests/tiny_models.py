"""Tiny models of random weights, made once: real files that real libraries load.

- `make_model`: writes a sentence-transformers folder; `make_model("bert", pooling="cls")`.
- `tiny_folder`: a mean-pooling BERT of 16 dimensions.
- `make_cross_encoder`: writes a cross-encoder folder; `make_cross_encoder("bert", labels=1)`.
- `tiny_cross_encoder`: one of one label.
- `copy_of`: copies a folder, to be damaged.
- `embedded`, `embedded_en`: the embedded models, multilingual-e5-small and all-MiniLM-L6-v2.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.settings import Settings
from models.embeddings import Embedder, load_embedder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "harbour", "forest", "word", "."]
SHAPE = {
    "vocab_size": len(WORDS),
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
    "initializer_range": 0.5,
}
DISTIL = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 64}


def save_encoder(folder: Path, kind: str, head: str, **values: Any) -> Path:
    """Write a transformers model of a type with a word-piece tokenizer."""
    import torch
    import transformers

    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    tokenizer = transformers.BertTokenizer(vocab=str(folder / "vocab.txt"), model_max_length=32)
    tokenizer.save_pretrained(folder)
    names = {"bert": "Bert", "roberta": "Roberta", "xlm-roberta": "XLMRoberta"}
    name = names.get(kind, {"distilbert": "DistilBert", "mpnet": "MPNet"}.get(kind, ""))
    shape = {**SHAPE, **values}
    if kind == "distilbert":
        shape = {**DISTIL, "vocab_size": len(WORDS), **values}
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**shape)
    getattr(transformers, f"{name}{head}")(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    made: dict[str, Path] = {}

    def make(kind: str = "bert", pooling: str = "mean", dense: int = 0) -> Path:
        key = f"{kind}-{pooling}-{dense}"
        if key not in made:
            from sentence_transformers import SentenceTransformer
            from sentence_transformers.sentence_transformer import modules

            folder = tmp_path_factory.mktemp("model")
            encoder = save_encoder(folder / "encoder", kind, "Model")
            parts = [modules.Transformer(str(encoder)), modules.Pooling(16, pooling)]
            if dense:
                parts.append(modules.Dense(16, dense))
            made[key] = folder / key
            SentenceTransformer(modules=parts, device="cpu").save(str(made[key]))
        return made[key]

    return make


@pytest.fixture(scope="session")
def tiny_folder(make_model: Callable[..., Path]) -> Path:
    return make_model()


@pytest.fixture(scope="session")
def make_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def make(kind: str = "bert", labels: int = 1, activation: str = "Sigmoid") -> Path:
        import torch
        from sentence_transformers import CrossEncoder

        folder = tmp_path_factory.mktemp("cross")
        save_encoder(folder / "plain", kind, "ForSequenceClassification", num_labels=labels)
        model = CrossEncoder(
            str(folder / "plain"), device="cpu", activation_fn=getattr(torch.nn, activation)()
        )
        model.save(str(folder / "cross"))
        return folder / "cross"

    return make


@pytest.fixture(scope="session")
def tiny_cross_encoder(make_cross_encoder: Callable[..., Path]) -> Path:
    return make_cross_encoder()


@pytest.fixture
def copy_of(tmp_path: Path) -> Callable[..., Path]:
    def copy(folder: Path, name: str = "copy") -> Path:
        return Path(shutil.copytree(folder, tmp_path / name))

    return copy


def embedder_of(model: Path | str, cache: Path, **values: Any) -> Embedder:
    """Load an embedder on one thread."""
    return load_embedder(str(model), cache_dir=cache, **{"threads": 1, "batch_size": 2, **values})


def change_weights(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the tensors of a model, by their names."""
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


@pytest.fixture(scope="session")
def embedded() -> Embedder:
    return embedder_of("embedded", Settings().cache, batch_size=4)


@pytest.fixture(scope="session")
def embedded_en() -> Embedder:
    return embedder_of("embedded-en", Settings().cache, batch_size=4)


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")
