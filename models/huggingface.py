"""What torch and the libraries of Hugging Face run: models of folders, endpoints, and exports.

`export_embedder` and `export_classifier` turn a BERT-like model into one ONNX file, once. The file
holds the whole path from token ids to the result, so that answering needs neither torch nor
transformers: for an embedder the encoder, pooling over the attention mask and L2 normalisation
(output "embedding") with the state of every token beside it (output "tokens"); for a cross-encoder
the logits. Attention, GELU and normalisation layers are fused by onnxruntime's own optimizer, which
halves the time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from core.distribution import require_extra
from core.errors import ModelError
from core.question import replace_surrogates
from models.folder import EmbedderSpec, ModelFolder
from models.onnx_runtime import ExportError, RunOptions, run_error
from models.vectors import Vectors, unit_rows

if TYPE_CHECKING:
    import torch
    from langchain_core.embeddings import Embeddings
    from transformers import PreTrainedConfig, PreTrainedModel

MISSING = re.compile(r"^(\S+) *\| *MISSING\b", re.MULTILINE)
COLOUR = re.compile(r"\x1b\[[\d;]*m")
POOLER = "pooler."  # encoders have it, embedders never ask for it


class _Report(logging.Filter):
    """Read and hold back what transformers logs about the tensors of a file."""

    def __init__(self, unused: str) -> None:
        super().__init__()
        self._unused = unused
        self.missing: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        text = COLOUR.sub("", record.getMessage())
        for name in MISSING.findall(text):
            if not self._unused or not name.startswith(self._unused):
                self.missing.append(name)
        return "LOAD REPORT" not in text


def check_device(device: str) -> None:
    """Raise ModelError when torch has no such device here."""
    import torch

    there = {"cpu": True, "mps": torch.backends.mps.is_available()}
    if not there.get(device, torch.cuda.is_available()):
        raise ModelError(
            "torch finds no such device here",
            value=f"embedder_device={device}",
            hint="set embedding.device=cpu, or install a torch built for the device",
        )


@contextmanager
def torch_loading(folder: ModelFolder, unused: str = "") -> Iterator[None]:
    """Load a model inside: no progress bars, and ModelError for incomplete files.

    transformers fills missing tensors with random numbers and only logs it. Tensors whose names
    begin with `unused` may be missing.
    """
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logger = logging.getLogger("transformers.modeling_utils")
    report, level = _Report(unused), logger.level
    logger.addFilter(report)
    logger.setLevel(logging.WARNING)
    try:
        yield
    except ModelError:
        raise
    except Exception as error:  # OSError, ImportError, safetensors, pickle and torch errors alike
        raise _unloadable(folder, str(error) or type(error).__name__) from error
    finally:
        logger.removeFilter(report)
        logger.setLevel(level)
        transformers_logging.set_verbosity(verbosity)
    if report.missing:
        raise _unloadable(folder, f"weights are missing: {report.missing[0]}")


def _unloadable(folder: ModelFolder, reason: str) -> ModelError:
    return ModelError(
        f"the model in {folder.path} cannot be loaded",
        value=reason.strip().partition("\n")[0],
        hint="copy the whole model again, or choose another",
    )


OPSET = 17  # the first with LayerNormalization
BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra", "distilbert"})
ENCODER_PARTS: tuple[list[str], ...] = (
    ["Transformer", "Pooling"],
    ["Transformer", "Pooling", "Normalize"],
    [],
)
ONNX_BYTES = 1_900_000_000  # a protobuf message ends at 2 GB


def check_exportable(folder: ModelFolder, parts: tuple[list[str], ...]) -> None:
    """Raise ExportError for a model that is not BERT-like or has parts ONNX would leave out."""
    kind = folder.config.get("model_type")
    if kind not in BERT_LIKE:
        raise ExportError(f"models of type {kind} are run by torch")
    if folder.parts not in parts:
        raise ExportError(f"models with the parts {folder.parts} are run by torch")
    if not (folder.path / "tokenizer.json").is_file():
        raise ExportError("models without tokenizer.json are run by torch")
    needed = "an export to ONNX, made once,"
    require_extra("huggingface", needed, value=folder.name, error=ModelError)


def export_embedder(folder: ModelFolder, target: Path) -> None:
    """Write the encoder with its pooling; raise ExportError when it cannot be done."""
    check_exportable(folder, ENCODER_PARTS)
    if folder.pooling not in ("mean", "cls"):
        raise ExportError("models that pool otherwise than by mean or cls are run by torch")
    import torch
    from transformers import AutoModel

    encoder = _load(AutoModel, folder, POOLER)

    def pooled(ids: torch.Tensor, attention: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = encoder(input_ids=ids, attention_mask=attention).last_hidden_state
        if folder.pooling == "cls":
            pooled = hidden[:, 0]
        else:
            mask = attention.unsqueeze(-1).to(hidden.dtype)
            pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(pooled, dim=1), hidden

    outputs = {"embedding": {0: "batch"}, "tokens": {0: "batch", 1: "tokens"}}
    _export(_traceable(encoder, pooled), ["input_ids", "attention_mask"], outputs, target)
    _fuse(target, encoder.config)


def export_classifier(folder: ModelFolder, inputs: list[str], target: Path) -> None:
    """Write a cross-encoder from token ids to logits; raise ExportError when it cannot be done."""
    check_exportable(folder, (["Transformer"], []))
    from transformers import AutoModelForSequenceClassification

    classifier = _load(AutoModelForSequenceClassification, folder, "")

    def logits(*features: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = classifier(**dict(zip(inputs, features, strict=True))).logits
        return found

    _export(_traceable(classifier, logits), inputs, {"logits": {0: "batch"}}, target)
    _fuse(target, classifier.config)


def _traceable(model: torch.nn.Module, compute: Callable[..., Any]) -> torch.nn.Module:
    """Return a module that computes something with the weights of a model."""
    import torch

    class Traceable(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *features: torch.Tensor) -> Any:  # noqa: ANN401 - as computed
            return compute(*features)

    return Traceable()


def _load(kind: type[Any], folder: ModelFolder, unused: str) -> PreTrainedModel:
    import torch

    with torch_loading(folder, unused):
        model: PreTrainedModel = kind.from_pretrained(
            str(folder.path),
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="eager",  # what the tracer can follow
            dtype=torch.float32,
        ).eval()
    if sum(weight.numel() for weight in model.parameters()) * 4 > ONNX_BYTES:
        raise ExportError("models above 1.9 GB are run by torch")
    return model


def _export(
    model: torch.nn.Module, inputs: list[str], outputs: dict[str, Any], target: Path
) -> None:
    import torch

    example = torch.ones(2, 7, dtype=torch.int64)
    axes: dict[str, Any] = dict.fromkeys(inputs, {0: "batch", 1: "tokens"})
    try:
        torch.onnx.export(
            model,
            (example,) * len(inputs),
            str(target),
            input_names=inputs,
            output_names=list(outputs),
            dynamic_axes=axes | outputs,
            opset_version=OPSET,
            dynamo=False,
        )
    except (OSError, MemoryError):
        raise
    except Exception as error:  # the tracer raises whatever the model's code does
        raise ExportError(f"the export failed: {str(error).partition(chr(10))[0]}") from error


def _fuse(path: Path, config: PreTrainedConfig) -> None:
    """Fuse layers in place; a model the optimizer does not know stays as it was."""
    from onnxruntime.transformers import optimizer

    silenced = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it names its loggers after files without a package
    try:
        fused = optimizer.optimize_model(
            str(path),
            model_type="bert",
            num_heads=config.num_attention_heads,
            hidden_size=config.hidden_size,
            opt_level=0,
        )
    except Exception:  # unfused files are correct too, only slower
        return
    finally:
        logging.disable(silenced)
    fused.save_model_to_file(str(path))


NEEDS = "an embedder that is not embedded"
URLS = ("http://", "https://")
OF_THE_HUB = (".huggingface.cloud", ".huggingface.co")  # where its token is sent, and nowhere else
INFO_SECONDS, ANSWER_SECONDS = 5.0, 60.0  # that a server may take; chosen, not measured


class HuggingFaceEmbedder:
    """Give the vectors of a LangChain `Embeddings`, scaled to length 1 and checked."""

    backend = "torch"

    def __init__(
        self, embeddings: Embeddings, spec: EmbedderSpec, failing: str, batch_size: int | None
    ) -> None:
        """Take what embeds; `failing` says what to do when it fails, `batch_size` cuts calls."""
        self._embeddings = embeddings
        self._failing = failing
        self._batch_size = batch_size
        self.model_id = spec.model_id
        self.languages = spec.languages
        self.similarity = spec.similarity
        self.dimension = len(self._run(embeddings.embed_query, "probe"))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages; each is cut at the length the model was made for."""
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        readable = [replace_surrogates(text) for text in texts]
        size = self._batch_size or len(texts)
        rows = [
            row
            for start in range(0, len(texts), size)
            for row in self._run(self._embeddings.embed_documents, readable[start : start + size])
        ]
        if len(rows) != len(texts):
            rule = "an embedder must give one row per text"
            raise ModelError(rule, value=f"{len(rows)} for {len(texts)}", hint=self._failing)
        return unit_rows(np.array(rows, dtype=np.float32), self.model_id)

    def embed_query(self, text: str) -> Vectors:
        """Embed one question."""
        row = np.array(
            [self._run(self._embeddings.embed_query, replace_surrogates(text))], dtype=np.float32
        )
        vector: Vectors = unit_rows(row, self.model_id)[0]
        return vector

    def _run(self, embed: Callable[[Any], list[Any]], given: str | list[str]) -> list[Any]:
        try:
            return embed(given)
        except Exception as error:  # torch and HTTP clients raise errors of many families
            raise run_error(self.model_id, error, self._failing) from error


def open_folder(
    folder: ModelFolder, spec: EmbedderSpec, options: RunOptions
) -> HuggingFaceEmbedder:
    """Load a sentence-transformers folder in torch; code from a repository is never run."""
    require_extra("huggingface", NEEDS, value=folder.name, error=ModelError)
    import torch
    from langchain_huggingface import HuggingFaceEmbeddings

    check_device(options.device)
    torch.set_num_threads(options.threads)
    usual = {"batch_size": options.batch_size, "normalize_embeddings": True}
    with torch_loading(folder, POOLER):
        embeddings = HuggingFaceEmbeddings(
            model_name=str(folder.path),
            model_kwargs={
                "device": options.device,
                "local_files_only": True,
                "trust_remote_code": False,
            },
            encode_kwargs={**usual, "prompt": spec.passage_prompt},
            query_encode_kwargs={**usual, "prompt": spec.query_prompt},
        )
        embeddings._client.max_seq_length = options.max_tokens
    failing = "check the model's files, or embed fewer texts per batch"
    return HuggingFaceEmbedder(embeddings, spec, failing, None)


def endpoint_model(url: str) -> tuple[str, str]:
    """Return the name and the revision of the model that an endpoint runs, as far as it says so.

    text-embeddings-inference answers at /info; of another server the address stands for both.
    """
    import httpx

    place = urlsplit(url)
    try:
        found = httpx.get(f"{place.scheme}://{place.netloc}/info", timeout=INFO_SECONDS).json()
        return str(found["model_id"]), str(found.get("model_sha") or "")
    except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError):
        return place.netloc, url


def open_endpoint(url: str, spec: EmbedderSpec, options: RunOptions) -> HuggingFaceEmbedder:
    """Return a client of a text-embeddings-inference endpoint; texts are sent to that server."""
    require_extra("huggingface", NEEDS, value=url, error=ModelError)
    from huggingface_hub import InferenceClient
    from langchain_huggingface import HuggingFaceEndpointEmbeddings

    class Endpoint(HuggingFaceEndpointEmbeddings):
        """Put the model's prompts before texts, which the server does not."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return super().embed_documents([spec.passage_prompt + text for text in texts])

        def embed_query(self, text: str) -> list[float]:
            return super().embed_documents([spec.query_prompt + text])[0]

    of_hub = (urlsplit(url).hostname or "").endswith(OF_THE_HUB)
    endpoint = Endpoint()
    # The class takes names of the hub alone; its client takes the address of any server.
    own = {} if of_hub else {"authorization": ""}  # else the hub's token goes to any server
    endpoint.client = InferenceClient(model=url, headers=own, timeout=ANSWER_SECONDS)
    failing = "see whether the endpoint runs and gives one vector per text"
    return HuggingFaceEmbedder(endpoint, spec, failing, options.batch_size)
