"""Measure the library catalogue: whether a book's record and texts should vote as one, and speed.

    python -m benchmarks.catalogue books DATASET_DIR [--limit N]
    python -m benchmarks.catalogue scale [--records N]

`books`: each document of DATASET_DIR (corpus.jsonl, queries.jsonl, qrels.tsv) is a full text with a
record whose annotation is its first 900 characters; the classic pipeline is asked with and without
`classic_books`. Exit code 1: with it, fewer questions elect the right book.

`scale`: records without vectors are written to a catalogue, 1, 4 and 16 times as many; printed are
seconds and peak memory of arranging (prints, repeats, links) and of the quality report, each in a
process of its own. Exit code 1: memory grows by more than a quarter.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from core.auth import AuthContext
from core.cache import local_cache
from core.language.detect import detect_language
from core.profile import load_profile
from core.settings import load_settings
from evals.dataset import read_dataset
from ingest.arrange import arrange
from ingest.pipeline import Pipeline
from ingest.quality.report import quality_report
from models.embeddings import CachedEmbedder
from models.loading import open_embedder
from retrievers.pipelines import CLASSIC_VOTERS, classic_search
from retrievers.types import Index, Query
from stores.sqlite.files import Changes
from stores.sqlite.permissions import OPERATOR
from stores.sqlite.rows import ChunkRow, DocumentRow
from stores.store import Store, parts

ANNOTATION = 900
AUTH = AuthContext(tenant="benchmark")
REMEMBERED = 20_000
GROWTH = 1.25
WORDS = "river stone light garden winter letter engine harbour music glass forest road".split()


def main() -> int:
    """Run one measurement; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    books = commands.add_parser("books")
    books.add_argument("dataset", type=Path)
    books.add_argument("--limit", type=int, default=30, help="documents that are taken")
    scale = commands.add_parser("scale")
    scale.add_argument("--records", type=int, default=2000, help="records of the smallest run")
    scale.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.command == "books":
        return measure_books(given.dataset, given.limit)
    return measure_one(given.records) if given.one else measure_scale(given.records)


def measure_books(folder: Path, limit: int) -> int:
    """Compare the classic pipeline with and without the votes of whole books."""
    dataset = read_dataset(folder)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        taken = _write_library(folder, place / "library", limit)
        profile = load_profile("library")
        settings, _ = load_settings({"data": place / "data"}, profile.settings)
        embedder = CachedEmbedder(open_embedder(settings), local_cache("embeddings", REMEMBERED))
        with Store(settings, embedder.model_id, create=True) as store:
            collection = store.intake.open_collection(AUTH.tenant, "books", profile)
            summary = Pipeline(store, open_embedder(settings), settings, collection).run(
                [place / "library"]
            )
            print(f"{summary.documents} documents, {summary.chunks} chunks")
            right = {True: 0, False: 0}
            only = {True: 0, False: 0}
            asked = 0
            for query in dataset.queries:
                wanted = {name for name, grade in query.grades.items() if grade > 0} & taken
                if not wanted:
                    continue
                asked += 1
                hit = {}
                for whole in (True, False):
                    changed = settings.model_copy(update={"classic_books": whole})
                    index = Index(store, collection, embedder, changed)
                    hit[whole] = _elected(index, query.text) in wanted
                    right[whole] += hit[whole]
                only[True] += hit[True] and not hit[False]
                only[False] += hit[False] and not hit[True]
    print(f"{'':24}{'right book':>12}{'only so':>10}")
    for whole, title in ((True, "votes of whole books"), (False, "votes of documents")):
        print(f"{title:24}{right[whole] / max(1, asked):>12.3f}{only[whole]:>10}")
    print(f"n = {asked} questions about {len(taken)} books")
    return int(right[True] < right[False])


def _elected(index: Index, text: str) -> str:
    query = Query(text, AUTH, language=detect_language(text))
    found = classic_search(index, query, CLASSIC_VOTERS, index.settings.retrieval.top_k)
    name = found.evidence[0].document_id if found.evidence else ""
    return name.removeprefix("texts/").removesuffix(".txt")


def _write_library(dataset: Path, folder: Path, limit: int) -> set[str]:
    (folder / "texts").mkdir(parents=True)
    taken: set[str] = set()
    with (
        (dataset / "corpus.jsonl").open(encoding="utf-8") as corpus,
        (folder / "records.jsonl").open("w", encoding="utf-8") as records,
    ):
        for line in corpus:
            if len(taken) == limit:
                break
            found = json.loads(line)
            name, text = str(found["_id"]), found["text"]
            taken.add(name)
            (folder / "texts" / f"{name}.txt").write_text(text, encoding="utf-8")
            title = found.get("title") or " ".join(text.split()[:8])
            row = {"id": name, "title": title, "annotation": text[:ANNOTATION]}
            records.write(json.dumps(row) + "\n")
    return taken


def measure_scale(records: int) -> int:
    """Run 1, 4 and 16 times as many records, each in a process of its own."""
    titles = ("records", "chunks", "arrange s", "again s", "report s", "peak MB")
    print("".join(f"{title:>10}" for title in titles))
    peaks = []
    for times in (1, 4, 16):
        command = [sys.executable, "-m", "benchmarks.catalogue", "scale", "--one"]
        command += ["--records", str(records * times)]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(line, end="")
        peaks.append(float(line.split()[-1]))
    return int(peaks[-1] > GROWTH * peaks[0])


def measure_one(records: int) -> int:
    """Write so many records with a text each, arrange and report; print one line."""
    with tempfile.TemporaryDirectory() as temporary:
        changes = {"data": Path(temporary), "drop_repeats": True, "book_links": True}
        settings, _ = load_settings(changes)
        with Store(settings, "none", create=True) as store:
            collection = store.intake.open_collection("benchmark", "books", None)
            for start in range(0, records, 500):
                rows = [_record(n) for n in range(start, min(records, start + 500))]
                rows += [_text(n) for n in range(start, min(records, start + 500), 10)]
                store.intake.write_batch(collection, Changes(rows), OPERATOR)
            spent = []
            for work in (arrange, arrange, quality_report):
                started = time.perf_counter()
                work(store, collection, settings)
                spent.append(time.perf_counter() - started)
            count = (
                parts(store).database.read().execute("SELECT count(*) FROM chunks").fetchone()[0]
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{records:>10}{count:>10}" + "".join(f"{s:>10.2f}" for s in spent) + f"{peak:>10.0f}")
    return 0


def _prose(number: int, characters: int) -> str:
    words = [WORDS[(number * 7 + place * place) % len(WORDS)] for place in range(characters // 6)]
    return f"{' '.join(words).capitalize()} of {number}."


def _chunk(name: str, ordinal: int, text: str, kind: str) -> ChunkRow:
    return ChunkRow(
        chunk_id=f"{name}-{ordinal}",
        ordinal=ordinal,
        text=text,
        kind=kind,
        section="",
        page=None,
        tokens=len(text) // 4,
        content_hash=f"{name}-{ordinal}",
    )


def _document(name: str, number: int, chunks: list[ChunkRow], *, is_record: bool) -> DocumentRow:
    return DocumentRow(
        key=name,
        document_id=name,
        file="records.jsonl" if is_record else name,
        source=name,
        title=f"Book {number}",
        format="jsonl" if is_record else "text",
        language="en",
        is_record=is_record,
        version="",
        updated_at="",
        content_hash=name,
        metadata={"authors": [f"Author {number % 100}"], "year": 1900 + number % 100},
        fields=[("title", f"Book {number}", None)] if is_record else [],
        chunks=chunks,
    )


def _record(number: int) -> DocumentRow:
    name = f"book-{number}"
    same = number - number % 50  # of fifty records, two have one annotation
    text = _prose(same if number % 50 == 1 else number, ANNOTATION)
    chunks = [
        _chunk(name, 0, f"title: Book {number}", "record"),
        _chunk(name, 1, text, "annotation"),
    ]
    return _document(name, number, chunks, is_record=True)


def _text(number: int) -> DocumentRow:
    name = f"texts/book-{number}.txt"
    chunks = [
        _chunk(name, place, _prose(number + place, ANNOTATION), "text") for place in range(10)
    ]
    return _document(name, number, chunks, is_record=False)


if __name__ == "__main__":
    sys.exit(main())
