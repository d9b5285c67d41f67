"""Score pairs of question and passage with a cross-encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np

from core.distribution import require_extra
from core.errors import ModelError
from core.question import replace_surrogates
from models.folder import ModelFolder, content_digest, find_folder, make_model_id
from models.huggingface import check_device, export_classifier, torch_loading
from models.onnx_runtime import (
    Backend,
    ExportError,
    OnnxSession,
    RunOptions,
    open_fastest,
    run_error,
)
from models.table import find_card
from models.vectors import Vectors

NO_RERANKER = "none"


class Reranker(Protocol):
    """Judge how well passages answer a question; `model_id` names the model and its weights."""

    @property
    def model_id(self) -> str:
        """Return the name of the model and its weights."""

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the ISO 639-1 languages the model was made for, None for any."""

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return one score per passage, 0..1, higher is better."""


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


Pairs = Sequence[tuple[str, str]]


def pair_inputs(folder: ModelFolder) -> list[str]:
    """Return the model's inputs; without segments a model has at most one type of token."""
    typed = int(folder.config.get("type_vocab_size") or 0) > 1
    return ["input_ids", "attention_mask", *(["token_type_ids"] if typed else [])]


Logits = Callable[[Pairs], Vectors]  # of shape (len(pairs),)


def _onnx_logits(onnx: Path, folder: ModelFolder, options: RunOptions) -> Logits:
    session = OnnxSession(onnx, folder, options)

    def logits(pairs: Pairs) -> Vectors:
        found = np.empty(len(pairs), dtype=np.float32)
        for rows, (values,) in session.run(session.encode(pairs), ["logits"]):
            found[rows] = values[:, 0]
        return found

    return logits


def _torch_logits(folder: ModelFolder, options: RunOptions) -> Logits:
    """Run a cross-encoder through sentence-transformers; code from a repository is never run."""
    require_extra("huggingface", "a re-ranker", value=folder.name, error=ModelError)
    import torch
    from sentence_transformers import CrossEncoder

    check_device(options.device)
    torch.set_num_threads(options.threads)
    with torch_loading(folder):
        model = CrossEncoder(
            str(folder.path),
            device=options.device,
            local_files_only=True,
            trust_remote_code=False,
            max_length=options.max_tokens,
        )
    check_activation(type(model.activation_fn).__name__, folder)

    def logits(pairs: Pairs) -> Vectors:
        try:
            found: Vectors = model.predict(
                [tuple(map(replace_surrogates, pair)) for pair in pairs],
                batch_size=options.batch_size,
                activation_fn=torch.nn.Identity(),
                show_progress_bar=False,
            )
        except Exception as error:  # torch raises RuntimeError, IndexError and its own
            hint = "check the model's files, or score fewer pairs per batch"
            raise run_error(folder.name, error, hint) from error
        return found

    return logits


DEFAULT_TOKENS = 512  # of encoders whose files say nothing
AGREEMENT = 1e-3  # of scores from 0 to 1; chosen, not measured
PROBES = (
    "The harbour is open.\nA quiet forest.",
    "Библиотека на улице 图书馆",
    "",
    "one two three four five six seven eight nine ten " * 100,
)
QUESTION = "Where is the harbour? Где гавань?"


class CrossEncoderReranker:
    """Score pairs as the sigmoid of the model's logit, whichever library computes it."""

    def __init__(
        self, logits: Logits, backend: str, model_id: str, languages: frozenset[str] | None
    ) -> None:
        self._logits = logits
        self.backend = backend
        self.model_id = model_id
        self.languages = languages

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return one score per passage, 0..1, higher is better; ModelError when one is not."""
        if not passages:
            return []
        logits = self._logits([(question, passage) for passage in passages]).astype(np.float64)
        if logits.shape != (len(passages),) or not np.isfinite(logits).all():
            raise ModelError(
                "a re-ranker must give one finite score per passage",
                value=self.model_id,
                hint="the weights are damaged; install the model again",
            )
        scores: list[float] = (0.5 * (1 + np.tanh(logits / 2))).tolist()  # never overflows
        return scores


def load_reranker(
    name: str,
    *,
    cache_dir: Path,
    threads: int,
    batch_size: int,
    max_tokens: int,
    backend: Backend = "auto",
    device: str = "cpu",
) -> Reranker | None:
    """Return the cross-encoder that settings name, a folder or a cached hub model; None for "none".

    Pairs are cut at `max_tokens`, or at the model's own length where that is less. Raises
    ModelError for whatever keeps the model from giving scores.
    """
    if name == NO_RERANKER:
        return None
    folder = find_folder(name, setting="reranker", instead="none")
    check_ranks(folder)
    card = find_card(folder.name, "cross-encoder")
    digest = content_digest(folder, cache_dir)
    length = min(max_tokens, folder.max_tokens or DEFAULT_TOKENS)
    model_id = make_model_id(folder.name, digest, length)
    languages = card.languages if card else None

    options = RunOptions(length, threads, batch_size, device)
    return open_fastest(
        cache_dir / f"reranker-{digest[:16]}-v1.onnx",
        backend,
        device,
        export=partial(export_classifier, folder, pair_inputs(folder)),
        by_onnx=lambda path: CrossEncoderReranker(
            _onnx_logits(path, folder, options), "onnx", model_id, languages
        ),
        by_torch=lambda: CrossEncoderReranker(
            _torch_logits(folder, options), "torch", model_id, languages
        ),
        check=_check_agreement,
    )


def _check_agreement(exported: CrossEncoderReranker, original: CrossEncoderReranker) -> None:
    ours, theirs = exported.score(QUESTION, PROBES), original.score(QUESTION, PROBES)
    worst = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    if worst > AGREEMENT:
        raise ExportError(f"the exported scores differ from torch's by {worst:.5f}")
