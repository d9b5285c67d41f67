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
import csv
import json
import random
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import yaml

from app.session import Session
from benchmarks.field_wordings import (
    ENDINGS,
    FIRST,
    HOUSES,
    LABELS,
    QUALITIES,
    QUESTIONS,
    SYLLABLES,
    TEXT,
    THINGS,
    TITLE,
)
from core.auth import AuthContext
from core.settings import load_settings
from ingest.pipeline import Pipeline

FIELDS = ("author", "publisher", "year", "language", "isbn", "pages", "translator", "series")
PRESENT = 0.65  # of the works have any one field
CARRIED = {
    "csv": FIELDS,
    "jsonl": FIELDS,
    "marc": ("author", "publisher", "year", "language", "isbn", "pages", "series"),
    "epub": ("author", "publisher", "year", "language", "isbn"),
    "docx": ("author", "language"),
    "md": FIELDS,
}
MARC_LANGUAGES = {"en": "eng", "ru": "rus", "uk": "ukr", "zh": "chi"}
OPF = """<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">
<metadata>{described}</metadata><manifest><item id="c" href="c.xhtml"
 media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>"""
CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="book.opf"/></rootfiles></container>"""


@dataclass(frozen=True)
class Work:
    """Hold a made-up work: its language, format, title, what its file says of it, its text."""

    language: str
    format: str
    title: str
    near: str
    said: dict[str, str] = field(default_factory=dict)
    text: Sequence[str] = ()


def made_up(draw: random.Random, each: int) -> list[Work]:
    """Return `each` works per language and format; no two have a title in common."""
    works: list[Work] = []
    titles: set[str] = set()
    for language in FIRST:
        for kind in CARRIED:
            for _ in range(each):
                title, near, name = _titles(draw, language, titles)
                said = {
                    one: _value(draw, language, one)
                    for one in CARRIED[kind]
                    if draw.random() < PRESENT
                }
                text = [
                    line.format(name=name, person=_person(draw, language))
                    for line in TEXT[language]
                ]
                works.append(Work(language, kind, title, near, said, text))
    return works


def invented(draw: random.Random, language: str) -> str:
    """Return a title that no work has, nor any of its rare words."""
    return _titles(draw, language, set(), syllables=4)[0]


def _titles(
    draw: random.Random, language: str, taken: set[str], syllables: int = 3
) -> tuple[str, str, str]:
    """Return a title, another that differs in one word, and the made-up name in them."""
    while True:
        name = "".join(draw.sample(SYLLABLES[language], syllables)).capitalize()
        quality = draw.choice(QUALITIES[language])
        thing, other = draw.sample(THINGS[language], 2)
        made = [TITLE[language].format(quality=quality, thing=t, name=name) for t in (thing, other)]
        if not taken & set(made):
            taken |= set(made)
            return made[0], made[1], name


def _person(draw: random.Random, language: str) -> str:
    first, syllables = draw.choice(FIRST[language]), SYLLABLES[language]
    if language == "zh":
        return first + "".join(draw.sample(syllables, 2))
    surname = "".join(draw.sample(syllables, 2)) + draw.choice(ENDINGS[language])
    return f"{first} {surname.capitalize()}"


def _value(draw: random.Random, language: str, name: str) -> str:
    if name in ("author", "translator"):
        return _person(draw, language)
    made = "".join(draw.sample(SYLLABLES[language], 2)).capitalize()
    return {
        "publisher": f"{made} {draw.choice(HOUSES[language])}",
        "series": f"{made} {draw.randint(2, 40)}",
        "year": str(draw.randint(1801, 2024)),
        "language": language,
        "isbn": f"978{draw.randint(10**9, 10**10 - 1)}",
        "pages": str(draw.randint(60, 990)),
    }[name]


def write(works: Sequence[Work], folder: Path) -> None:
    """Write the works below a folder, each in the format it is meant for."""
    folder.mkdir(parents=True, exist_ok=True)
    for language in FIRST:
        mine = [work for work in works if work.language == language]
        of = {kind: [work for work in mine if work.format == kind] for kind in CARRIED}
        _csv(of["csv"], folder / f"table-{language}.csv", language)
        _jsonl(of["jsonl"], folder / f"records-{language}.jsonl")
        _marc(of["marc"], folder / f"catalogue-{language}.mrc")
        single: dict[str, Callable[[Work, Path], None]] = {
            "epub": _epub, "docx": _docx, "md": _markdown,
        }  # fmt: skip
        for kind, writer in single.items():
            for number, work in enumerate(of[kind]):
                writer(work, folder / f"{language}{number}.{kind}")


def _csv(works: Sequence[Work], path: Path, language: str) -> None:
    labels = LABELS[language]
    with path.open("w", encoding="utf-8", newline="") as handle:
        rows = csv.DictWriter(handle, ["id", *(labels[name] for name in ("title", *FIELDS))])
        rows.writeheader()
        for number, work in enumerate(works):
            said = {labels[name]: value for name, value in work.said.items()}
            rows.writerow({"id": f"{language}{number}", labels["title"]: work.title, **said})


def _jsonl(works: Sequence[Work], path: Path) -> None:
    rows = [
        {"id": f"{path.stem}-{number}", "title": work.title, **work.said, "notes": work.text[1]}
        for number, work in enumerate(works)
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_text(lines, encoding="utf-8")


def _marc(works: Sequence[Work], path: Path) -> None:
    from pymarc import Field, Indicators, Record, Subfield

    places = {"author": ("100", "a"), "isbn": ("020", "a"), "series": ("490", "a")}
    with path.open("wb") as handle:
        for number, work in enumerate(works):
            record = Record(force_utf8=True)
            fields = [Field(tag="001", data=f"{path.stem}{number}")]
            pairs = [("245", [("a", work.title)])]
            pairs += [(tag, [(code, work.said[name])])
                      for name, (tag, code) in places.items() if name in work.said]  # fmt: skip
            imprint = [(code, work.said[name])
                       for name, code in (("publisher", "b"), ("year", "c"))
                       if name in work.said]  # fmt: skip
            pairs += [("260", imprint)] if imprint else []
            if "pages" in work.said:
                pairs.append(("300", [("a", f"{work.said['pages']} p.")]))
            if "language" in work.said:
                pairs.append(("041", [("a", MARC_LANGUAGES[work.said["language"]])]))
            for tag, subfields in pairs:
                parts = [Subfield(code, value) for code, value in subfields]
                fields.append(Field(tag=tag, indicators=Indicators(" ", " "), subfields=parts))
            record.add_field(*fields)  # type: ignore[no-untyped-call]
            handle.write(record.as_marc())


def _epub(work: Work, path: Path) -> None:
    names = {"author": "creator", "publisher": "publisher", "year": "date", "language": "language"}
    said = [("title", work.title), *((names[k], v) for k, v in work.said.items() if k in names)]
    said += [("identifier", f"urn:isbn:{work.said['isbn']}")] if "isbn" in work.said else []
    described = "".join(f"<dc:{name}>{escape(value)}</dc:{name}>" for name, value in said)
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in work.text)
    page = f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{paragraphs}</body></html>'
    with zipfile.ZipFile(path, "w") as container:
        container.writestr("mimetype", "application/epub+zip")
        container.writestr("META-INF/container.xml", CONTAINER)
        container.writestr("book.opf", OPF.format(described=described))
        container.writestr("c.xhtml", page)


def _docx(work: Work, path: Path) -> None:
    import docx

    document = docx.Document()
    document.core_properties.title = work.title
    document.core_properties.author = work.said.get("author", "")
    document.core_properties.language = work.said.get("language", "")
    for line in work.text:
        document.add_paragraph(line)
    document.save(str(path))


def _markdown(work: Work, path: Path) -> None:
    front = yaml.safe_dump({"title": work.title, **work.said}, allow_unicode=True)
    path.write_text(f"---\n{front}---\n\n" + "\n\n".join(work.text) + "\n", encoding="utf-8")


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
