"""Train the reader: which sentence of a passage answers a question, or that none does.

python scripts/train_reader.py pairs DATA MORE PAIRS
python scripts/train_reader.py train PAIRS WEIGHTS [--minutes 45] [--from WEIGHTS]

`pairs` reads data sets in the BEIR layout (DATA) and files in the layout of SQuAD or SelQA (MORE;
docs/evals/reader.md names them), cuts passages into windows and writes them as token ids. `train`
needs torch: it fine-tunes the upper layers of the embedded encoder over question and window
together, for a time, and writes models/reader.npz. Whole sets, and of the others the articles that
`is_for_measuring` names, are never trained on.
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import answer_sets
from core.language.sentences import sentence_spans
from evals.dataset import find_file, read_objects
from models.embedded import EMBEDDED, PACKED, embedded_folder
from models.packed_embedder import HEADING, QUESTION
from models.packed_weights import PackedWeights, PieceTokenizer, export_pieces

DATA = ("squad2", "xquad_en", "xquad_ru", "xquad_zh", "cmrc2018_zh")
SQUAD = ("squad_train", "tydi_en", "tydi_ru", "drcd", "covid")
SELQA = ("selqa",)
PARALLEL = ("xquad_en", "xquad_ru", "xquad_zh")  # one question has one id in all of them
LEFT_OUT = ("cmrc2018_zh", "tydi_ru")  # whole sets are for measuring
USED = ("squad_train", "tydi_en", "drcd", "covid")  # whole sets are for training
WINDOW = 170  # pieces of a passage
# Shares of the questions with an answer that are also asked of a text which has none: the nearest
# passage that does not hold it, their own without the sentences that do, other questions.
NEAR, CUT, ECHOED = 0.3, 0.15, 0.03
SWAPPED = 0.1  # of them are also asked with a name or number of their passage for another
ECHO = 5  # questions
NEAREST = 5
TRAINED = 8  # layers; the lower ones stay as they are (12 of 12 were a fifth slower, no better)
RATE, BATCH, WARM, SEED = 1.2e-4, 16, 80, 2
NUMBER = re.compile(r"\b\d{2,4}\b")
NAME = re.compile(r"(?<=[\w,] )(?:[^\W\d_a-zа-яё]\w+)(?: [^\W\d_a-zа-яё]\w+)*")
Span = tuple[int, int]


@dataclass
class Row:
    """Hold one question with a passage; `spans` are the answers in it, none for "no answer"."""

    name: str
    question: str
    title: str
    text: str
    spans: list[Span]
    id: str = ""


@dataclass
class Pair:
    """Hold the ids of a question and a window of its passage, the answers and sentences in it."""

    name: str
    left_out: bool
    ids: list[int]
    base: int
    spans: list[Span]
    sentences: list[Span]


def is_for_measuring(name: str, title: str) -> bool:
    """Tell whether a question about an article is kept for measuring."""
    return name in LEFT_OUT or (name not in USED and answer_sets.is_left_out(title))


def places(text: str, answers: list[str]) -> list[Span]:
    """Return where answers first stand in a text."""
    found = [(text.find(one), one) for one in answers]
    return [(start, start + len(one)) for start, one in found if start >= 0]


def beir_rows(folder: Path) -> Iterator[Row]:
    """Read a set whose queries name their passage and answers."""
    corpus = find_file(folder, "corpus.jsonl", "corpus.jsonl.gz")
    passages = {one["_id"]: one for _, one in read_objects(corpus, "a document")}
    queries = find_file(folder, "queries.jsonl", "queries.jsonl.gz")
    for _, query in read_objects(queries, "a query"):
        known = query["metadata"]
        passage = passages.get(known.get("passage"))
        answers = known.get("answer") or []
        answers = [answers] if isinstance(answers, str) else answers
        if passage is None:
            continue
        spans = places(passage["text"], answers)
        if bool(spans) == bool(answers):
            read = passage["title"], passage["text"], spans, query["_id"]
            yield Row(folder.name, query["text"], *read)


def squad_rows(name: str, path: Path) -> Iterator[Row]:
    """Read a file in the layout of SQuAD."""
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        title = article.get("title", "").replace("_", " ")
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                answers = [one["text"] for one in asked.get("answers") or []]
                spans = places(paragraph["context"], answers)
                if bool(spans) == bool(answers):
                    yield Row(name, asked["question"], title, paragraph["context"], spans)


def selqa_rows(name: str, path: Path) -> Iterator[Row]:
    """Read a file in the layout of SelQA: sentences, and which of them answer."""
    for one in json.loads(path.read_text(encoding="utf-8")):
        text, spans = "", []
        for number, sentence in enumerate(one["candidates"]):
            if number in one["answers"]:
                spans.append((len(text), len(text) + len(sentence)))
            text += f"{sentence} "
        if spans:
            yield Row(name, one["question"], one["article"], text.strip(), spans)


def mix_languages(sets: dict[str, list[Row]]) -> Iterator[Row]:
    """Ask the questions of parallel sets of the passages in the other languages."""
    for asked in PARALLEL:
        known = {row.id: row for row in sets[asked]}
        for told in PARALLEL:
            for row in sets[told]:
                if told != asked and row.id in known:
                    yield replace(row, question=known[row.id].question)


def negatives(rows: list[Row], draw: random.Random) -> Iterator[Row]:
    """Ask questions of texts that do not answer them."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = list({(row.title, row.text): None for row in rows})
    chinese = rows[0].name.endswith("zh") or rows[0].name == "drcd"
    kind: dict[str, Any] = (
        {"analyzer": "char", "ngram_range": (1, 2)} if chinese else {"analyzer": "word"}
    )
    vectorizer = TfidfVectorizer(sublinear_tf=True, **kind)
    held = vectorizer.fit_transform([f"{title} {text}" for title, text in texts])
    for number, row in enumerate(rows):
        if not row.spans:
            continue
        if draw.random() < NEAR:
            scores = (vectorizer.transform([row.question]) @ held.T).toarray()[0]
            golds = [row.text[start:end].casefold() for start, end in row.spans]
            near = [texts[place] for place in np.argsort(-scores)[:NEAREST]]
            other = [one for one in near if not any(gold in one[1].casefold() for gold in golds)]
            if other:
                yield Row(row.name, row.question, *other[0], [])
        if draw.random() < CUT:
            kept = [
                row.text[start:end]
                for start, end in sentence_spans(row.text)
                if not any(a < end and b > start for a, b in row.spans)
            ]
            if kept:
                yield replace(row, text=("" if chinese else " ").join(kept), spans=[])
        if draw.random() < ECHOED:
            others = [one.question for one in rows[max(0, number - ECHO) : number + 1]]
            draw.shuffle(others)
            yield replace(row, text=" ".join(others), spans=[])
        swapped = swap(row, draw) if draw.random() < SWAPPED else None
        if swapped:
            yield replace(row, question=swapped, spans=[])


def swap(row: Row, draw: random.Random) -> str | None:
    """Return the question with a name or number of its passage in place of its own, or None."""
    answers = " ".join(row.text[start:end] for start, end in row.spans)
    for pattern in (NUMBER, NAME):
        asked = [one for one in pattern.findall(row.question) if one in row.text]
        others = [
            one
            for one in pattern.findall(row.text)
            if one not in row.question and one not in answers and one not in row.title
        ]
        if asked and others:
            return row.question.replace(draw.choice(asked), draw.choice(others))
    return None


def window_of(row: Row, tokenizer: PieceTokenizer, draw: random.Random) -> Pair | None:
    """Cut a passage to whole sentences around an answer, or around any sentence; None for none."""
    (pieces,) = tokenizer.encode_batch([row.text])
    ids, offsets = pieces.ids[1:-1], pieces.offsets[1:-1]

    def touched(start: int, end: int) -> Span | None:
        found = [n for n, (a, b) in enumerate(offsets) if a < end and b > start and b > a]
        return (found[0], found[-1] + 1) if found else None

    sentences = [place for one in sentence_spans(row.text) if (place := touched(*one))]
    answers = [place for one in row.spans if (place := touched(*one))]
    around = [
        number
        for number, (first, last) in enumerate(sentences)
        if not row.spans or any(a < last and b > first for a, b in answers)
    ]
    if not around:
        return None
    low = high = draw.choice(around)
    while True:
        wider = [
            (a, b)
            for a, b in ((low - 1, high), (low, high + 1))
            if a >= 0 and b < len(sentences) and sentences[b][1] - sentences[a][0] <= WINDOW
        ]
        if not wider:
            break
        low, high = draw.choice(wider)
    first = sentences[low][0]
    last = min(sentences[high][1], first + WINDOW + HEADING)
    asked = tokenizer.encode_batch([f"query: {row.question}"])[0].ids[1:-1][:QUESTION]
    heading = tokenizer.encode_batch([f"passage: {row.title}"])[0].ids[1:-1][:HEADING]
    before = [0, *asked, 2, 2, *heading]
    shift = len(before) - first
    inside = [
        (max(a, first) + shift, min(b, last) + shift) for a, b in answers if a < last and b > first
    ]
    if row.spans and not inside:
        return None
    return Pair(
        row.name,
        is_for_measuring(row.name, row.title),
        [*before, *ids[first:last], 2],
        len(before),
        inside,
        [(a + shift, min(b, last) + shift) for a, b in sentences[low : high + 1]],
    )


def write_pairs(data: Path, more: Path, target: Path) -> None:
    """Write the windows of all sets."""
    vocabulary = target.with_suffix(".model")
    export_pieces(PackedWeights(embedded_folder(EMBEDDED).path / PACKED), vocabulary)
    tokenizer, draw, made = PieceTokenizer(vocabulary, 100_000), random.Random(SEED), []
    sets = {name: list(beir_rows(data / name)) for name in DATA}
    sets |= {name: list(squad_rows(name, more / f"{name}.json")) for name in SQUAD}
    sets |= {name: list(selqa_rows(name, more / f"{name}.json")) for name in SELQA}
    sets["mixed"] = list(mix_languages(sets))
    for rows in sets.values():
        for row in [*rows, *negatives(rows, draw)]:
            pair = window_of(row, tokenizer, draw)
            if pair is not None:
                made.append(pair)
    target.write_bytes(pickle.dumps(made))
    sys.stdout.write(f"{len(made)} pairs\n")


def main() -> None:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pairs", "train"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--from", type=Path, dest="earlier", help="weights to go on from")
    given = parser.parse_args()
    if given.what == "pairs":
        write_pairs(*given.paths)
    else:
        from reader_network import train

        pairs, weights = given.paths
        train(
            pickle.loads(pairs.read_bytes()),
            weights,
            given.minutes,
            time.monotonic(),
            given.earlier,
        )


if __name__ == "__main__":
    main()
