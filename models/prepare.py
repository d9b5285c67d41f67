"""Prepare the embedded model: export it to ONNX now rather than at the first question."""

from __future__ import annotations

import sys

from core.errors import CarrelError
from core.settings import load_settings
from models.embeddings import EMBEDDED, load_embedder


def main() -> int:
    """Export the embedded model into the cache; return an exit code."""
    try:
        settings, _ = load_settings()
        embedder = load_embedder(
            EMBEDDED,
            cache_dir=settings.cache.expanduser(),
            threads=settings.embedder_threads,
            batch_size=settings.embedder_batch,
        )
    except CarrelError as error:
        print(f"carrel: {error}", file=sys.stderr)  # noqa: T201 - run by make
        return error.exit_code
    print(f"embedded model ready: {embedder.model_id}")  # noqa: T201 - run by make
    return 0


if __name__ == "__main__":
    sys.exit(main())
