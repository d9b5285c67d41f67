"""Choose an embedder by settings, and what runs it; every embedder gives unit vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np

from core.cache import Cache
from core.errors import ModelError
from models.folder import (
    CARRIERS,
    EMBEDDED,
    PACKED,
    Carrier,
    EmbedderSpec,
    ModelFolder,
    Prompts,
    content_digest,
    embedded_folder,
    files_digest,
    find_folder,
    make_model_id,
    prompts_of,
)
from models.huggingface import (
    URLS,
    HuggingFaceEmbedder,
    endpoint_model,
    export_embedder,
    open_endpoint,
    open_folder,
)
from models.onnx_runtime import (
    Backend,
    ExportError,
    OnnxEmbedder,
    OnnxSession,
    OnnxSpanEmbedder,
    RunOptions,
    Span,
    open_fastest,
)
from models.table import READER, USUAL_COSINES, ModelCard, find_card, published_weights
from models.vectors import SpanPassage, Vectors

AnyEmbedder = OnnxEmbedder | HuggingFaceEmbedder
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
) -> AnyEmbedder:
    """Load the model with ONNX or torch; raise ExportError when "onnx" cannot be had."""

    def open_onnx(path: Path) -> AnyEmbedder:
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
    return open_fastest(
        cache_dir / f"embedder-{spec.digest[:16]}-v3.onnx",
        backend,
        options.device,
        export=lambda path: export_embedder(folder, path),
        by_onnx=open_onnx,
        by_torch=lambda: open_folder(folder, spec, options),
        check=_check_agreement,
    )


def _check_agreement(exported: AnyEmbedder, original: AnyEmbedder) -> None:
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
        """Scale the cosine of a question and a text to 0 (unrelated) .. 1 (close).

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
    spec = _folder_spec(folder, card, cache_dir, prompts, languages, carrier)
    options = RunOptions(spec.max_tokens, threads, batch_size, device)
    embedder = open_backend(folder, spec, options, cache_dir, backend)
    _check_dimension(embedder, folder, card)
    return embedder


def _open_endpoint(
    url: str, wanted: Prompts, languages: Sequence[str] | None, options: RunOptions
) -> Embedder:
    name, revision = endpoint_model(url)
    card = find_card(name, "embedder")
    prompts = prompts_of(None, card, wanted)
    digest = hashlib.sha256(f"{name} {revision}".encode()).hexdigest()
    model_id = make_model_id(name.rpartition("/")[2], digest, *prompts)
    spec = _spec(model_id, digest, prompts, options.max_tokens, languages, card)
    return open_endpoint(url, spec, options)


def _folder_spec(
    folder: ModelFolder,
    card: ModelCard | None,
    cache_dir: Path,
    wanted: Prompts,
    languages: Sequence[str] | None,
    carrier: Carrier | None,
) -> EmbedderSpec:
    prompts = prompts_of(folder, card, wanted)
    limits = [n for n in (folder.max_tokens, card.max_tokens if card else None) if n]
    max_tokens = min(limits, default=DEFAULT_TOKENS)
    differing: tuple[object, ...] = prompts
    if carrier:
        digest = files_digest([folder.path / file for file in carrier.files], cache_dir)
    else:
        digest = content_digest(folder, cache_dir)
        differing = (*prompts, max_tokens)
    model_id = make_model_id(folder.name, digest, *differing)
    return _spec(model_id, digest, prompts, max_tokens, languages, card)


def _spec(
    model_id: str,
    digest: str,
    prompts: tuple[str, str],
    max_tokens: int,
    languages: Sequence[str] | None,
    card: ModelCard | None,
) -> EmbedderSpec:
    return EmbedderSpec(
        model_id=model_id,
        digest=digest,
        query_prompt=prompts[0],
        passage_prompt=prompts[1],
        max_tokens=max_tokens,
        languages=frozenset(languages) if languages else (card.languages if card else None),
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
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        embed = self._embedder.embed_documents
        return np.stack(
            self._rows(PASSAGE, texts, lambda places: embed([texts[i] for i in places]))
        )

    def embed_query(self, text: str) -> Vectors:
        """Embed a question unless it is remembered."""
        return self._rows(QUERY, [text], lambda _: [self._embedder.embed_query(text)])[0]

    def read(self, question: str, passages: Sequence[SpanPassage]) -> list[Vectors]:
        """Read only the passages that are not remembered; nothing where the original reads none."""
        if not isinstance(self._embedder, Reads):
            return []
        read = self._embedder.read
        kind = f"{READ} {published_weights()[READER]['sha256']}"
        texts = [json.dumps([question, *passage]) for passage in passages]
        rows = self._rows(kind, texts, lambda places: read(question, [passages[i] for i in places]))
        return [row.reshape(-1, READ_COLUMNS) for row in rows]

    def _rows(
        self, kind: str, texts: Sequence[str], make: Callable[[list[int]], Iterable[Vectors]]
    ) -> list[Vectors]:
        """Return the numbers of each text; `make` gives those of the texts at some places."""
        keys = [
            self._cache.key(model=self.model_id, scope=self._scope, kind=kind, text=text)
            for text in texts
        ]
        place_of = {key: place for place, key in enumerate(keys)}

        def packed(missing: list[str]) -> dict[str, bytes]:
            rows = make([place_of[key] for key in missing])
            return {
                key: row.astype("<f4").tobytes() for key, row in zip(missing, rows, strict=True)
            }

        found = self._cache.many(keys, packed)
        return [
            np.frombuffer(found[key], dtype="<f4").astype(np.float32, copy=False) for key in keys
        ]

    def pieces(self, word: str) -> int:
        """Return the pieces that the original counts, 1 where it cuts no words."""
        return self._embedder.pieces(word) if isinstance(self._embedder, CutsWords) else 1
