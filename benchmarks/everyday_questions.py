"""Ask everyday questions of documents in four languages, and judge what is cited.

`python -m benchmarks.everyday_questions [FILE | FOLDER] [--show]`: FILE holds small documents with
labelled sentences, those of each language one collection; FOLDER (as `document_questions` beside
this file) holds collections, each a folder of documents with a file of questions, which name the
lines that answer. A question is answered rightly where such a line is cited, a near miss, which
nothing answers, where it is refused. Where two documents contradict each other (`conflict`) the
contradiction must be shown, where they only seem to (`seeming`) both lines without one.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import carrel

FILE = Path(__file__).with_name("everyday_questions.jsonl")
PARTS = " › "  # between the headings of a title
LEAST = 8  # letters and digits of a quote that may be a part of a line


class Asked(NamedTuple):
    """Hold one question with the lines that answer it."""

    text: str
    golds: list[str]
    kind: str


def written(document: dict[str, Any]) -> str:
    """Return a document as Markdown."""
    headings = [f"{'#' * (n + 1)} {one}" for n, one in enumerate(document["title"].split(PARTS))]
    gap = "" if document["lang"] == "zh" else " "
    return "\n\n".join([*headings, gap.join(document["sentences"])])


def small_documents(file: Path, folder: Path) -> Iterator[tuple[Path, list[Asked]]]:
    """Write the documents of each language; yield where they are, and their questions."""
    documents = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for language in dict.fromkeys(one["lang"] for one in documents):
        source, asked = folder / language, []
        source.mkdir()
        for number, one in enumerate(documents):
            if one["lang"] == language:
                (source / f"{number}.md").write_text(written(one), encoding="utf-8")
                for each in one["questions"]:
                    golds = [one["sentences"][place] for place in each["answers"]]
                    asked.append(Asked(each["q"], golds, "answered" if golds else "near"))
        yield source, asked


def collections(folder: Path) -> Iterator[tuple[Path, list[Asked]]]:
    """Yield the collections of a folder with their questions."""
    for file in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        yield (
            file.with_suffix(""),
            [Asked(one["q"], [*one["gold"], *one.get("alt", [])], one["kind"]) for one in rows],
        )


def normal(text: str) -> str:
    """Return a text for comparing: its letters and digits."""
    return "".join(filter(str.isalnum, text.casefold()))


def judge(asked: Asked, answer: Any) -> str:  # noqa: ANN401 - an Answer or None
    """Tell what became of a question."""
    refused = answer is None or answer.refused
    if asked.kind == "near":
        return "near refused" if refused else "near answered"
    if refused:
        return f"{asked.kind} refused"
    quotes = [normal(cited.quote) for claim in answer.claims for cited in claim.citations]
    cited = [
        any(gold in one or (len(one) >= LEAST and one in gold) for one in quotes)
        for gold in map(normal, asked.golds)
    ]
    if asked.kind in ("conflict", "seeming"):
        shown = "as conflict" if answer.conflicts else "both" if all(cited) else "one side"
        return f"{asked.kind} {shown}"
    return "right" if any(cited) else "wrong"


def main() -> None:
    """Print what became of the questions of each collection."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, nargs="?", default=FILE)
    parser.add_argument("--show", action="store_true", help="print each question and its answer")
    given = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, carrel.Library(Path(folder, "data")) as library:
        read = collections if given.path.is_dir() else None
        found = read(given.path) if read else small_documents(given.path, Path(folder))
        for source, questions in found:
            library.ingest(source, collection=source.name)
            counts: Counter[str] = Counter()
            for asked in questions:
                answer = library.ask(asked.text, source.name).answer
                verdict = judge(asked, answer)
                counts[verdict] += 1
                if given.show:
                    print(f"{verdict:<16} {asked.text}\n    {answer.text if answer else ''}")
            print(source.name, dict(sorted(counts.items())), flush=True)
            total += counts
    print("all", dict(sorted(total.items())))


if __name__ == "__main__":
    main()
