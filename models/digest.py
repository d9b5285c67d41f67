"""Name a model by its content: a hash of files, remembered until one of them changes."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import ModelError
from core.language.detect import UNDETERMINED
from models.folder import ModelFolder
from models.table import ANY, CROSS, Cosines, ModelCard

BLOCK = 1 << 20


def files_digest(files: Sequence[Path], cache_dir: Path, names: Sequence[str] | None = None) -> str:
    """Return the SHA-256 of the files' content in the given order; with names also of those.

    Reading gigabytes costs seconds at each start, so the digest is kept in the cache beside the
    size, times and inode of every file. Raises ModelError for a file that cannot be read.
    """
    try:
        return _digest(files, cache_dir, names)
    except OSError as error:
        raise ModelError(
            "a model's files must be readable",
            value=f"{error.filename}: {error.strerror}",
            hint="check the folder's permissions",
        ) from error


def _digest(files: Sequence[Path], cache_dir: Path, names: Sequence[str] | None) -> str:
    stamp = [[str(path), *_stamp(path)] for path in files]
    key = hashlib.sha256(json.dumps([[str(path) for path in files], names]).encode()).hexdigest()
    memo = cache_dir / f"digest-{key[:24]}.json"
    try:
        kept = json.loads(memo.read_text(encoding="utf-8"))
        if kept["stamp"] == stamp:
            return str(kept["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # nothing remembered, or not readable: hash again
    digest = _hash(files, names)
    _remember(memo, {"stamp": stamp, "digest": digest})
    return digest


def _stamp(path: Path) -> list[int]:
    """Return what changes when a file does: size, change times and inode."""
    found = path.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _hash(files: Sequence[Path], names: Sequence[str] | None) -> str:
    digest = hashlib.sha256()
    for number, path in enumerate(files):
        if names is not None:
            digest.update(names[number].encode() + b"\0")
        with path.open("rb") as handle:
            while block := handle.read(BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _remember(memo: Path, kept: dict[str, object]) -> None:
    """Write the memo completely or not at all; a cache that cannot be written is only slower."""
    try:
        memo.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=memo.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        os.replace(partial, memo)
    except OSError:
        pass


QUERY_NAMES = ("query", "search_query")
PASSAGE_NAMES = ("document", "passage", "search_document")
DIGITS = 12
NEAREST = 1.5
OTHER_MODEL = "run `carrel reindex`, or name the other as embedder (all-MiniLM-L6-v2: embedded-en)"


@dataclass(frozen=True)
class Prompts:
    """Hold what is put before questions and passages; None leaves it to the model's files."""

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


def prompts_of(folder: ModelFolder, card: ModelCard | None, wanted: Prompts) -> tuple[str, str]:
    """Return the prompts for questions and passages: settings, then the folder, then the table.

    sentence-transformers saves empty prompts with every model, so that only others count.
    """
    declared = folder.own.get("prompts")
    own = declared if isinstance(declared, Mapping) else {}
    query, passage = _first(own, QUERY_NAMES), _first(own, PASSAGE_NAMES)
    if not query and not passage:
        usual = own.get(folder.own.get("default_prompt_name"), "")
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
    """Hash all files that decide what a model gives."""
    files = folder.content()
    names = [path.relative_to(folder.path).as_posix() for path in files]
    return files_digest(files, cache_dir, names)


def named_id(name: str, digest: str, *differing: object) -> str:
    """Return `name@hash`; whatever differs from the plain model goes into the hash."""
    if any(differing):
        digest = hashlib.sha256(json.dumps([digest, *differing]).encode()).hexdigest()
    return f"{name}@{digest[:DIGITS]}"
