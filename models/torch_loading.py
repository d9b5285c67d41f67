"""Load weights with torch, and turn a BERT-like encoder or cross-encoder into one ONNX file, once.

The file holds the whole path from token ids to the result, so that answering needs neither torch
nor transformers: for an embedder the encoder, pooling over the attention mask and L2 normalisation
(output "embedding") with the state of every token beside it (output "tokens"); for a cross-encoder
the logits. Attention, GELU and normalisation layers are fused by onnxruntime's own optimizer, which
halves the time.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.distribution import require_extra
from core.errors import ModelError
from models.folder import ModelFolder
from models.onnx_runtime import ExportError

if TYPE_CHECKING:
    import torch
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
    from transformers import AutoModel

    encoder = _loaded(AutoModel, folder, POOLER)
    outputs = {"embedding": {0: "batch"}, "tokens": {0: "batch", 1: "tokens"}}
    _export(_pooled(encoder, folder.pooling), ["input_ids", "attention_mask"], outputs, target)
    _fuse(target, encoder.config)


def export_classifier(folder: ModelFolder, inputs: list[str], target: Path) -> None:
    """Write a cross-encoder from token ids to logits; raise ExportError when it cannot be done."""
    check_exportable(folder, (["Transformer"], []))
    from transformers import AutoModelForSequenceClassification

    classifier = _loaded(AutoModelForSequenceClassification, folder, "")
    _export(_logits(classifier, inputs), inputs, {"logits": {0: "batch"}}, target)
    _fuse(target, classifier.config)


def _pooled(encoder: torch.nn.Module, pooling: str) -> torch.nn.Module:
    import torch

    class Pooled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = encoder

        def forward(
            self, input_ids: torch.Tensor, attention_mask: torch.Tensor
        ) -> tuple[torch.Tensor, torch.Tensor]:
            hidden = self.encoder(
                input_ids=input_ids, attention_mask=attention_mask
            ).last_hidden_state
            if pooling == "cls":
                pooled = hidden[:, 0]
            else:
                mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
            return torch.nn.functional.normalize(pooled, dim=1), hidden

    return Pooled()


def _logits(classifier: torch.nn.Module, inputs: list[str]) -> torch.nn.Module:
    import torch

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.classifier = classifier

        def forward(self, *features: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.classifier(
                **dict(zip(inputs, features, strict=True))
            ).logits
            return logits

    return Logits()


def _loaded(kind: type[Any], folder: ModelFolder, unused: str) -> PreTrainedModel:
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
