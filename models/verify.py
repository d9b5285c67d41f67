"""Check local models against their published SHA-256, or at least for completeness."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal, NamedTuple

from huggingface_hub import HfApi, constants, hf_hub_download

from core.errors import ModelError, OperatorError
from models.download import SPARE_BYTES, Advance, Pulled, file_sha256, recorded_digest
from models.hub import SHA256, endpoint, explained
from models.llama.gguf_file import read_gguf
from models.named import WEIGHTS, NamedModel

ALLOWED = (".safetensors", ".json", ".txt", ".model")
OTHER_FORMATS = ("onnx/", "openvino/")  # the same weights again, never read here


def pull_snapshot(model: NamedModel, advance: Advance) -> Pulled:
    """Bring a repository's files into the cache, each checked against the digest announced for it.

    Raises HubError, OperatorError for a full disk, ModelError for a file of another digest or a
    model that publishes no safetensors.
    """
    cache = Path(constants.HF_HUB_CACHE)
    url = f"{endpoint()}/{model.repository}"
    with explained(model.name, url, cache):
        found = HfApi(endpoint=endpoint()).model_info(model.repository, files_metadata=True)
    files = [file for file in found.siblings or () if _wanted(file.rfilename)]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise ModelError(
            "only safetensors are fetched, never a pickled file, and this model has none",
            value=model.name,
            hint="choose another model: `carrel models list`",
        )
    _check_space(cache, sum(file.size or 0 for file in files))
    for done, file in enumerate(files, start=1):
        with explained(model.name, url, cache):
            path = Path(hf_hub_download(model.repository, file.rfilename, endpoint=endpoint()))
        expected = _expected(model, file)
        if expected is not None:
            _check(model, path, expected, advance)
        advance("files", done, len(files))
    weights = path.parent / WEIGHTS if (path.parent / WEIGHTS).is_file() else path
    size = sum(file.size or 0 for file in files)
    return Pulled(weights, size, model.sha256 or blob_digest(weights) or "", "fetched")


def snapshot_files(path: Path) -> list[Path]:
    """Return the files of the cached snapshot that a file belongs to, with allowed endings."""
    return [
        file
        for file in sorted(path.parent.rglob("*"))
        if file.is_file() and _wanted(file.relative_to(path.parent).as_posix())
    ]


def blob_digest(path: Path) -> str | None:
    """Return the SHA-256 that the cache's file name says it has, None for small text files."""
    name = path.resolve().name
    return name if SHA256.fullmatch(name) else None


def _wanted(name: str) -> bool:
    return name.endswith(ALLOWED) and not name.startswith(OTHER_FORMATS)


def _expected(model: NamedModel, file: Any) -> str | None:  # noqa: ANN401 - the library's sibling
    if file.rfilename == WEIGHTS and model.sha256:
        return model.sha256
    return file.lfs.sha256 if file.lfs else None


def _check(model: NamedModel, path: Path, expected: str, advance: Advance) -> None:
    digest = file_sha256(path, advance)
    if digest == expected:
        return
    blob = path.resolve()
    path.unlink()
    blob.unlink(missing_ok=True)
    raise ModelError(
        f"{path.name} of {model.name} must have SHA-256 {expected}, the hub gives {digest};"
        " it was not kept",
        hint="pull again; if it stays so, its publisher has changed the model",
    )


def _check_space(cache: Path, size: int) -> None:
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < size + SPARE_BYTES:
        raise OperatorError(
            f"the download needs {size:,} bytes, the disk has {free:,} free",
            value=str(cache),
            hint="free some space, or set HF_HOME to a larger disk",
        )


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
    """Hash the model's files again; without a published digest check that the file is complete."""
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
