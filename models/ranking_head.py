"""Tell whether a model ranks: a cross-encoder with one label and a plain activation."""

from __future__ import annotations

from core.errors import ModelError
from models.folder import ModelFolder

ACTIVATIONS = frozenset({"Identity", "Sigmoid"})


def check_ranks(folder: ModelFolder) -> None:
    """Refuse embedders, whose scoring head would be made of random numbers, and many labels."""
    architectures = [str(name) for name in folder.config.get("architectures") or []]
    scores = any(name.endswith("ForSequenceClassification") for name in architectures)
    labels = len(folder.config.get("id2label") or [""])
    if folder.own.get("model_type") != "CrossEncoder" and not scores:
        raise ModelError(
            "a re-ranker must be a cross-encoder, which scores pairs of texts",
            value=str(folder.path),
            hint="name an embedder as CARREL_EMBEDDER, a cross-encoder as CARREL_RERANKER",
        )
    if labels != 1:
        raise ModelError(
            "a re-ranker must have one label",
            value=f"{folder.path} has {labels}",
            hint="choose a cross-encoder trained for ranking",
        )
    st = folder.config.get("sentence_transformers")
    named = (
        folder.own.get("activation_fn")
        or (st.get("activation_fn") if isinstance(st, dict) else None)
        or folder.config.get("sbert_ce_default_activation_function")
    )
    if named:
        check_activation(str(named).rpartition(".")[2], folder)


def check_activation(name: str, folder: ModelFolder) -> None:
    """Refuse an activation other than the two whose score is the sigmoid of the logit."""
    if name not in ACTIVATIONS:
        raise ModelError(
            "a re-ranker's activation must be identity or sigmoid",
            value=f"{folder.path}: {name}",
            hint="choose a cross-encoder trained for ranking",
        )
