"""Prepare the embedded models: export them to ONNX now rather than at the first question."""

from __future__ import annotations

import sys

from core.errors import CarrelError
from core.settings import load_settings
from models.embedded import CARRIERS
from models.loading import open_embedder


def main() -> int:
    """Export the embedded models into the cache; return an exit code."""
    try:
        for name in CARRIERS:
            settings, _ = load_settings({"embedder": name})
            print(f"{name} ready: {open_embedder(settings).model_id}")  # noqa: T201 - run by make
    except CarrelError as error:
        print(f"carrel: {error}", file=sys.stderr)  # noqa: T201 - run by make
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
