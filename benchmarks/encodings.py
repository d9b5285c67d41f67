"""Decode sentences that were written in legacy encodings, whole and cut to a few bytes.

    python -m benchmarks.encodings FOLDER [--sentences 200] [--seed 1]

FOLDER holds corpus_ru.jsonl, corpus_uk.jsonl and corpus_zh.jsonl with a "text" per line. Prints how
many come back as they were. Exit code 1 when fewer than 99 in 100 whole sentences do.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

from core.errors import DocumentError
from ingest.loaders.text.encoding import decode

ENCODINGS = {
    "ru": ("cp1251", "koi8-r", "cp866", "iso8859-5", "utf-16-le", "utf-8"),
    "uk": ("cp1251", "koi8-u", "cp1125", "iso8859-5", "utf-16-be", "utf-8"),
    "zh": ("gb18030", "gbk", "utf-16-le", "utf-32-le", "utf-8"),
}
CUTS = (0, 60, 24)
BAR = 0.99


def main() -> int:
    """Print a line per language and encoding; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sentences", type=int, default=200, help="per language")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chosen = random.Random(arguments.seed)
    right, total = 0, 0
    print("language encoding    n  whole  60 bytes  24 bytes")
    for language, encodings in ENCODINGS.items():
        lines = (arguments.folder / f"corpus_{language}.jsonl").read_text("utf-8").splitlines()
        texts = [json.loads(line)["text"] for line in lines]
        texts = chosen.sample(texts, min(arguments.sentences, len(texts)))
        for encoding in encodings:
            counts = [sum(_survives(text, encoding, cut) for text in texts) for cut in CUTS]
            shown = "  ".join(f"{count / len(texts):8.1%}" for count in counts)
            print(f"{language:8} {encoding:10} {len(texts):4} {shown}")
            right, total = right + counts[0], total + len(texts)
    print(f"whole sentences: {right} of {total}")
    return 0 if right >= BAR * total else 1


def _survives(text: str, encoding: str, cut: int) -> bool:
    raw = text.encode(encoding, "ignore")
    if cut:
        raw = raw[:cut].decode(encoding, "ignore").encode(encoding)
    try:
        return decode(raw, ".txt") == raw.decode(encoding)
    except DocumentError:
        return False


if __name__ == "__main__":
    sys.exit(main())
