"""Read the rows of a data set in the BEIR layout, for benchmarks that need their raw fields."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """Read a JSONL file, compressed or not."""
    plain = folder / f"{name}.jsonl"
    if plain.exists():
        lines = plain.read_text(encoding="utf-8").splitlines()
    else:
        with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as handle:
            lines = handle.read().splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def gold_documents(folder: Path) -> dict[str, set[str]]:
    """Return the relevant document ids of each query."""
    gold: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, score = line.split("\t")[:3]
        if float(score) > 0:
            gold.setdefault(query, set()).add(document)
    return gold


def folded(text: object) -> str:
    """Return letters and digits only, without case, for comparing answers."""
    return "".join(character for character in str(text).casefold() if character.isalnum())
