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
    import logging

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        yield
