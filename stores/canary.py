"""Ask the vector index for vectors it must know; run as a process of its own.

A damaged index can end the process that opens it, or answer without an error while finding
nothing, so counting is no proof. Usage: python -m stores.canary FOLDER MODEL [ids] < sample.json
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import CarrelError
from stores.chroma import ChromaVectors


def probe(
    folder: Path, model: str, sample: dict[str, Any], *, timeout_s: float, ids: bool = False
) -> dict[str, Any]:
    """Probe in a child process; return its counts and misses, or {"error": reason}.

    With `ids` it tells all chunk ids of each collection as well.
    """
    command = [sys.executable, "-m", "stores.canary", str(folder), model, "ids" if ids else ""]
    root = Path(__file__).resolve().parent.parent
    try:
        child = subprocess.run(
            command,
            input=json.dumps(sample),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            cwd=root,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer in {timeout_s:g} s"}
    try:
        answer: dict[str, Any] = json.loads(child.stdout)
        return answer
    except ValueError:
        return {"error": f"opening it ended the process (exit code {child.returncode})"}


def _main(folder: str, model: str, ids: str) -> None:
    sample = json.load(sys.stdin)
    chroma = ChromaVectors(Path(folder), model, batch=1)
    report: dict[str, Any] = {"counts": {}, "missed": 0, "asked": 0}
    try:
        for collection, rows in sample.items():
            report["counts"][collection] = chroma.count(int(collection))
            if ids:
                report.setdefault("ids", {})[collection] = chroma.ids(int(collection))
            for row in rows:
                vector = np.asarray(row["vector"], dtype=np.float32)
                report["asked"] += 1
                report["missed"] += not chroma.knows(int(collection), vector, row["chunk_id"])
    except CarrelError as error:
        report = {"error": str(error)}
    print(json.dumps(report))  # noqa: T201 - the answer to the parent


if __name__ == "__main__":
    _main(*sys.argv[1:4])
