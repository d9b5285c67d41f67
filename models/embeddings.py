"""Choose an embedder by settings, and what runs it; every embedder gives unit vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np

from core.cache import Cache
from core.errors import ModelError
from models.embedded import CARRIERS, EMBEDDED, PACKED, Carrier, embedded_folder
from models.folder import (
    EmbedderSpec,
    ModelFolder,
    Prompts,
    content_digest,
    files_digest,
    find_folder,
    named_id,
    prompts_of,
)
from models.huggingface_embedder import (
    URLS,
    HuggingFaceEmbedder,
    endpoint_model,
    open_endpoint,
    open_folder,
)
from models.onnx_runtime import (
    ExportError,
    OnnxEmbedder,
    OnnxSession,
    OnnxSpanEmbedder,
    RunOptions,
    Span,
    ensure_onnx,
)
from models.table import READER, USUAL_COSINES, ModelCard, find_card, published_weights
from models.torch_loading import export_embedder
from models.vectors import SpanPassage, Vectors

Backend = Literal["auto", "onnx", "torch"]
AGREEMENT = 0.9999  # cosine of vectors that rank alike; chosen, not measured
PROBES = (
    "The harbour is open.\nA quiet forest.",
    "Где находится библиотека? 图书馆在哪里?",
    "",
    "def open(path): return 42  # 3.14 ≈ π",
    "one two three four five six seven eight nine ten " * 100,
)


def open_backend(
    folder: ModelFolder, spec: EmbedderSpec, options: RunOptions, cache_dir: Path, backend: Backend
) -> OnnxEmbedder | HuggingFaceEmbedder:
    """Load the model with ONNX or torch; "auto" takes ONNX on the CPU where it agrees with torch.

    Raises ExportError when "onnx" is wanted and cannot be had.
    """

    def open_onnx(path: Path) -> OnnxEmbedder:
        kind = OnnxSpanEmbedder if folder.pooling == "mean" else OnnxEmbedder
        return kind(OnnxSession(path, folder, options), spec)

    if (folder.path / PACKED).is_file():
        from models.packed_embedder import open_packed  # which imports numpy

        return open_packed(folder, spec, options, cache_dir, backend)
    if backend == "onnx" and options.device != "cpu":
        raise ExportError(
            "ONNX files run on the CPU",
            value=f"embedder_device={options.device}",
            hint="set embedding.backend=auto, or embedding.device=cpu",
        )
    if backend == "torch" or options.device != "cpu":
        return open_folder(folder, spec, options)
    target = cache_dir / f"embedder-{spec.digest[:16]}-v3.onnx"
    try:
        ensure_onnx(
            target,
            lambda path: export_embedder(folder, path),
            lambda path: _check_agreement(open_onnx(path), open_folder(folder, spec, options)),
        )
    except ExportError:
        if backend == "onnx":
            raise
        return open_folder(folder, spec, options)
    return open_onnx(target)


def _check_agreement(exported: OnnxEmbedder, original: HuggingFaceEmbedder) -> None:
    pairs = zip(
        [*exported.embed_documents(PROBES), exported.embed_query(PROBES[0])],
        [*original.embed_documents(PROBES), original.embed_query(PROBES[0])],
        strict=True,
    )
    worst = min(float(ours @ theirs) for ours, theirs in pairs)
    if worst < AGREEMENT:
        raise ExportError(f"the exported vectors differ from torch's (cosine {worst:.5f})")


__all__ = [
    "EMBEDDED",
    "Embedder",
    "Reads",
    "SpanEmbedder",
    "SpanPassage",
    "Vectors",
    "load_embedder",
]

DEFAULT_TOKENS = 512  # of encoders whose files say nothing


class Embedder(Protocol):
    """Turn texts into unit vectors.

    `model_id` changes whenever the same text would get another vector; `languages` are the ISO
    codes it serves, None for any.
    """

    @property
    def model_id(self) -> str:
        """Return the name of the model and its weights."""

    @property
    def dimension(self) -> int:
        """Return the length of a vector."""

    @property
    def languages(self) -> frozenset[str] | None:
        """Return the languages the model was made for."""

    def similarity(self, cosine: float, *languages: str) -> float:
        """Return what the cosine of a question and a text tells: 0 unrelated, 1 close.

        `languages` are those of the two, as far as they are known.
        """

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return a float32 array of shape (len(texts), dimension), rows of length 1."""

    def embed_query(self, text: str) -> Vectors:
        """Return one unit vector of shape (dimension,)."""


def serves(embedder: Embedder | None, language: str) -> TypeGuard[Embedder]:
    """Tell whether there is an embedder, and it was made for a language."""
    return embedder is not None and (embedder.languages is None or language in embedder.languages)


@runtime_checkable
class CutsWords(Protocol):
    """Cut words into pieces, common ones into few; check with isinstance."""

    def pieces(self, word: str) -> int:
        """Return the number of pieces of a word."""


@runtime_checkable
class Reads(Protocol):
    """Read passages for the sentences that answer; check with isinstance, then `reads`."""

    reads: bool

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Return, per passage, rows of log odds against "none answers", start, end of sentences.

        What answers in it likeliest stands there in the text.
        """


@runtime_checkable
class SpanEmbedder(Embedder, Protocol):
    """Embed passages and parts of them in one pass; check with isinstance."""

    def embed_passages(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Return rows as embed_documents does, and per passage one unit row per span.

        Spans are (start, end) in characters of their passage.
        """


def load_embedder(
    name: str,
    *,
    cache_dir: Path,
    threads: int,
    batch_size: int,
    languages: Sequence[str] | None = None,
    prompts: Prompts = Prompts(),  # noqa: B008 - frozen
    backend: Backend = "auto",
    device: str = "cpu",
    setting: str = "embedder",
) -> Embedder:
    """Return the embedder that settings name: embedded, a folder, a cached hub model, an endpoint.

    `setting` is the setting an error should name. "auto" takes ONNX where the exported file agrees
    with torch. Raises ModelError for whatever keeps the model from giving vectors.
    """
    if name.startswith(URLS):
        return _open_endpoint(name, prompts, languages, RunOptions(0, threads, batch_size))
    carrier = CARRIERS.get(name)
    instead = EMBEDDED if setting == "embedder" else "none"
    folder = (
        embedded_folder(name) if carrier else find_folder(name, setting=setting, instead=instead)
    )
    card = find_card(folder.name, "embedder")
    _check_kind(folder, card)
    spec = _spec(folder, card, cache_dir, prompts, languages, carrier)
    options = RunOptions(spec.max_tokens, threads, batch_size, device)
    embedder = open_backend(folder, spec, options, cache_dir, backend)
    _check_dimension(embedder, folder, card)
    return embedder


def _open_endpoint(
    url: str, wanted: Prompts, languages: Sequence[str] | None, options: RunOptions
) -> Embedder:
    name, revision = endpoint_model(url)
    card = find_card(name, "embedder")
    query, passage = (
        (card.query_prompt if card else "") if wanted.query is None else wanted.query,
        (card.passage_prompt if card else "") if wanted.passage is None else wanted.passage,
    )
    digest = hashlib.sha256(f"{name} {revision}".encode()).hexdigest()
    spec = EmbedderSpec(
        model_id=named_id(name.rpartition("/")[2], digest, query, passage),
        digest=digest,
        query_prompt=query,
        passage_prompt=passage,
        max_tokens=options.max_tokens,
        languages=_served(languages, card),
        cosines=card.cosines if card else USUAL_COSINES,
    )
    return open_endpoint(url, spec, options)


def _served(wanted: Sequence[str] | None, card: ModelCard | None) -> frozenset[str] | None:
    return frozenset(wanted) if wanted else (card.languages if card else None)


def _spec(
    folder: ModelFolder,
    card: ModelCard | None,
    cache_dir: Path,
    wanted: Prompts,
    languages: Sequence[str] | None,
    carrier: Carrier | None,
) -> EmbedderSpec:
    query, passage = prompts_of(folder, card, wanted)
    limits = [n for n in (folder.max_tokens, card.max_tokens if card else None) if n]
    max_tokens = min(limits, default=DEFAULT_TOKENS)
    if carrier:
        digest = files_digest([folder.path / file for file in carrier.files], cache_dir)
        differing: tuple[object, ...] = (query, passage) if query or passage else ()
    else:
        digest = content_digest(folder, cache_dir)
        differing = (query, passage, max_tokens)
    return EmbedderSpec(
        model_id=named_id(folder.name, digest, *differing),
        digest=digest,
        query_prompt=query,
        passage_prompt=passage,
        max_tokens=max_tokens,
        languages=_served(languages, card),
        cosines=card.cosines if card else USUAL_COSINES,
    )


def _check_kind(folder: ModelFolder, card: ModelCard | None) -> None:
    architectures = folder.config.get("architectures") or [""]
    classifies = str(architectures[0]).endswith("ForSequenceClassification") and not folder.modules
    if classifies or folder.own.get("model_type") == "CrossEncoder":
        raise ModelError(
            "an embedder must embed single texts; this model scores pairs",
            value=str(folder.path),
            hint="name it as CARREL_RERANKER",
        )
    if not folder.modules and card and card.pooling not in (None, folder.pooling):
        raise ModelError(
            f"{card.name} pools by {card.pooling}, which a folder says in modules.json",
            value=str(folder.path),
            hint="copy the whole model, not its encoder alone",
        )


def _check_dimension(embedder: Embedder, folder: ModelFolder, card: ModelCard | None) -> None:
    declared = {"its files": folder.dimension, "the model table": card.dimension if card else None}
    for place, dimension in declared.items():
        if dimension and dimension != embedder.dimension:
            raise ModelError(
                f"{place} declare {dimension} numbers per vector for {folder.name}",
                value=f"the model gives {embedder.dimension}",
                hint="copy the model again, or give another model's folder another name",
            )


QUERY, PASSAGE, READ = "query", "passage", "read"
READ_COLUMNS = 3  # of what is read: odds, start, end


class CachedEmbedder:
    """Embed each text once for as long as it is remembered; safe to share between threads.

    A vector depends on the model and the text alone. `scope` keeps whoever asks in one scope, such
    as a tenant, from learning by the time it takes which texts another one has embedded.
    """

    def __init__(self, embedder: Embedder, cache: Cache, scope: str = "") -> None:
        """Remember in `cache` what `embedder` gives."""
        self._embedder = embedder
        self._cache = cache
        self._scope = scope
        self.model_id = embedder.model_id
        self.dimension = embedder.dimension
        self.languages = embedder.languages
        self.similarity = embedder.similarity
        self.reads = isinstance(embedder, Reads) and embedder.reads

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed only the texts that are not remembered and that no other thread is embedding."""
        keys = [self._key(PASSAGE, text) for text in texts]
        texts_of = dict(zip(keys, texts, strict=True))

        def make(missing: list[str]) -> dict[str, bytes]:
            rows = self._embedder.embed_documents([texts_of[key] for key in missing])
            return {key: _packed(row) for key, row in zip(missing, rows, strict=True)}

        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        found = self._cache.many(keys, make)
        return np.stack([_unpacked(found[key]) for key in keys])

    def embed_query(self, text: str) -> Vectors:
        """Embed a question unless it is remembered."""
        key = self._key(QUERY, text)
        found = self._cache.many(
            [key], lambda missing: {key: _packed(self._embedder.embed_query(text))}
        )
        return _unpacked(found[key])

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Read only the passages that are not remembered; nothing where the original reads none."""
        if not isinstance(self._embedder, Reads):
            return []
        reader = self._embedder
        kind = f"{READ} {published_weights()[READER]['sha256']}"
        keys = [self._key(kind, json.dumps([question, *passage])) for passage in passages]
        passage_of = dict(zip(keys, passages, strict=True))

        def make(missing: list[str]) -> dict[str, bytes]:
            rows = reader.read(question, [passage_of[key] for key in missing])
            return {key: _packed(row) for key, row in zip(missing, rows, strict=True)}

        found = self._cache.many(keys, make)
        return [_unpacked(found[key]).reshape(-1, READ_COLUMNS) for key in keys]

    def pieces(self, word: str) -> int:
        """Return what the original returns, 1 where it cuts no words."""
        return self._embedder.pieces(word) if isinstance(self._embedder, CutsWords) else 1

    def _key(self, kind: str, text: str) -> str:
        return self._cache.key(model=self.model_id, scope=self._scope, kind=kind, text=text)


def _packed(row: Vectors) -> bytes:
    return bytes(row.astype("<f4").tobytes())


def _unpacked(value: bytes) -> Vectors:
    return np.frombuffer(value, dtype="<f4").astype(np.float32, copy=False)
