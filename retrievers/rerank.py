"""Re-rank the best hits with a cross-encoder (SPEC M4)."""

from __future__ import annotations

import math
import time

from core.errors import ModelError
from core.language.detect import UNDETERMINED, detect_language
from core.types import Evidence
from models.reranker import Reranker
from retrievers.types import Query, Searched

LEAST_MS = 500  # with less time left than this, re-ranking is skipped

RERANK = "rerank"
NOT_RERANKED = "not re-ranked: "
UNSERVED = "the re-ranking model does not serve this language"


def rerank(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Score the first `rerank_pool` hits again and drop those below `rerank_threshold`.

    The hits behind the pool stay behind it, their scores scaled to lie below. Without a model for
    the language, without time or when the model fails, the ranking stays and the note says why.
    """
    selection, reranker = searched.index.settings.selection, searched.index.reranker
    if not evidence:
        return evidence, ""
    if reranker is None:
        return evidence, f"{NOT_RERANKED}there is no re-ranking model"
    if reason := _why_not(reranker, searched.query):
        return evidence, NOT_RERANKED + reason
    pool, rest = evidence[: selection.rerank_pool], evidence[selection.rerank_pool :]
    try:
        scores = reranker.score(searched.query.text, [passage(item) for item in pool])
    except ModelError as error:
        return evidence, f"{NOT_RERANKED}{error}"
    if not all(math.isfinite(score) for score in scores):
        return evidence, f"{NOT_RERANKED}the re-ranking model gave no numbers"
    judged = [
        item.model_copy(update={"score": score, "scores": {**item.scores, RERANK: score}})
        for item, score in zip(pool, scores, strict=True)
    ]
    judged.sort(key=lambda item: -item.score)
    kept = [item for item in judged if item.score >= selection.rerank_threshold]
    note = f"{len(pool)} re-ranked"
    if len(kept) < len(judged):
        note += f", {len(judged) - len(kept)} below {selection.rerank_threshold:g} dropped"
    return kept + _behind(judged[-1].score, rest), note


def _why_not(reranker: Reranker, query: Query) -> str:
    """Say why the model cannot be asked; "" when nothing stands against it."""
    if reranker.languages is not None:
        language = query.language or detect_language(query.text)
        if language not in reranker.languages | {UNDETERMINED}:
            return UNSERVED
    if query.deadline is not None:
        left = 1000 * (query.deadline - time.monotonic())
        if left < LEAST_MS:
            return f"only {max(0, round(left))} ms were left"
    return ""


def passage(item: Evidence) -> str:
    """Return a chunk under its title and heading path, as it was embedded."""
    inside = not item.title or item.section.startswith(item.title)
    heading = item.section if inside else f"{item.title} › {item.section}"
    heading = heading.strip(" ›")
    starts = not heading or item.text.startswith(heading)
    return item.text if starts else f"{heading}\n{item.text}"


def _behind(lowest: float, rest: list[Evidence]) -> list[Evidence]:
    """Scale the scores of hits that were not read to lie between 0 and `lowest`."""
    highest = max((item.score for item in rest), default=0.0)
    if highest <= lowest or highest <= 0:
        return rest
    scale = max(lowest, 0.0) / highest
    return [item.model_copy(update={"score": item.score * scale}) for item in rest]
