"""Run an exported model, such as an embedder: texts in, arrays out, without torch."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np

from core.errors import ModelError
from core.question import replace_surrogates
from models.folder import EmbedderSpec, ModelFolder
from models.vectors import Vectors, checked_rows, unit_rows

Backend = Literal["auto", "onnx", "torch"]
T = TypeVar("T")

PADDING = 0.2  # share of a batch's tokens that may be padding; chosen, not measured


@dataclass(frozen=True)
class RunOptions:
    """Say how a model is run: texts are cut at `max_tokens`, `batch_size` of them at a time.

    `device` is torch's: "cpu", "cuda" or "mps"; ONNX files run on the CPU.
    """

    max_tokens: int
    threads: int
    batch_size: int
    device: str = "cpu"


class Tokenizes(Protocol):
    """Cut texts or pairs into tokens: objects with `ids` and, in characters, `offsets`."""

    def encode_batch(self, texts: Sequence[Any], /) -> Sequence[Any]:
        """Return the tokens of every text."""


class OnnxSession:
    """Hold one ONNX file, its tokenizer and how it is batched; safe to share between threads."""

    def __init__(
        self,
        onnx: Path,
        folder: ModelFolder,
        options: RunOptions,
        tokenizer: Tokenizes | None = None,
    ) -> None:
        """Open the file on the CPU; without `tokenizer` take that of the folder."""
        import onnxruntime

        self._batch_size = options.batch_size
        self._pad = folder.config.get("pad_token_id") or 0
        self._name = folder.name
        self._tokenizer = tokenizer or _tokenizer_of(folder, options.max_tokens)
        wanted = onnxruntime.SessionOptions()
        wanted.intra_op_num_threads = options.threads
        wanted.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Without VNNI, products of int8 numbers overflow in the faster way (cosine .9966 to .9991).
        wanted.add_session_config_entry("session.x64quantprecision", "1")
        # One plan of memory is kept for each length of input ever seen: 240 passages of a hundred
        # lengths took 214 MB with them and no less time.
        wanted.enable_mem_pattern = False
        wanted.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(
                str(onnx), wanted, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own errors share no public base class
            raise ModelError(
                "the cached model file cannot be loaded",
                value=str(onnx),
                hint="delete it; it is made again at the next start",
            ) from error
        # Else the largest batch ever run keeps its memory, hundreds of MB, for the process's life.
        self._run_options = onnxruntime.RunOptions()
        self._run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._inputs = [node.name for node in self._session.get_inputs()]
        self.widths = {node.name: node.shape[-1] for node in self._session.get_outputs()}

    def encode(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[Any]:
        """Return the tokens of texts or pairs; halves of surrogate pairs become "?"."""
        readable = [
            replace_surrogates(text)
            if isinstance(text, str)
            else tuple(map(replace_surrogates, text))
            for text in texts
        ]
        return list(self._tokenizer.encode_batch(readable))

    def run(
        self, encodings: Sequence[Any], outputs: Sequence[str]
    ) -> Iterator[tuple[list[int], Any]]:
        """Yield (rows, arrays of the outputs) by batches of similar length, to spare padding."""
        for rows in batches([len(encoding.ids) for encoding in encodings], self._batch_size):
            feed = self._feed([encodings[i] for i in rows])
            try:
                arrays = self._session.run(list(outputs), feed, self._run_options)
            except Exception as error:  # as above
                hint = "fewer texts per batch need less memory"
                raise run_error(self._name, error, hint) from error
            yield rows, arrays

    def _feed(self, encodings: Sequence[Any]) -> dict[str, Any]:
        width = max(len(encoding.ids) for encoding in encodings)
        shape = (len(encodings), width)
        feed = {name: np.zeros(shape, dtype=np.int64) for name in self._inputs}
        feed["input_ids"] += self._pad
        for line, encoding in enumerate(encodings):
            size = len(encoding.ids)
            feed["input_ids"][line, :size] = encoding.ids
            if "attention_mask" in feed:
                feed["attention_mask"][line, :size] = 1
            if "token_type_ids" in feed:
                feed["token_type_ids"][line, :size] = encoding.type_ids
        return feed


def _tokenizer_of(folder: ModelFolder, max_tokens: int) -> Tokenizes:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder.path / "tokenizer.json"))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelError(
            "tokenizer.json cannot be read",
            value=f"{folder.path}: {error}",
            hint="copy the whole model again",
        ) from error
    # A file may carry fixed padding, of 128 tokens in MiniLM's: 20x the time of a short query.
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    found: Tokenizes = tokenizer
    return found


def batches(lengths: Sequence[int], most: int) -> Iterator[list[int]]:
    """Yield the places of texts in batches of at most `most`, the shortest texts first.

    A batch ends before its padding would be more than a share PADDING of its tokens: the model's
    time grows with both, and a batch of its own costs little.
    """
    batch: list[int] = []
    tokens = 0
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        padded = lengths[place] * (len(batch) + 1)
        if batch and (len(batch) == most or padded > (1 + PADDING) * (tokens + lengths[place])):
            yield batch
            batch, tokens = [], 0
        batch.append(place)
        tokens += lengths[place]
    if batch:
        yield batch


def run_error(name: str, error: Exception, hint: str) -> ModelError:
    """Return the ModelError for an exception that a library raised while a model ran."""
    first = str(error).partition("\n")[0]
    return ModelError("the model failed while it ran", value=f"{name}: {first}", hint=hint)


class ExportError(ModelError):
    """Say why a model cannot become an ONNX file; torch can still run it."""


def ensure_onnx(
    target: Path,
    export: Callable[[Path], None],
    agree: Callable[[Path], None] = lambda made: None,
) -> Path:
    """Return `target`, made by `export` and accepted by `agree` when the cache has none.

    Raises ExportError when the model cannot be exported or the results differ.
    """
    refused = target.with_suffix(".refused")
    if target.is_file():
        return target
    if refused.is_file():
        raise ExportError(
            refused.read_text(encoding="utf-8"), hint=f"delete {refused} to try again"
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _make(target, export, agree)
    except ExportError as error:
        refused.write_text(error.rule, encoding="utf-8")
        raise
    except (OSError, MemoryError) as error:  # may go well another time: not kept
        raise ExportError(
            "the exported model cannot be written to the cache",
            value=f"{target.parent}: {error}",
            hint="check CARREL_CACHE and the free disk and memory",
        ) from error
    return target


def open_fastest(
    target: Path,
    backend: str,
    device: str,
    *,
    export: Callable[[Path], None],
    by_onnx: Callable[[Path], T],
    by_torch: Callable[[], T],
    check: Callable[[T, T], None],
) -> T:
    """Open a model: "auto" takes ONNX on the CPU where `check` finds that it agrees with torch.

    Raises ExportError when "onnx" is wanted and cannot be had.
    """
    if backend == "torch" or device != "cpu":
        return by_torch()
    try:
        ensure_onnx(target, export, lambda path: check(by_onnx(path), by_torch()))
    except ExportError:
        if backend == "onnx":
            raise
        return by_torch()
    return by_onnx(target)


def _make(target: Path, export: Callable[[Path], None], agree: Callable[[Path], None]) -> None:
    """Write beside the target and rename: a killed export never leaves half a model behind."""
    handle, name = tempfile.mkstemp(suffix=target.suffix, dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with _quiet():
            export(partial)
        agree(partial)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        yield


Span = tuple[int, int]


class OnnxEmbedder:
    """Run an exported embedder through onnxruntime and tokenizers."""

    backend = "onnx"

    def __init__(self, session: OnnxSession, spec: EmbedderSpec) -> None:
        self._session = session
        self._spec = spec
        self.model_id = spec.model_id
        self.languages = spec.languages
        self.similarity = spec.similarity
        self.dimension: int = session.widths["embedding"]

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; each is cut at the length the model was made for."""
        return self._embed([self._spec.passage_prompt + text for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        vector: Vectors = self._embed([self._spec.query_prompt + text])[0]
        return vector

    def pieces(self, word: str) -> int:
        """Return the number of pieces of a word, without the two marks around them."""
        return len(self._session.encode([word])[0].ids) - 2

    def _embed(self, texts: Sequence[str]) -> Vectors:
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        for rows, (embedding,) in self._session.run(self._session.encode(texts), ["embedding"]):
            vectors[rows] = embedding
        return checked_rows(vectors, self.dimension, self.model_id)


class OnnxSpanEmbedder(OnnxEmbedder):
    """Embed passages and parts of them in one pass, for models that pool by the mean."""

    def embed_passages(
        self, texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Vectors, list[Vectors]]:
        """Return the passages' vectors and, per passage, one unit vector per character span.

        A span's vector is the mean of the states of the tokens that touch it, so it knows the
        passage around it ("late chunking", Günther et al. 2024, arXiv 2409.04701). A span without
        tokens, because the passage was cut before it, is embedded as a text of its own.
        """
        prompt = self._spec.passage_prompt
        encodings = self._session.encode([prompt + text for text in texts])
        vectors = np.empty((len(texts), self.dimension), dtype=np.float32)
        parts: list[Vectors] = [
            np.zeros((len(wanted), self.dimension), dtype=np.float32) for wanted in spans
        ]
        for rows, (embedding, states) in self._session.run(encodings, ["embedding", "tokens"]):
            vectors[rows] = embedding
            for line, i in enumerate(rows):
                offsets = np.array(encodings[i].offsets) - len(prompt)
                _mean_of_spans(parts[i], spans[i], offsets, states[line])
        self._embed_cut_spans(parts, texts, spans)
        passages = checked_rows(vectors, self.dimension, self.model_id)
        return passages, [unit_rows(part, self.model_id) for part in parts]

    def _embed_cut_spans(
        self, parts: list[Vectors], texts: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> None:
        cut = [
            (i, j) for i, part in enumerate(parts) for j, row in enumerate(part) if not row.any()
        ]
        alone = [texts[i][slice(*spans[i][j])] for i, j in cut]
        for (i, j), vector in zip(cut, self.embed_documents(alone), strict=True):
            parts[i][j] = vector


def _mean_of_spans(rows: Vectors, spans: Sequence[Span], offsets: Vectors, states: Vectors) -> None:
    """Fill one row per span from states of shape (tokens, dimension); leave rows without tokens.

    `offsets` has shape (tokens, 2): where each token begins and ends in the passage.
    """
    inside = offsets[:, 1] > offsets[:, 0]  # special tokens cover nothing
    for j, (start, end) in enumerate(spans):
        touched = inside & (offsets[:, 0] < end) & (offsets[:, 1] > start)
        if touched.any():
            rows[j] = states[: len(offsets)][touched].mean(axis=0)
