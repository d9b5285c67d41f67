"""Prepare the embedded model: export it to ONNX now rather than at the first question."""

from __future__ import annotations

import sys

from core.errors import CarrelError
from core.settings import load_settings
from models.embeddings import EMBEDDED
from models.loading import open_embedder


def main() -> int:
    """Export the embedded model into the cache; return an exit code."""
    try:
        settings, _ = load_settings({"embedder": EMBEDDED})
        embedder = open_embedder(settings)
    except CarrelError as error:
        print(f"carrel: {error}", file=sys.stderr)  # noqa: T201 - run by make
        return error.exit_code
    print(f"embedded model ready: {embedder.model_id}")  # noqa: T201 - run by make
    return 0


if __name__ == "__main__":
    sys.exit(main())
