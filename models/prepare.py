"""Prepare the embedded models and the reader: export them to ONNX before the first question."""

from __future__ import annotations

import sys

from core.errors import CarrelError
from core.settings import load_settings
from models.embedded import CARRIERS
from models.embeddings import Reads
from models.loading import open_embedder


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
