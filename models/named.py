"""All models that Carrel knows by name, where each lies, and whether it is what was published."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from huggingface_hub import HfApi, constants, hf_hub_download, try_to_load_from_cache

from core.errors import CallerError, ModelError
from core.types import FrozenModel
from models.download import (
    SHA256,
    Advance,
    Pulled,
    check_space,
    endpoint,
    explain_errors,
    file_sha256,
    read_digest,
)
from models.folder import CARRIERS, embedded_folder
from models.llama.gguf_file import read_gguf
from models.table import ChatCard, ModelCard, chat_table, model_table, published_weights

WEIGHTS = "model.safetensors"
NEAREST, NEAR = 3, 0.4  # names in a hint, and how alike they are; chosen, not measured


class NamedModel(FrozenModel):
    """Describe one model of the tables; an unknown value is None.

    `file` holds its weights, `path` is where that file lies, None when it is not here.
    """

    name: str
    kind: Literal["chat", "embedder", "cross-encoder"]
    repository: str
    file: str
    bytes: int | None
    sha256: str | None
    licence: str
    quantisation: str = ""
    context: int
    path: Path | None

    @property
    def in_hub_cache(self) -> bool:
        """Tell whether the model is a repository of many files in the Hugging Face cache."""
        return self.kind != "chat" and self.name not in CARRIERS


def named_models(folder: Path) -> list[NamedModel]:
    """Return all models; chat models lie in `folder`, the others in the Hugging Face cache."""
    cards = model_table()
    chat = [_of_chat(card, folder) for card in chat_table()]
    embedded = [
        _of_hub(next(card for card in cards if card.name == carrier.model), name)
        for name, carrier in CARRIERS.items()
    ]
    return [*chat, *embedded, *(_of_hub(card) for card in cards)]


def find_named(name: str, folder: Path) -> NamedModel:
    """Return a model by its name, or the last part of it; raise CallerError with the nearest."""
    models = named_models(folder)
    asked = name.strip().casefold()
    for model in models:
        if asked in (model.name.casefold(), model.name.rpartition("/")[2].casefold()):
            return model
    for model in models:
        if model.kind == "chat" and Path(asked).name == model.file.casefold():
            return model
    known = {model.name.rpartition("/")[2].casefold(): model.name for model in models}
    last = asked.rpartition("/")[2]
    alike = [one for one in known if last and last in one]
    alike = alike[:NEAREST] or get_close_matches(last, known, NEAREST, NEAR)
    near = [known[one] for one in alike]
    hint = f"the nearest are {', '.join(near)}; " if near else ""
    raise CallerError(
        "a model is called by its name", value=name, hint=f"{hint}`carrel models list` shows all"
    )


def _of_chat(card: ChatCard, folder: Path) -> NamedModel:
    path = card.path(folder)
    values = card.model_dump(exclude={"revision", "thinking", "rank", "slot_context"})
    return NamedModel(**values, kind="chat", path=path if path.is_file() else None)


def _of_hub(card: ModelCard, name: str = "") -> NamedModel:
    published = published_weights()
    known = published.get(name) or published.get(card.name, {})
    return NamedModel(
        name=name or card.name,
        kind=card.kind,
        repository=card.name,
        file=CARRIERS[name].files[-1] if name else WEIGHTS,
        bytes=known.get("bytes"),
        sha256=known.get("sha256"),
        licence=card.licence,
        context=card.max_tokens,
        path=_embedded_file(name) if name else _cached_file(card.name),
    )


def _cached_file(repository: str) -> Path | None:
    found = try_to_load_from_cache(repository, WEIGHTS)
    return Path(found) if isinstance(found, str) else None


def _embedded_file(name: str) -> Path | None:
    try:
        return embedded_folder(name).path / CARRIERS[name].files[-1]
    except ModelError:  # the package is not installed: it is shown as missing
        return None


ALLOWED = (".safetensors", ".json", ".txt", ".model")
OTHER_FORMATS = ("onnx/", "openvino/")  # the same weights again, never read here


def pull_snapshot(model: NamedModel, advance: Advance) -> Pulled:
    """Bring a repository's files into the cache, each checked against the digest announced for it.

    Raises HubError, OperatorError for a full disk, ModelError for a file of another digest or a
    model that publishes no safetensors.
    """
    cache = Path(constants.HF_HUB_CACHE)
    url = f"{endpoint()}/{model.repository}"
    with explain_errors(model.name, url, cache):
        found = HfApi(endpoint=endpoint()).model_info(model.repository, files_metadata=True)
    files = [file for file in found.siblings or () if _is_weight_file(file.rfilename)]
    if not any(file.rfilename.endswith(".safetensors") for file in files):
        raise ModelError(
            "only safetensors are fetched, never a pickled file, and this model has none",
            value=model.name,
            hint="choose another model: `carrel models list`",
        )
    size = sum(file.size or 0 for file in files)
    check_space(cache, size, "HF_HOME")
    for done, file in enumerate(files, start=1):
        with explain_errors(model.name, url, cache):
            path = Path(hf_hub_download(model.repository, file.rfilename, endpoint=endpoint()))
        expected = _expected_digest(model, file)
        if expected is not None:
            _check(model, path, expected, advance)
        advance("files", done, len(files))
    weights = path.parent / WEIGHTS if (path.parent / WEIGHTS).is_file() else path
    return Pulled(weights, size, model.sha256 or blob_digest(weights) or "", "fetched")


def snapshot_files(path: Path) -> list[Path]:
    """Return the files of the cached snapshot that a file belongs to, with allowed endings."""
    return [
        file
        for file in sorted(path.parent.rglob("*"))
        if file.is_file() and _is_weight_file(file.relative_to(path.parent).as_posix())
    ]


def blob_digest(path: Path) -> str | None:
    """Return the SHA-256 that the cache's file name says it has, None for small text files."""
    name = path.resolve().name
    return name if SHA256.fullmatch(name) else None


def _is_weight_file(name: str) -> bool:
    return name.endswith(ALLOWED) and not name.startswith(OTHER_FORMATS)


def _expected_digest(model: NamedModel, file: Any) -> str | None:  # noqa: ANN401 - the library's sibling
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
    expected = model.sha256 or read_digest(model.path) or blob_digest(model.path)
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
