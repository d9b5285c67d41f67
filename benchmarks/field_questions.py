"""Ask for fields of made-up works, in four languages and six formats, without a language model.

    python -m benchmarks.field_questions [--seed 11] [--each 3] [--show]

Every name is made up from the seed, so that nothing can be made to fit. A question is answered
`right` when the wanted value is in the answer and only the right work is cited, else `wrong` or
`refused`. Unanswerable ones ask for a field that the file of a work lacks (`missing`), of a work
that differs in one word from one there is (`near`), or of no work at all (`unknown`); right is to
refuse. Questions in another language than the work's are `across`. Names are new with each seed,
wordings are not: they were known when the rules were written. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.session import Session
from benchmarks.field_library import CARRIED, FIELDS, Work, invented, made_up, write
from benchmarks.field_wordings import QUESTIONS
from core.auth import AuthContext
from core.settings import load_settings
from ingest.pipeline import Pipeline

AUTH = AuthContext(tenant="fields", user="fields")
COLLECTION = "made-up"
RIGHT, WRONG, REFUSED = "right", "wrong", "refused"


@dataclass(frozen=True)
class Question:
    """Hold a question with the value that answers it, "" for none, and what it is to try."""

    text: str
    kind: str
    field: str
    work: Work
    value: str
    later: bool


def questions(draw: random.Random, works: Sequence[Work]) -> list[Question]:
    """Return questions with an answer, and without one, of every work."""
    found = []
    for work in works:
        said = list(work.said)
        lacking = [name for name in CARRIED[work.format] if name not in work.said]
        if said:
            found.append(_question(draw, work, "own", draw.choice(said), work.title))
            found.append(_question(draw, work, "across", draw.choice(said), work.title))
            found.append(_question(draw, work, "near", draw.choice(said), work.near))
        if lacking:
            found.append(_question(draw, work, "missing", draw.choice(lacking), work.title))
        title = invented(draw, work.language)
        found.append(_question(draw, work, "unknown", draw.choice(FIELDS), title))
    return found


def _question(draw: random.Random, work: Work, kind: str, name: str, title: str) -> Question:
    others = [language for language in QUESTIONS if language != work.language]
    language = draw.choice(others) if kind == "across" else work.language
    wordings = QUESTIONS[language][name]
    place = draw.randrange(len(wordings))
    value = work.said[name] if kind in ("own", "across") else ""
    text = wordings[place].format(t=title)
    return Question(text, kind, name, work, value, place >= len(wordings) / 2)


def ask(session: Session, question: Question) -> tuple[str, str]:
    """Return how a question went, and what was answered."""
    result = session.ask(question.text, AUTH, COLLECTION).result
    if result["refused"]:
        return (REFUSED if question.value else RIGHT), ""
    answer = " | ".join(claim["text"] for claim in result["claims"])
    cited = [one for claim in result["claims"] for one in claim["citations"]]
    said = " ".join([answer, *(one["quote"] for one in cited)])
    titles = {item["document_id"]: item["title"] for item in result["evidence"]}
    only = {titles[one["document_id"]] for one in cited} == {question.work.title}
    if question.value and question.value in said and only:
        return RIGHT, answer
    return WRONG, answer


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--each", type=int, default=3, help="works per language and format")
    parser.add_argument("--show", action="store_true", help="what did not go right, to stderr")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    works = made_up(draw, given.each)
    asked = questions(draw, works)
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write(works, Path(folder) / "library")
        settings, _ = load_settings({"reasoner": "rules", "data": Path(folder) / "data"})
        with Session(settings, create=True, needs_embedder=True) as session:
            assert session.embedder is not None
            target = session.store.intake.open_collection(AUTH.tenant, COLLECTION, None)
            pipeline = Pipeline(
                session.store, session.embedder, settings, target, second=session.second
            )
            summary = pipeline.run([Path(folder) / "library"])
            for failure in [*summary.failed, *summary.left_out]:
                sys.stderr.write(f"{failure.path}: {failure.reason}\n")
            for question in asked:
                outcome, answer = ask(session, question)
                work = question.work
                named = f"{question.kind} {question.field} {work.language} {work.format}"
                if given.show and outcome != RIGHT:
                    sys.stderr.write(f"{outcome} {named}: {question.text} → {answer}\n")
                kept = "later" if question.later else "earlier"
                answerable = "answerable" if question.value else "unanswerable"
                groups = [question.kind, f"{answerable} {kept}", answerable]
                groups += [f"{answerable} {name}" for name in (work.language, work.format)]
                for group in groups:
                    counts.setdefault(group, Counter())[outcome] += 1
    shown = {name: dict(count) for name, count in sorted(counts.items())}
    sys.stdout.write(json.dumps({"n": len(asked), **shown}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
