"""RapidOCR, whose models are in its wheel: Latin and Chinese, no Cyrillic."""

from __future__ import annotations

import math
import os
from functools import cache
from typing import Any

import numpy as np
from PIL.Image import Image
from rapidocr import RapidOCR

from ingest.loaders.ocr_lines import TextLine

# An A4 page as RapidOCR makes it smaller, to 2000 pixels; a square of that side did not fit into
# `ingest.parse_memory_mb`.
_MOST_PIXELS = 2.9e6
_MOST_THREADS = 4  # chosen, not measured
# How sure it is on average of the lines of a page: 0.6 upside down, 0.98 upright, 0.9 of Cyrillic.
_UPSIDE_DOWN = 0.7


@cache
def _engine() -> Any:  # noqa: ANN401 (it carries no types)
    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Global.text_score": 0.0,  # what is too low is to be known of, too
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
        }
    )


def lines(picture: Image) -> list[TextLine]:
    """Return the lines of a picture, sure or not."""
    shown = picture.convert("RGB")
    scale = math.sqrt(_MOST_PIXELS / math.prod(shown.size))
    if scale < 1:
        shown = shown.resize([max(1, round(side * scale)) for side in shown.size])
    # The engine takes blue first.
    pixels = np.ascontiguousarray(np.asarray(shown)[:, :, ::-1])
    # Its classifier turns a right line round now and then, so that it is lost: first without it.
    found = _engine()(pixels, use_cls=False)
    if found.scores is not None and len(found.scores) and np.mean(found.scores) < _UPSIDE_DOWN:
        found = _engine()(pixels, use_cls=True)
    if found.boxes is None or found.txts is None:
        return []
    lines, back = [], 1 / min(scale, 1.0)
    for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
        # Of a line that is not level its middle says in which row it is.
        middle, half = float(box[:, 1].mean()), float(np.linalg.norm(box[3] - box[0])) / 2
        sides = float(box[:, 0].min()), middle - half, float(box[:, 0].max()), middle + half
        placed = (side * back for side in sides)
        lines.append(TextLine(" ".join(text.split()), float(score), *placed))
    return lines
