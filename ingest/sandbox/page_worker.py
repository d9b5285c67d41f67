"""The process that draws one page of a file: its answer is a PNG in base64, or why not."""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.limits import LoadLimits
from ingest.loaders.page_image import draw_page
from ingest.sandbox.confine import Confinement
from ingest.sandbox.worker import limit_process, private_stdout


def main() -> None:
    """Draw the one page that is asked for, and end."""
    answers = private_stdout()
    confinement = Confinement()
    confinement.enter()
    answers.write(b"ready\n")
    answers.flush()
    job = json.loads(sys.stdin.buffer.readline())
    confinement.file = os.path.realpath(job["path"])
    limits = LoadLimits.model_validate(job["limits"])
    limit_process(limits)
    try:
        picture = draw_page(Path(job["path"]), job["page"], job["quotes"], limits)
        answer = {"png": base64.b64encode(picture).decode()}
    except DocumentError as error:
        answer = {"error": error.rule}
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
