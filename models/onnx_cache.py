"""Keep exported models: made once, and only when their results agree with torch.

A file is named by the hash of the model's files: other weights, another file. The reason why a
model cannot be exported is kept beside them, so that it is tried once.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import ModelError


class ExportError(ModelError):
    """Say why a model cannot become an ONNX file; torch can still run it."""


def ensure_onnx(
    target: Path, export: Callable[[Path], None], agree: Callable[[Path], None]
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
    target.parent.mkdir(parents=True, exist_ok=True)
    # Written beside the target and renamed: a killed export never leaves half a model behind.
    handle, name = tempfile.mkstemp(suffix=".onnx", dir=target.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with _quiet():
            export(partial)
        agree(partial)
        os.replace(partial, target)
    except ExportError as error:
        refused.write_text(error.rule, encoding="utf-8")
        raise
    finally:
        partial.unlink(missing_ok=True)
    return target


@contextmanager
def _quiet() -> Iterator[None]:
    import logging

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("torch.onnx", "onnxruntime.transformers"):
            logging.getLogger(name).setLevel(logging.ERROR)
        from transformers.utils import logging as transformers_logging

        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        yield
