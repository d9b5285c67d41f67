"""Check models that are here against their published SHA-256, or at least for being whole."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from core.errors import ModelError
from models.download import Advance
from models.llama.gguf_file import read_gguf
from models.named import WEIGHTS, NamedModel
from models.recorded import file_sha256, recorded_digest
from models.snapshot import blob_digest, snapshot_files

State = Literal["ok", "differs", "unknown", "missing"]


class Verified(NamedTuple):
    """Say what was found; `sha256` is of the file as it is, `problem` why it differs."""

    name: str
    state: State
    path: Path | None
    sha256: str | None = None
    expected: str | None = None
    problem: str = ""


def verify_model(model: NamedModel, advance: Advance) -> Verified:
    """Hash the model's files again; without a published digest look whether the file is whole."""
    if model.path is None:
        return Verified(model.name, "missing", None, expected=model.sha256)
    for file in snapshot_files(model.path) if model.in_hub_cache else ():
        expected = blob_digest(file)
        if expected is not None and file.name != WEIGHTS:
            digest = file_sha256(file, advance)
            if digest != expected:
                return _differs(model, file, digest, expected)
    expected = model.sha256 or recorded_digest(model.path) or blob_digest(model.path)
    digest = file_sha256(model.path, advance)
    if expected is not None and digest != expected:
        return _differs(model, model.path, digest, expected)
    if expected is None and model.kind == "chat":
        try:
            read_gguf(model.path)
        except ModelError as error:
            return Verified(model.name, "differs", model.path, digest, problem=str(error))
    return Verified(model.name, "ok" if expected else "unknown", model.path, digest, expected)


def _differs(model: NamedModel, path: Path, digest: str, expected: str) -> Verified:
    problem = f"{path.name} has SHA-256 {digest}, published is {expected}"
    return Verified(model.name, "differs", path, digest, expected, problem)
