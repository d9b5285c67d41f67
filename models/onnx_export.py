"""Turn a BERT-style sentence embedder into one ONNX file, once.

The file holds the whole path from token ids to a unit vector (encoder, mean pooling over the
attention mask, L2 normalisation), so that answering needs neither torch nor transformers. Its
attention, GELU and normalisation layers are fused by onnxruntime's own optimizer, which halves the
time and changes no vector by more than 1e-6. It is cached under the hash of the weights: other
weights, another file.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from core.errors import ModelError

OPSET = 17


def weights_hash(model_dir: Path) -> str:
    """Hash the weights and configuration that decide what a vector means."""
    digest = hashlib.sha256()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        path = model_dir / name
        if not path.is_file():
            raise ModelError(
                "an embedder folder needs config.json, tokenizer.json and model.safetensors",
                value=str(path),
                hint="reinstall the model package",
            )
        with path.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def ensure_onnx(model_dir: Path, cache_dir: Path) -> Path:
    """Return the exported file, making it when the cache has none for these weights."""
    target = cache_dir / f"embedder-{weights_hash(model_dir)[:16]}-v2.onnx"
    if not target.is_file():
        cache_dir.mkdir(parents=True, exist_ok=True)
        _export(model_dir, target)
    return target


def _export(model_dir: Path, target: Path) -> None:
    import logging
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("torch.onnx", "onnxruntime.transformers"):
            logging.getLogger(name).setLevel(logging.ERROR)
        import torch
        from transformers import AutoModel
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        encoder = AutoModel.from_pretrained(  # eager attention is what the tracer can follow
            str(model_dir), local_files_only=True, attn_implementation="eager"
        ).eval()

        class Embedder(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.encoder = encoder

            def forward(
                self, input_ids: torch.Tensor, attention_mask: torch.Tensor
            ) -> torch.Tensor:
                hidden = self.encoder(
                    input_ids=input_ids, attention_mask=attention_mask
                ).last_hidden_state
                mask = attention_mask.unsqueeze(-1).to(hidden.dtype)
                pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
                return torch.nn.functional.normalize(pooled, dim=1)

        ids = torch.ones(2, 7, dtype=torch.int64)
        axes = {0: "batch", 1: "tokens"}
        # Written beside the target and renamed: a killed export never leaves half a model behind.
        handle, partial = tempfile.mkstemp(suffix=".onnx", dir=target.parent)
        os.close(handle)
        try:
            torch.onnx.export(
                Embedder(),
                (ids, torch.ones_like(ids)),
                partial,
                input_names=["input_ids", "attention_mask"],
                output_names=["embedding"],
                dynamic_axes={"input_ids": axes, "attention_mask": axes, "embedding": {0: "batch"}},
                opset_version=OPSET,
                dynamo=False,
            )
            _fuse(Path(partial), encoder.config.num_attention_heads, encoder.config.hidden_size)
            os.replace(partial, target)
        finally:
            Path(partial).unlink(missing_ok=True)


def _fuse(path: Path, heads: int, hidden_size: int) -> None:
    from onnxruntime.transformers import optimizer

    fused = optimizer.optimize_model(
        str(path), model_type="bert", num_heads=heads, hidden_size=hidden_size, opt_level=0
    )
    fused.save_model_to_file(str(path))
