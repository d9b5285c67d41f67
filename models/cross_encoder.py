"""Cross-encoders of one label, as ONNX files where that agrees with torch, else in torch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from core.errors import ModelError
from models.embedder_backend import Backend
from models.folder import find_folder
from models.identity import content_digest, named_id
from models.onnx_cache import ExportError, ensure_onnx
from models.onnx_export import export_classifier
from models.onnx_session import RunOptions
from models.pair_logits import OnnxLogits, TorchLogits, pair_inputs
from models.ranking_head import check_ranks
from models.table import find_card

DEFAULT_TOKENS = 512  # of encoders whose files say nothing
AGREEMENT = 1e-3  # of scores from 0 to 1
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
        self, logits: OnnxLogits | TorchLogits, model_id: str, languages: frozenset[str] | None
    ) -> None:
        """Take what computes the logits of pairs."""
        self._logits = logits
        self.backend = logits.backend
        self.model_id = model_id
        self.languages = languages

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return one score per passage, 0..1, higher is better; ModelError when one is not."""
        import numpy as np

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


def open_cross_encoder(
    name: str,
    *,
    cache_dir: Path,
    threads: int,
    batch_size: int,
    max_tokens: int,
    backend: Backend,
) -> CrossEncoderReranker:
    """Load a cross-encoder; raise ModelError for a model that does not score pairs."""
    folder = find_folder(name, setting="reranker", instead="none")
    check_ranks(folder)
    card = find_card(folder.name, "cross-encoder")
    digest = content_digest(folder, cache_dir)
    length = min(max_tokens, folder.max_tokens or DEFAULT_TOKENS)
    model_id = named_id(folder.name, digest, length)
    languages = card.languages if card else None

    options = RunOptions(length, threads, batch_size)

    def with_onnx(path: Path) -> CrossEncoderReranker:
        return CrossEncoderReranker(OnnxLogits(path, folder, options), model_id, languages)

    def with_torch() -> CrossEncoderReranker:
        return CrossEncoderReranker(TorchLogits(folder, options), model_id, languages)

    if backend == "torch":
        return with_torch()
    target = cache_dir / f"reranker-{digest[:16]}-v1.onnx"
    try:
        ensure_onnx(
            target,
            partial(export_classifier, folder, pair_inputs(folder)),
            lambda path: _check_agreement(with_onnx(path), with_torch()),
        )
    except ExportError:
        if backend == "onnx":
            raise
        return with_torch()
    return with_onnx(target)


def _check_agreement(exported: CrossEncoderReranker, original: CrossEncoderReranker) -> None:
    ours, theirs = exported.score(QUESTION, PROBES), original.score(QUESTION, PROBES)
    worst = max(abs(one - other) for one, other in zip(ours, theirs, strict=True))
    if worst > AGREEMENT:
        raise ExportError(f"the exported scores differ from torch's by {worst:.5f}")
