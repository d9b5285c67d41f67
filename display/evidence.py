"""Answers with their citations, evidence as a table, and several searches beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.trace import StageStep
from core.types import (
    Answer,
    Citation,
    Claim,
    Evidence,
    citation_marks,
    gap_after,
    numbered_sources,
    place_of,
)
from display.html import (
    Markup,
    Span,
    View,
    bar,
    bullets,
    element,
    escaped,
    facts,
    folded,
    joined,
    line,
    marked,
    opening,
    table,
)

GRADES = ("off topic", "related", "partly answers", "answers")
EXCERPT = 160  # characters, about two lines; chosen by eye
NUMBERS = {"#"}


class EvidenceList(list[Evidence]):
    """A list of evidence, best first, that notebooks show as a table.

    `notes` say how it was searched for, `stages` what each stage of the search did.
    """

    def __init__(
        self,
        evidence: Iterable[Evidence] = (),
        *,
        notes: Sequence[str] = (),
        stages: Sequence[StageStep] = (),
    ) -> None:
        super().__init__(evidence)
        self.notes = list(notes)
        self.stages = list(stages)

    def __repr__(self) -> str:
        return evidence_view(self, self.notes).text


def evidence_view(evidence: Sequence[Evidence], notes: Sequence[str] = ()) -> View:
    """Show evidence in its order; a bar compares scores of the same tool and query alone."""
    if not evidence:
        nothing = element("p", {}, escaped("nothing found"))
        return View(
            joined(nothing, bullets(notes, "warnings")), "\n".join(["nothing found", *notes])
        )
    best = best_scores(evidence)
    rows = [_row(place, item, best) for place, item in enumerate(evidence, start=1)]
    titles = ["#", "grade", "score", "passage", "found by"]
    lines = [_line(place, item) for place, item in enumerate(evidence, start=1)]
    shown = joined(table(titles, rows, NUMBERS), bullets(notes, "warnings"))
    return View(shown, "\n".join([*lines, *notes]))


def best_scores(evidence: Iterable[Evidence]) -> dict[tuple[str, str], float]:
    """Return the best score of each call, by tool and query."""
    best: dict[tuple[str, str], float] = {}
    for item in evidence:
        key = (item.tool, item.query)
        best[key] = max(item.score, best.get(key, 0.0))
    return best


def grade_mark(grades: dict[str, int]) -> str:
    """Return the best grade as dots and a word, empty when nothing was graded."""
    if not grades:
        return ""
    best = max(0, min(len(GRADES) - 1, max(grades.values())))
    return f"{'●' * best}{'○' * (len(GRADES) - 1 - best)} {GRADES[best]}"


def name_of(item: Evidence) -> str:
    """Return what a passage is from: its title, after that of its book where it has one."""
    own, work = line(item.title or item.source), line(item.work.get("title") or "")
    return own if work in own else f"{work} › {own}"


def where_in(item: Evidence) -> str:
    """Return the section and page of a passage; a heading that is the title is not repeated."""
    section = item.section.removeprefix(item.title).removeprefix(" › ")
    return place_of(line(section), item.page)


def passage(item: Evidence, spans: Iterable[Span], number: int | None = None) -> Markup:
    """Return one passage with these spans of its text marked, under its title and place."""
    name = f"[{number}] " if number is not None else ""
    where = where_in(item)
    place = " · ".join(part for part in (where, item.source, grade_mark(item.grades)) if part)
    head = element(
        "header",
        {},
        element("strong", {}, escaped(f"{name}{name_of(item)}")),
        escaped(" "),
        element("span", {"class": "where"}, escaped(place)),
    )
    return element(
        "article", {"class": "passage"}, head, element("p", {}, marked(item.text, spans))
    )


def _row(place: int, item: Evidence, best: dict[tuple[str, str], float]) -> list[Markup]:
    top = best[item.tool, item.query]
    score = bar(item.score / top if top > 0 else 0.0, f"{item.score:.2f}")
    channels = ", ".join(f"{name} {value:.2f}" for name, value in item.scores.items())
    where = where_in(item)
    title = element("strong", {}, escaped(name_of(item)))
    location = element("span", {"class": "where"}, escaped(f" {where}" if where else ""))
    short = line(item.text)
    full = element("p", {}, escaped(item.text))
    text = (
        folded(f"{short[:EXCERPT]}…", full, opened=False)
        if len(short) > EXCERPT
        else joined(opening("br"), escaped(short))
    )
    grade = element("span", {"class": "grade"}, escaped(grade_mark(item.grades)))
    by = element("span", {"title": channels}, escaped(item.tool))
    return [escaped(place), grade, score, joined(title, location, text), by]


def _line(place: int, item: Evidence) -> str:
    grade = grade_mark(item.grades)
    where = where_in(item)
    parts = [f"{place}. {name_of(item)}", where, grade, f"{item.score:.3f}"]
    return " · ".join(part for part in parts if part) + f"\n   {line(item.text)[:EXCERPT]}"


def answer_view(answer: Answer) -> View:
    """Show an answer with what it cites; the passages around it are in the run's evidence."""
    body = joined(
        answer_text(answer),
        *cited_passages(answer.claims, {}),
        facts([("stopped:", answer.stop_reason.value)]),
        bullets(answer.warnings, "warnings"),
    )
    return View(body, "\n".join([answer.text, *source_lines(answer.claims)]))


def answer_text(answer: Answer) -> Markup:
    """Return the text; only the marks that its claims carry become citation marks.

    The same characters in a document's own words stay text.
    """
    numbers = numbered_sources(answer.claims)
    quotes = _quotes(answer.claims, numbers)
    parts: list[Markup] = []
    place = 0
    for claim in answer.claims:
        spoken = f"{claim.text}{gap_after(claim.text)}"
        marks = citation_marks(claim, numbers)
        found = answer.text.find(spoken + marks, place)
        if found < 0:
            continue
        end = found + len(spoken)
        parts.append(escaped(answer.text[place:end]))
        for number in dict.fromkeys(numbers[one.chunk_id] for one in claim.citations):
            attributes = {"class": "cite", "title": quotes[number]}
            parts.append(element("sup", attributes, escaped(f"[{number}]")))
        place = end + len(marks)
    if not answer.text:
        return element("p", {"class": "answer refused"}, escaped("There is no answer."))
    kind = "answer refused" if answer.refused else "answer"
    return element("p", {"class": kind}, *parts, escaped(answer.text[place:]))


def cited_passages(claims: Sequence[Claim], evidence: Mapping[str, Evidence]) -> list[Markup]:
    """Return every cited passage in the order of its number, cited characters marked.

    `evidence` is by chunk id; what is not in it is shown by its quotes.
    """
    numbers = numbered_sources(claims)
    by_chunk: dict[str, list[Citation]] = {name: [] for name in numbers}
    for claim in claims:
        for citation in claim.citations:
            by_chunk[citation.chunk_id].append(citation)
    made: list[Markup] = []
    for chunk, number in numbers.items():
        cited = by_chunk[chunk]
        item = evidence.get(chunk)
        if item is not None:
            spans = [(one.start, one.end) for one in cited]
            made.append(passage(item, spans, number))
        else:
            made.append(_quoted(number, cited))
    return made


def source_lines(claims: Sequence[Claim]) -> list[str]:
    """Return a line for every numbered source."""
    sources = {one.chunk_id: one.source for claim in claims for one in claim.citations}
    return [f"[{number}] {sources[key]}" for key, number in numbered_sources(claims).items()]


def _quoted(number: int, cited: Sequence[Citation]) -> Markup:
    source = line(cited[0].source)
    head = element("header", {}, element("strong", {}, escaped(f"[{number}] {source}")))
    quotes = dict.fromkeys(one.quote for one in cited)
    lines = [element("p", {}, element("mark", {}, escaped(quote))) for quote in quotes]
    return element("article", {"class": "passage"}, head, *lines)


def _quotes(claims: Sequence[Claim], numbers: dict[str, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for claim in claims:
        for one in claim.citations:
            found.setdefault(numbers[one.chunk_id], f"{line(one.source)}: “{line(one.quote)}”")
    return found


COMPARED_EXCERPT = 90  # characters, one line of a column; chosen by eye
ABSENT = "–"


def compared(searches: Mapping[str, Sequence[Evidence]], shown: int = 10) -> View:
    """Show the place, from 1, that each search gives a passage, and its score there.

    Passages are in the order of the first search that found them; each search gives its best
    `shown`.
    """
    places = {
        name: {item.chunk_id: number for number, item in enumerate(found[:shown], start=1)}
        for name, found in searches.items()
    }
    items = {item.chunk_id: item for found in searches.values() for item in found[:shown]}
    order: dict[str, None] = {}
    for found in searches.values():
        order.update(dict.fromkeys(item.chunk_id for item in found[:shown]))
    scores = {
        name: {item.chunk_id: item.score for item in found} for name, found in searches.items()
    }
    rows = []
    lines = []
    for key in order:
        cells = [
            f"{places[name][key]}. ({scores[name][key]:.2f})" if key in places[name] else ABSENT
            for name in searches
        ]
        shorts = [element("span", {"class": "short"}, escaped(cell)) for cell in cells]
        rows.append([_named(items[key]), *shorts])
        found_at = ", ".join(f"{name} {cell}" for name, cell in zip(searches, cells, strict=True))
        lines.append(f"{line(items[key].title)}: {found_at}")
    return View(table(["passage", *searches], rows, set(searches)), "\n".join(lines))


def _named(item: Evidence) -> Markup:
    title = element("strong", {}, escaped(line(item.title or item.source)))
    where = element("span", {"class": "where"}, escaped(f" {where_in(item)}"))
    text = line(item.text)
    short = text if len(text) <= COMPARED_EXCERPT else f"{text[:COMPARED_EXCERPT]}…"
    return joined(title, where, opening("br"), escaped(short))
