"""Open the models that the settings name; run as a program, prepare those that are embedded."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from core.errors import CarrelError
from core.settings import Settings, load_settings
from models.embeddings import Embedder, Reads, load_embedder
from models.folder import CARRIERS, EMBEDDED, Prompts
from models.reranker import Reranker, load_reranker

EMBEDDING_BATCH = 16  # texts that an embedder reads at a time; more takes more memory
RERANKING_BATCH = 16  # pairs that a cross-encoder reads at a time
RERANKER_TOKENS = 512  # of question and passage; what BERT-like cross-encoders can read

NO_SECOND = "none"


def open_embedder(settings: Settings) -> Embedder:
    """Load the embedder; raise ModelError when it cannot give vectors."""
    prompts = Prompts(settings.embedding.query_prompt, settings.embedding.passage_prompt)
    return _embedder(settings, "embedder", settings.embedding.languages, prompts)


def open_embedded(settings: Settings) -> Embedder:
    """Load the embedder that comes with the installation once, whatever one the settings name."""
    return _embedded(settings.cache.expanduser(), settings.embedding.threads)


@lru_cache(maxsize=1)
def _embedded(cache: Path, threads: int) -> Embedder:
    return load_embedder(EMBEDDED, cache_dir=cache, threads=threads, batch_size=EMBEDDING_BATCH)


def open_second(settings: Settings) -> Embedder | None:
    """Load the embedder that votes beside the first one, None when there is none."""
    if settings.embedding.second == NO_SECOND:
        return None
    return _embedder(settings, "embedding.second", None, Prompts())


def _embedder(
    settings: Settings, setting: str, languages: Sequence[str] | None, prompts: Prompts
) -> Embedder:
    return load_embedder(
        settings.value(setting),
        cache_dir=settings.cache.expanduser(),
        threads=settings.embedding.threads,
        batch_size=EMBEDDING_BATCH,
        languages=languages,
        prompts=prompts,
        backend=settings.embedding.backend,
        device=settings.embedding.device,
        setting=setting,
    )


def open_reranker(settings: Settings) -> Reranker | None:
    """Load the cross-encoder, None when there is none."""
    return load_reranker(
        settings.reranker,
        cache_dir=settings.cache.expanduser(),
        threads=settings.embedding.threads,
        batch_size=RERANKING_BATCH,
        max_tokens=RERANKER_TOKENS,
        backend=settings.embedding.backend,
        device=settings.embedding.device,
    )


def main() -> int:
    """Export the embedded models into the cache; return an exit code."""
    try:
        for name in CARRIERS:
            settings, _ = load_settings({"embedder": name})
            embedder = open_embedder(settings)
            if isinstance(embedder, Reads) and embedder.reads:
                embedder.read("", [])
            print(f"{name} ready: {embedder.model_id}")  # noqa: T201 - run by make
    except CarrelError as error:
        print(f"carrel: {error}", file=sys.stderr)  # noqa: T201 - run by make
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
