"""Fetch an embedder or cross-encoder into the Hugging Face cache, where settings find it by name.

Only weights as safetensors and the text files beside them: a pickled file can run code.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from core.errors import ModelError, OperatorError
from models.download import SPARE_BYTES, Advance, Pulled
from models.hub import SHA256, endpoint, explained
from models.named import WEIGHTS, NamedModel
from models.recorded import file_sha256

ALLOWED = (".safetensors", ".json", ".txt", ".model")
OTHER_FORMATS = ("onnx/", "openvino/")  # the same weights again, never read here


def pull_snapshot(model: NamedModel, advance: Advance) -> Pulled:
    """Bring a repository's files into the cache, each checked against the digest announced for it.

    Raises HubError, OperatorError for a full disk, ModelError for a file of another digest or a
    model that publishes no safetensors.
    """
    from huggingface_hub import HfApi, constants, hf_hub_download

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
