"""Choose an embedder by settings; every embedder gives unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from core.errors import ModelError
from models.digest import files_digest
from models.embedded import CARRIERS, EMBEDDED, Carrier, embedded_folder
from models.embedder_backend import Backend, open_backend
from models.folder import ModelFolder, find_folder
from models.identity import EmbedderSpec, Prompts, content_digest, named_id, prompts_of
from models.onnx_embedder import Span
from models.onnx_session import RunOptions
from models.table import USUAL_COSINES, ModelCard, find_card
from models.vectors import Passage, Vectors

__all__ = ["EMBEDDED", "Embedder", "Passage", "Reads", "SpanEmbedder", "Vectors", "load_embedder"]

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


@runtime_checkable
class CutsWords(Protocol):
    """Cut words into pieces, common ones into few; check with isinstance."""

    def pieces(self, word: str) -> int:
        """Return the number of pieces of a word."""


@runtime_checkable
class Reads(Protocol):
    """Read passages for the sentences that answer; check with isinstance, then `reads`."""

    reads: bool

    def read(self, question: str, passages: Sequence[Passage]) -> list[Vectors]:
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
    setting: str = "embedder",
) -> Embedder:
    """Return the embedder that settings name: an embedded one, a folder or a cached hub model.

    `setting` is the setting an error should name. "auto" takes ONNX where the exported file agrees
    with torch. Raises ModelError for whatever keeps the model from giving vectors.
    """
    carrier = CARRIERS.get(name)
    instead = EMBEDDED if setting == "embedder" else "none"
    folder = (
        embedded_folder(name) if carrier else find_folder(name, setting=setting, instead=instead)
    )
    card = find_card(folder.name, "embedder")
    _check_kind(folder, card)
    spec = _spec(folder, card, cache_dir, prompts, languages, carrier)
    embedder = open_backend(
        folder, spec, RunOptions(spec.max_tokens, threads, batch_size), cache_dir, backend
    )
    _check_dimension(embedder, folder, card)
    return embedder


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
