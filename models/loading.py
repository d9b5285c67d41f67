"""Open the models that the settings name."""

from __future__ import annotations

from core.settings import Settings
from models.embeddings import Embedder, load_embedder
from models.identity import Prompts
from models.reranker import Reranker, load_reranker

NO_SECOND = "none"


def open_embedder(settings: Settings) -> Embedder:
    """Load the embedder; raise ModelError when it cannot give vectors."""
    return load_embedder(
        settings.embedder,
        cache_dir=settings.cache.expanduser(),
        threads=settings.embedder_threads,
        batch_size=settings.embedder_batch,
        languages=settings.embedder_languages,
        prompts=Prompts(settings.embedder_query_prompt, settings.embedder_passage_prompt),
        backend=settings.embedder_backend,
    )


def open_second(settings: Settings) -> Embedder | None:
    """Load the embedder that votes beside the first one, None when there is none."""
    if settings.embedder_second == NO_SECOND:
        return None
    return load_embedder(
        settings.embedder_second,
        cache_dir=settings.cache.expanduser(),
        threads=settings.embedder_threads,
        batch_size=settings.embedder_batch,
        backend=settings.embedder_backend,
        setting="embedder_second",
    )


def open_embedders(settings: Settings) -> tuple[Embedder, Embedder | None]:
    """Load the embedder and the second one that votes beside it."""
    return open_embedder(settings), open_second(settings)


def open_reranker(settings: Settings) -> Reranker | None:
    """Load the cross-encoder, None when there is none."""
    return load_reranker(
        settings.reranker,
        cache_dir=settings.cache.expanduser(),
        threads=settings.embedder_threads,
        batch_size=settings.reranker_batch,
        max_tokens=settings.reranker_max_tokens,
        backend=settings.embedder_backend,
    )
