"""A corpus of any size for benchmarks, made from the sentences of the examples."""

from __future__ import annotations

import json
import random
from itertools import chain
from pathlib import Path

from core.language.analysis import content_terms
from core.language.sentences import sentence_spans
from ingest.discover import discover
from ingest.loaders.limits import LoadLimits
from ingest.sandbox.pool import Sandbox
from ingest.types import ParsedDocument
from ingest.usable import load

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
LIMITS = LoadLimits(
    max_file_mb=64, max_pages=100, max_characters=10_000_000, timeout_s=60, memory_mb=2048
)
SENTENCES_PER_DOCUMENT = 24


def example_sentences() -> list[str]:
    """Return the English sentences of the examples that are long enough to search for."""
    files, _ = discover([EXAMPLES / "library", EXAMPLES / "xpay"])
    found: list[str] = []
    with Sandbox() as sandbox:
        for item in chain.from_iterable(load(file, LIMITS, sandbox) for file in files):
            for block in item.blocks if isinstance(item, ParsedDocument) else ():
                spans = sentence_spans(block.text) if block.kind != "code" else []
                found += [block.text[start:end] for start, end in spans]
    kept = [text for text in dict.fromkeys(found) if text.isascii() and 50 < len(text) < 300]
    return sorted(kept)


def write_corpus(path: Path, chunks: int, seed: int = 7) -> list[str]:
    """Write a JSONL file of about so many chunks of 1,000 characters; return questions about it.

    Sentences are drawn at random and told apart by made-up names, so that words are as rare as in
    a real collection.
    """
    draw = random.Random(seed)
    sentences = example_sentences()
    documents = max(1, chunks // 3)
    questions: list[str] = []
    with path.open("w", encoding="utf-8") as handle:
        for number in range(documents):
            name = "".join(draw.choice("bdfgklmnprstvz") + draw.choice("aeiou") for _ in range(3))
            chosen = draw.sample(sentences, SENTENCES_PER_DOCUMENT)
            chosen[draw.randrange(len(chosen))] += f" The {name} section was revised."
            text = " ".join(chosen)
            title = " ".join(content_terms(chosen[0], "en")[:4])
            row = {"_id": f"doc-{number}", "title": f"{name.title()} {title}", "text": text}
            handle.write(json.dumps(row) + "\n")
            if number % max(1, documents // 30) == 0:
                questions.append(f"What is known about {' '.join(chosen[1].split()[:8])}?")
    return questions
