"""Load weights with torch so that whatever is wrong with them is one ModelError."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import ModelError
from models.folder import ModelFolder

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
