"""Ask everyday questions of small documents in four languages, and judge what is cited.

`python -m benchmarks.everyday_questions [FILE] [--show]`: of each language the documents are one
collection. A question is answered rightly where a labelled sentence is cited; a near miss, which no
sentence answers, where it is refused.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import carrel

FILE = Path(__file__).with_name("everyday_questions.jsonl")
PARTS = " › "  # between the headings of a title


def written(document: dict[str, Any]) -> str:
    """Return a document as Markdown."""
    headings = [f"{'#' * (n + 1)} {one}" for n, one in enumerate(document["title"].split(PARTS))]
    gap = "" if document["lang"] == "zh" else " "
    return "\n\n".join([*headings, gap.join(document["sentences"])])


def judge(asked: dict[str, Any], sentences: list[str], answer: Any) -> str:  # noqa: ANN401
    """Tell whether an answer is right, wrong or refused, or a near miss answered or refused."""
    refused = answer is None or answer.refused
    if not asked["answers"]:
        return "near refused" if refused else "near answered"
    if refused:
        return "refused"
    quotes = " ".join(cited.quote for claim in answer.claims for cited in claim.citations)
    golds = ["".join(sentences[n].split()) for n in asked["answers"]]
    return "right" if any(gold in "".join(quotes.split()) for gold in golds) else "wrong"


def main() -> None:
    """Print what became of the questions of each language."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    parser.add_argument("--show", action="store_true", help="print each question and its answer")
    given = parser.parse_args()
    documents = [json.loads(line) for line in given.file.read_text(encoding="utf-8").splitlines()]
    with tempfile.TemporaryDirectory() as folder, carrel.Library(Path(folder, "data")) as library:
        for language in dict.fromkeys(one["lang"] for one in documents):
            own = [one for one in documents if one["lang"] == language]
            source = Path(folder, language)
            source.mkdir()
            for number, one in enumerate(own):
                (source / f"{number}.md").write_text(written(one), encoding="utf-8")
            library.ingest(source, collection=language)
            counts: Counter[str] = Counter()
            for one in own:
                for asked in one["questions"]:
                    answer = library.ask(asked["q"], language).answer
                    found = judge(asked, one["sentences"], answer)
                    counts[found] += 1
                    if given.show:
                        print(f"{found:<13} {asked['q']}\n    {answer.text if answer else ''}")
            print(language, dict(sorted(counts.items())), flush=True)


if __name__ == "__main__":
    main()
