"""The child process of `sandbox`: read jobs as JSON lines, answer each with one line."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from core.errors import DocumentError
from ingest.loaders import docx, pdf
from ingest.loaders.formats import format_of
from ingest.loaders.limits import LoadLimits

_LOADERS = {"pdf": pdf.load, "docx": docx.load}


def main() -> None:
    """Answer jobs until the input ends."""
    answers = _private_stdout()
    answers.write(b"ready\n")
    answers.flush()
    for line in sys.stdin.buffer:
        answer = _answer(json.loads(line))
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()
        if answer["last"]:
            return


def _private_stdout() -> BinaryIO:
    """Keep stdout for answers: native libraries print what they like to descriptor 1."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return answers


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    limits = LoadLimits.model_validate(job["limits"])
    path, relative = Path(job["path"]), str(job["relative"])
    _limit(limits)
    try:
        loader = _LOADERS[format_of(path.name) or ""]
        items = []
        for document in loader(path, relative, limits):
            if sum(len(block.text) for block in document.blocks) > limits.max_characters:
                raise DocumentError(
                    f"more than {limits.max_characters} characters of text (max_characters)"
                )
            items.append(document.model_dump(mode="json"))
        return {"items": items, "last": False}
    except DocumentError as error:
        return {"items": [{"path": relative, "reason": error.rule}], "last": False}
    except MemoryError:
        # What is left of the heap is in pieces: let the parent start afresh.
        reason = f"parsing needs more than {limits.memory_mb} MB of memory (memory_mb)"
        return {"items": [{"path": relative, "reason": reason}], "last": True}
    except Exception as error:
        reason = f"the file cannot be parsed ({type(error).__name__})"
        return {"items": [{"path": relative, "reason": reason}], "last": False}


def _limit(limits: LoadLimits) -> None:
    """Bound memory, and processor time from now on; the parent watches the clock."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = math.ceil(used.ru_utime + used.ru_stime + limits.timeout_s) + 1
    memory = limits.memory_mb * 2**20
    for kind, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, memory)):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (value, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
