"""Train the reader: which sentence of a passage answers a question, or that none does.

python scripts/train_reader.py pairs DATA MORE PAIRS [--keep N]
python scripts/train_reader.py train PAIRS WEIGHTS [--minutes 45] [--from WEIGHTS] [--all]
python scripts/train_reader.py export DATA
python scripts/train_reader.py mix EARLIER LATER WEIGHTS [--share 0.7]

`pairs` reads data sets in the BEIR layout (DATA) and files in the layout of SQuAD or SelQA (MORE;
docs/evals/reader.md names them; the end of a name is its language), and the passages beside this
file, whose sentences are labelled (QUESTIONS), cuts passages into windows and writes them as token
ids; `export` writes those of QUESTIONS that are for measuring in the BEIR layout. `train` needs
torch: it fine-tunes the upper layers of the embedded encoder over question and window together,
for a time, and writes models/reader.npz; `mix` writes the mean of two. Whole sets, the articles of
others that `is_for_measuring` names, and a fifth of the labelled passages are never trained on (but
for the latter with `--all`).
"""

from __future__ import annotations

import argparse
import json
import pickle
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import answer_sets
from core.language.chinese import segment
from core.language.cues import stopwords
from core.language.sentences import sentence_spans
from core.settings import load_settings
from evals.dataset import find_file, read_objects
from models.folder import EMBEDDED, PACKED, embedded_folder
from models.loading import open_embedder
from models.packed_embedder import HEADING, QUESTION
from models.packed_weights import PackedWeights, PieceTokenizer, export_pieces

DATA = ("squad2", "xquad_en", "xquad_ru", "xquad_zh", "cmrc2018_zh")
SELQA = ("selqa",)
PARALLEL = ("xquad_en", "xquad_ru", "xquad_zh")  # one question has one id in all of them
LEFT_OUT = ("cmrc2018_zh", "tydi_ru")  # whole sets are for measuring
QUESTIONS = Path(__file__).with_name("questions")
LABELLED = "asked_"  # sets that `export` writes
FIFTH = 5  # of their passages one in so many is for measuring
WITHOUT = 0.2  # share of their questions that are also asked of the passage without the answer
WINDOW = 170  # pieces of a passage
LONGEST = 4000  # characters of a passage
# Shares of the questions with an answer that are also asked of a text which has none: the nearest
# passage that does not hold it, their own without the sentences that do, other questions.
NEAR, CUT, ECHOED = 0.3, 0.15, 0.03
SWAPPED = 0.1  # of them are also asked with a name or number of their passage for another
ECHO = 5  # questions
NEAREST = 5
TRAINED = 8  # layers; the lower ones stay as they are (12 of 12 were a fifth slower, no better)
RATE, BATCH, WARM, SEED = 1.2e-4, 16, 80, 2
CELL, LINE = " | ", "\n"  # between the cells of a row and behind it
NUMBER = re.compile(r"\b\d{2,4}\b")
NAME = re.compile(r"(?<=[\w,] )(?:[^\W\d_a-zа-яё]\w+)(?: [^\W\d_a-zа-яё]\w+)*")
LETTERS, CHINESE = re.compile(r"[^\W\d_]{3,}"), re.compile(r"[\u3400-\u9fff]+")
# Words of the same kind: how near (cosine about the mean), how many, how often seen; chosen by eye.
SIBLING_FROM, SIBLING_TO, SIBLINGS, STEM = 0.3, 0.6, 12, 4
VOCABULARY, LEAST_SEEN = 9000, 3
EXCHANGED, READ_ALONE = 2, 0.5  # words of a question; share of passages alone
Span = tuple[int, int]


@dataclass
class Row:
    """Hold one question with a passage; `spans` are the answers in it, none for "no answer".

    `near` is what the window of one without an answer is cut around. Of `whole` ones sentences are
    labelled, so that an answer may stand anywhere in them.
    """

    name: str
    question: str
    title: str
    text: str
    spans: list[Span]
    id: str = ""
    near: list[Span] = field(default_factory=list)
    whole: bool = False
    left_out: bool = False


@dataclass
class Pair:
    """Hold the ids of a question and a window of its passage, the answers and sentences in it."""

    name: str
    left_out: bool
    ids: list[int]
    base: int
    spans: list[Span]
    sentences: list[Span]
    whole: bool = False


def is_for_measuring(name: str, title: str) -> bool:
    """Tell whether a question about an article is kept for measuring."""
    base = name.partition("/")[0]
    return base in LEFT_OUT or (base in DATA and answer_sets.is_left_out(title))


def language_of(name: str) -> str:
    """Return the language of a set, which its name ends with."""
    last = name.rpartition("_")[2]
    return last if last in ("ru", "uk", "zh") else "zh" if name == "drcd" else "en"


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
                text, spans = paragraph["context"], places(paragraph["context"], answers)
                if len(text) > LONGEST and spans:  # a whole article: what is around the answer
                    first = max(0, spans[0][0] - LONGEST // 2)
                    text = text[first : first + LONGEST]
                    spans = places(text, answers)
                if bool(spans) == bool(answers):
                    yield Row(name, asked["question"], title, text, spans)


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


def labelled_rows(path: Path) -> Iterator[Row]:
    """Read passages with labelled sentences: title, sentences, questions with their answers."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        one = json.loads(line)
        gap = "" if one["lang"] == "zh" else " "
        text, spans = "", []
        for sentence in one["sentences"]:
            spans.append((len(text), len(text) + len(sentence)))
            text += f"{sentence}{LINE if CELL in sentence else gap}"
        for asked in one["questions"]:
            answers = [spans[place] for place in asked["answers"]]
            row = Row(f"{path.stem}_{one['lang']}", asked["q"], one["title"], text, answers)
            yield replace(row, whole=True, left_out=number % FIFTH == FIFTH - 1)


def export(data: Path) -> None:
    """Write the labelled passages that are for measuring as one set for each language."""
    sets: dict[str, list[Row]] = {}
    for path in sorted(QUESTIONS.glob("*.jsonl")):
        for row in labelled_rows(path):
            if row.left_out:
                sets.setdefault(language_of(row.name), []).append(row)
    for language, rows in sets.items():
        folder = data / f"{LABELLED}{language}"
        folder.mkdir(parents=True, exist_ok=True)
        names = {text: f"p{n}" for n, text in enumerate(dict.fromkeys(row.text for row in rows))}
        titles = {row.text: row.title for row in rows}
        documents = [
            {"_id": name, "title": titles[text], "text": text} for text, name in names.items()
        ]
        queries, relevant = [], ["query-id\tcorpus-id\tscore"]
        for n, row in enumerate(rows):
            answers = [row.text[start:end] for start, end in row.spans]
            known = {
                "type": "extractive" if answers else "unanswerable",
                "answer": answers,
                "passage": names[row.text],
            }
            queries.append({"_id": f"q{n}", "text": row.question, "metadata": known})
            relevant += [f"q{n}\t{names[row.text]}\t1"] if answers else []
        for name, lines in (("corpus", documents), ("queries", queries)):
            written = "\n".join(json.dumps(one, ensure_ascii=False) for one in lines)
            (folder / f"{name}.jsonl").write_text(f"{written}\n", encoding="utf-8")
        (folder / "qrels.tsv").write_text("\n".join(relevant) + "\n", encoding="utf-8")


def without_answers(rows: list[Row], draw: random.Random) -> Iterator[Row]:
    """Ask questions of their passages without the sentences that answer them."""
    for row in rows:
        if row.spans and draw.random() < WITHOUT:
            text, edges = "", sorted([(0, 0), *row.spans, (len(row.text), len(row.text))])
            for (_, end), (start, _) in pairwise(edges):
                text += row.text[end:start]
            yield replace(row, name=f"{row.name}/none", text=text, spans=[])


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


def siblings_of(rows: list[Row], language: str) -> dict[str, list[str]]:
    """Return words of the same kind for the words of texts: near ones, of another stem.

    Near is what the embedder takes for near, but for the nearest, which are often synonyms.
    """
    texts = {row.text for row in rows} | {row.question for row in rows}
    counts = Counter(word for text in texts for word in set(words_of(text, language)))
    stops = stopwords(language)
    known = [
        word
        for word, count in counts.most_common(VOCABULARY)
        if count >= LEAST_SEEN and word.lower() not in stops
    ]
    embedder = open_embedder(load_settings({"reasoner": "rules", "embedder": "embedded"})[0])
    vectors = np.asarray(embedder.embed_documents(known), dtype=np.float32)
    vectors -= vectors.mean(axis=0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    forms = [_form_of(word, language) for word in known]
    stem = STEM if language != "zh" else 1
    found: dict[str, list[str]] = {}
    for number, word in enumerate(known):
        near = vectors @ vectors[number]
        found[word] = [
            known[other]
            for other in np.argsort(-near)[: 8 * SIBLINGS]
            if SIBLING_FROM <= near[other] <= SIBLING_TO
            and forms[other] == forms[number]
            and word[:stem].lower() != known[other][:stem].lower()
            and not (language == "zh" and set(word) & set(known[other]) == set(word))
        ][:SIBLINGS]
    return found


def words_of(text: str, language: str) -> list[str]:
    """Return the words of a text that may be exchanged."""
    if language == "zh":
        cut = (segment(run, "default") for run in CHINESE.findall(text))
        return [word for run in cut for word, _, _ in run if len(word) > 1]
    return LETTERS.findall(text)


def _form_of(word: str, language: str) -> tuple[Any, ...]:
    """Return what tells the grammatical form of a word, roughly."""
    if language == "zh":
        return (len(word),)
    if language == "en":
        return word[0].isupper(), word.endswith("s"), word.endswith("ed"), word.endswith("ing")
    return word[0].isupper(), word[-2:].lower()


def exchanged(
    row: Row, siblings: dict[str, list[str]], language: str, draw: random.Random
) -> Iterator[Row]:
    """Yield a row with a word changed for one of the same kind: asked, read, or both.

    Where both have the new word the answer stays; where one has it there is none. Without the
    former a text with an odd word would be taken for one without an answer.
    """
    answers = " ".join(row.text[start:end] for start, end in row.spans)
    text_words = set(words_of(row.text, language))
    usable = [
        word
        for word in dict.fromkeys(words_of(row.question, language))
        if word in text_words and siblings.get(word) and word not in answers
    ]
    draw.shuffle(usable)
    for word in usable[:EXCHANGED]:
        other = draw.choice(siblings[word])
        if other in row.text or other in row.question:
            continue
        edges = "" if language == "zh" else r"\b"
        pattern = re.compile(f"{edges}{re.escape(word)}{edges}")
        question = pattern.sub(other, row.question)
        grown = len(other) - len(word)
        starts = [one.start() for one in pattern.finditer(row.text)]
        spans = [
            tuple(place + grown * sum(at < place for at in starts) for place in span)
            for span in row.spans
        ]
        changed = {"text": pattern.sub(other, row.text), "title": pattern.sub(other, row.title)}
        asked = {"question": question, "spans": [], "near": row.spans}
        yield replace(row, name=f"{row.name}/asked", **asked)
        if draw.random() < READ_ALONE:
            yield replace(row, name=f"{row.name}/read", spans=[], near=spans, **changed)
        yield replace(row, name=f"{row.name}/both", **{**asked, "spans": spans}, **changed)


def window_of(row: Row, tokenizer: PieceTokenizer, draw: random.Random) -> Pair | None:
    """Cut a passage to whole sentences around an answer, or around any sentence; None for none."""
    (pieces,) = tokenizer.encode_batch([row.text])
    ids, offsets = pieces.ids[1:-1], pieces.offsets[1:-1]

    def touched(start: int, end: int) -> Span | None:
        found = [n for n, (a, b) in enumerate(offsets) if a < end and b > start and b > a]
        return (found[0], found[-1] + 1) if found else None

    sentences = [place for one in sentence_spans(row.text) if (place := touched(*one))]
    answers = [place for one in row.spans if (place := touched(*one))]
    aims = answers or [place for one in row.near if (place := touched(*one))]
    around = [
        number
        for number, (first, last) in enumerate(sentences)
        if not aims or any(a < last and b > first for a, b in aims)
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
        row.left_out or is_for_measuring(row.name, row.title),
        [*before, *ids[first:last], 2],
        len(before),
        inside,
        [(a + shift, min(b, last) + shift) for a, b in sentences[low : high + 1]],
        row.whole,
    )


def write_pairs(data: Path, more: Path, target: Path, keep: int) -> None:
    """Write the windows of all sets, of the public ones at most so many to keep."""
    vocabulary = target.with_suffix(".model")
    export_pieces(PackedWeights(embedded_folder(EMBEDDED).path / PACKED), vocabulary)
    tokenizer, draw, made = PieceTokenizer(vocabulary, 100_000), random.Random(SEED), []
    sets = {name: list(beir_rows(data / name)) for name in DATA}
    for path in sorted(more.glob("*.json")):
        read = selqa_rows if path.stem in SELQA else squad_rows
        sets[path.stem] = list(read(path.stem, path))
    mixed = list(mix_languages(sets))
    for language in sorted({language_of(name) for name in sets}):
        own = {name: rows for name, rows in sets.items() if language_of(name) == language}
        siblings = siblings_of([row for rows in own.values() for row in rows], language)
        for rows in own.values():
            further = [
                one for row in rows if row.spans for one in exchanged(row, siblings, language, draw)
            ]
            none = [replace(one, name=f"{one.name}/none") for one in negatives(rows, draw)]
            made += pairs_of([*rows, *none, *further], tokenizer, draw)
            sys.stderr.write(f"{rows[0].name}: {len(rows)} rows, {len(further)} exchanged\n")
    made += pairs_of([*mixed, *negatives(mixed, draw)], tokenizer, draw)
    made = draw.sample(made, min(keep, len(made)))
    labelled: dict[str, list[Row]] = {}
    for path in sorted(QUESTIONS.glob("*.jsonl")):
        for row in labelled_rows(path):
            labelled.setdefault(language_of(row.name), []).append(row)
    for language, rows in labelled.items():
        made += pairs_of([*rows, *without_answers(rows, draw)], tokenizer, draw)
        sys.stderr.write(f"{language}: {len(rows)} rows\n")
    target.write_bytes(pickle.dumps(made))
    sys.stdout.write(f"{len(made)} pairs\n")


def pairs_of(rows: list[Row], tokenizer: PieceTokenizer, draw: random.Random) -> Iterator[Pair]:
    """Yield the windows of rows that have one."""
    for row in rows:
        pair = window_of(row, tokenizer, draw)
        if pair is not None:
            yield pair


def main() -> None:
    """Read the arguments and do what they say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["pairs", "train", "export", "mix"])
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--share", type=float, default=0.7, help="of the later weights")
    parser.add_argument("--keep", type=int, default=10**9, help="pairs of the public sets")
    parser.add_argument("--all", action="store_true", help="train on what is for measuring, too")
    parser.add_argument("--from", type=Path, dest="earlier", help="weights to go on from")
    given = parser.parse_args()
    if given.what == "pairs":
        write_pairs(*given.paths, given.keep)
    elif given.what == "export":
        export(*given.paths)
    elif given.what == "mix":
        from reader_network import mix

        earlier, later, target = given.paths
        mix(earlier, later, given.share, target)
    else:
        from reader_network import train

        path, weights = given.paths
        pairs = pickle.loads(path.read_bytes())
        if given.all:
            pairs = [one for one in pairs if one.whole or not one.left_out]
            pairs = [replace(one, left_out=False) for one in pairs]
        train(
            pairs,
            weights,
            given.minutes,
            time.monotonic(),
            given.earlier,
        )


if __name__ == "__main__":
    main()
