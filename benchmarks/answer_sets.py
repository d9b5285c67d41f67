"""The question sets that answers are measured on: which corpus, which questions, what is right.

A set is a folder in the BEIR layout, one that RGB writes in its own way, or typed questions over
several corpora (docs/evals/answers.md says how each is judged).
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from core.errors import CallerError
from core.profile import load_profile
from core.settings import Settings
from evals.answers import contains_answer
from evals.corpus import Corpus, build_corpus
from evals.dataset import Dataset, JudgedQuery, find_file, read_dataset, read_objects, read_queries

ANSWERABLE, UNANSWERABLE, FOREIGN, TYPED = "answerable", "unanswerable", "foreign", "typed"
LANGUAGES = {"xquad_ru": "ru", "xquad_zh": "zh", "cmrc2018_zh": "zh", "rgb_zh": "zh"}
# Questions of the second set over the corpus of the first, which cannot answer them.
FOREIGNERS = {"squad2": "hotpotqa_small", "xquad_ru": "rubq_ru", "xquad_zh": "cmrc2018_zh"}
RGB = {"rgb_en": "en_fact.jsonl", "rgb_zh": "zh_fact.jsonl"}
# The reader has learnt from the articles of these sets, but from one in so many.
READ = ("squad2", "xquad_en", "xquad_ru", "xquad_zh")
LEFT_OUT = 3
NOISE = "_noise"  # the passages that do not answer, alone
SETS = (
    *("squad2", "xquad_en", "xquad_ru", "xquad_zh", "cmrc2018_zh", "hotpotqa_small"),
    *("musique_small", "rgb_en", "rgb_en_noise", "rgb_zh", "rgb_zh_noise", "dragonball"),
)
# Of these sets longer gold answers are paraphrases of a passage, which containment cannot judge.
PARAPHRASED = ("dragonball",)
LONGEST_GOLD = 80
JUDGED_FILE = Path(__file__).with_name("typed_questions.jsonl")


@dataclass(frozen=True)
class Source:
    """Name what a corpus of typed questions is made of: the first `rows` lines, or files."""

    path: str
    rows: int | None = None
    files: tuple[str, ...] = ()
    profile: str | None = None


_JAX = (
    *("faq.rst", "installation.md", "glossary.rst", "gpu_memory_allocation.rst", "pytrees.md"),
    *("random-numbers.md", "jit-compilation.md", "key-concepts.md", "control-flow.md"),
    *("async_dispatch.rst", "api_compatibility.md", "deprecation.md", "default_dtypes.md"),
    *("device_memory_profiling.md", "persistent_compilation_cache.md", "transfer_guard.rst"),
    *("rank_promotion_warning.rst", "type_promotion.rst", "buffer_donation.md", "profiling.md"),
    *("gradient-checkpointing.md", "automatic-vectorization.md", "multi_process.md"),
    *("notebooks/Common_Gotchas_in_JAX.md", "jep/9263-typed-keys.md", "jep/25516-effver.md"),
    *("debugging/flags.md", "concurrency.rst", "aot.md"),
)
SOURCES = {
    **{
        f"fastapi_{code}": Source(f"fastapi_docs_parallel/corpus_{code}.jsonl")
        for code in ("en", "ru", "uk", "zh")
    },
    **{f"xquad_{code}": Source(f"xquad_{code}/corpus.jsonl") for code in ("en", "ru", "zh")},
    "squad2": Source("squad2/corpus.jsonl"),
    "jax": Source("jax_docs/files.tar.gz", files=tuple(f"docs/{name}" for name in _JAX)),
    "books": Source("books_described/books.jsonl.gz", rows=400, profile="library"),
    "novels": Source("goodbooks10k/books.jsonl", rows=300, profile="library"),
    "projects": Source("oss_projects/corpus.jsonl.gz", rows=400),
}


@dataclass(frozen=True)
class Question:
    """Hold one question, what `kind` of answer it expects and the `rule` of a typed one."""

    query: JudgedQuery
    kind: str
    language: str
    rule: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QuestionSet:
    """Hold the questions that are asked over one corpus."""

    name: str
    dataset: Dataset
    questions: list[Question]
    profile: str | None

    def build(self, settings: Settings) -> Corpus:
        """Ingest the corpus, or find it in the cache."""
        profile = load_profile(self.profile) if self.profile else None
        return build_corpus(self.dataset, settings, lambda stage, done, total: None, profile)


def is_left_out(title: str) -> bool:
    """Tell whether the reader has not learnt from questions about an article."""
    return zlib.crc32(title.encode()) % LEFT_OUT == 0


def read_set(name: str, data: Path, made: Path, limit: int, seed: int) -> QuestionSet:
    """Draw `limit` questions of each kind from a set; what must be written is put below `made`."""
    draw = random.Random(f"{seed} {name}")
    language = LANGUAGES.get(name.removesuffix(NOISE), "en")
    if name.removesuffix(NOISE) in RGB:
        dataset = _rgb(name, data, made)
    elif (data / name / "qrels.tsv").is_file():
        dataset = read_dataset(data / name, allow_missing=True, judged_only=False)
    else:
        raise CallerError(
            "the set must be in the data folder", value=name, hint=f"choose from {', '.join(SETS)}"
        )
    foreign = read_queries(data / FOREIGNERS[name]) if name in FOREIGNERS else []
    asked = dataset.queries
    if name in READ:
        titles = {row["_id"]: row["title"] for _, row in read_objects(dataset.corpus, "a document")}
        asked = [q for q in asked if is_left_out(titles[q.passage])]
    bare = [q for q in asked if q.type.casefold() == UNANSWERABLE]
    groups = {
        ANSWERABLE: [q for q in asked if q.relevant],
        UNANSWERABLE: [replace(q, grades={}, answers=()) for q in bare],
        FOREIGN: [replace(q, answers=()) for q in foreign],
    }
    longest = LONGEST_GOLD if name in PARAPHRASED else sys.maxsize
    questions = [
        Question(
            replace(q, answers=tuple(one for one in q.answers if len(one) <= longest)),
            kind,
            language,
        )
        for kind, found in groups.items()
        for q in draw.sample(found, min(limit, len(found)))
    ]
    return QuestionSet(name, dataset, questions, None)


def _rgb(name: str, data: Path, made: Path) -> Dataset:
    """Write the passages of all questions as one corpus; noise has none that holds the answer."""
    noise = name.endswith(NOISE)
    documents: list[dict[str, Any]] = []
    queries = []
    for _, row in read_objects(find_file(data / "rgb", RGB[name.removesuffix(NOISE)]), "RGB"):
        gold = row["answer"]
        while isinstance(gold[0], list):
            gold = gold[0]  # alternatives are a list within one
        gold = tuple(gold) if isinstance(gold, list) else (gold,)
        names = []
        for part in ("negative",) if noise else ("positive", "negative"):
            for number, text in enumerate(row[part]):
                if part == "negative" and contains_answer(gold, [text]):
                    continue  # some passages called noise do hold the answer
                documents.append({"_id": f"{row['id']}-{part}-{number}", "text": text})
                names += [documents[-1]["_id"]] * (part == "positive")
        query_id = f"{name}-{row['id']}"
        query = JudgedQuery(query_id, row["query"], dict.fromkeys(names, 1), answers=gold)
        queries.append(replace(query, type=UNANSWERABLE if noise else ""))
    path = _written(made / name / "corpus.jsonl", map(json.dumps, documents))
    return Dataset(name, path, frozenset(one["_id"] for one in documents), queries)


def read_typed(data: Path, made: Path, split: str | None, limit: int) -> list[QuestionSet]:
    """Read the typed questions, one set for each corpus; `split` is dev, test or None for both."""
    asked: dict[str, list[Question]] = {}
    for _, row in read_objects(JUDGED_FILE, '{"id": "t1", "question": "…"}'):
        if split in (None, split_of(row["id"])):
            query = JudgedQuery(row["id"], row["question"], type=row["type"])
            question = Question(query, TYPED, row["language"], row)
            asked.setdefault(row["corpus"], []).append(question)
    return [
        QuestionSet(name, _typed_corpus(name, data, made), questions[:limit], SOURCES[name].profile)
        for name, questions in asked.items()
    ]


def split_of(question_id: str) -> str:
    """Return dev or test, by a hash of the id alone."""
    return "test" if hashlib.sha256(question_id.encode()).digest()[0] % 2 else "dev"


def _typed_corpus(name: str, data: Path, made: Path) -> Dataset:
    source = SOURCES[name]
    path = find_file((data / source.path).parent, Path(source.path).name)
    if source.files:
        path = _zipped(path, made / f"{name}.zip", source.files)
    elif source.rows:
        rows = islice(read_objects(path, "a record"), source.rows)
        lines = (json.dumps(row, ensure_ascii=False) for _, row in rows)
        path = _written(made / f"{name}.jsonl", lines)
    return Dataset(name, path, frozenset(), [])


def _written(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _zipped(archive: Path, path: Path, names: Sequence[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as packed, zipfile.ZipFile(path, "w") as made:
        for name in names:
            member = packed.extractfile(name)
            assert member is not None, name
            # A fixed date, so that the same files make the same corpus.
            made.writestr(zipfile.ZipInfo(name), member.read())
    return path
