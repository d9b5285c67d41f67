"""Evidence as a table: grades, scores and where each passage stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.citations import place_of
from core.trace import StageStep
from core.types import Evidence
from display.html import (
    Markup,
    Span,
    bar,
    bullets,
    element,
    escaped,
    folded,
    joined,
    line,
    marked,
    opening,
    table,
)
from display.view import View

GRADES = ("off topic", "related", "partly answers", "answers")
EXCERPT = 160
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
    told = element("span", {"class": "where"}, escaped(f" {where}" if where else ""))
    short = line(item.text)
    whole = element("p", {}, escaped(item.text))
    text = (
        folded(f"{short[:EXCERPT]}…", whole, opened=False)
        if len(short) > EXCERPT
        else joined(opening("br"), escaped(short))
    )
    grade = element("span", {"class": "grade"}, escaped(grade_mark(item.grades)))
    by = element("span", {"title": channels}, escaped(item.tool))
    return [escaped(place), grade, score, joined(title, told, text), by]


def _line(place: int, item: Evidence) -> str:
    grade = grade_mark(item.grades)
    where = where_in(item)
    parts = [f"{place}. {name_of(item)}", where, grade, f"{item.score:.3f}"]
    return " · ".join(part for part in parts if part) + f"\n   {line(item.text)[:EXCERPT]}"
