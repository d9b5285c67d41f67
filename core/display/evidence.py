"""Evidence as a table: grades, scores and where each passage stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from core.display.html import Span, bar, folded, marked, place_of, table
from core.display.markup import Markup, element, escaped, joined, line
from core.display.view import Displayed, View
from core.types import Evidence

GRADES = ("off topic", "related", "partly answers", "answers")
EXCERPT = 160
NUMBERS = {"#"}


class EvidenceList(list[Evidence], Displayed):
    """Be a list of evidence, best first, that shows itself as a table."""

    def _view(self) -> View:
        return evidence_view(self)


def evidence_view(evidence: Sequence[Evidence]) -> View:
    """Show evidence in its order; a bar compares scores of the same tool and query alone."""
    if not evidence:
        return View(element("p", {}, escaped("no evidence")), "no evidence")
    best = best_scores(evidence)
    rows = [_row(place, item, best) for place, item in enumerate(evidence, start=1)]
    titles = ["#", "grade", "score", "passage", "found by"]
    return View(
        table(titles, rows, NUMBERS),
        "\n".join(_line(place, item) for place, item in enumerate(evidence, start=1)),
    )


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


def passage(item: Evidence, spans: Iterable[Span], number: int | None = None) -> Markup:
    """Return one passage with these spans of its text marked, under its title and place."""
    name = f"[{number}] " if number is not None else ""
    where = place_of(item.section, item.page)
    place = " · ".join(part for part in (where, item.source, grade_mark(item.grades)) if part)
    head = element(
        "header",
        {},
        element("strong", {}, escaped(f"{name}{line(item.title or item.source)}")),
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
    where = place_of(item.section, item.page)
    title = element("strong", {}, escaped(line(item.title or item.source)))
    told = element("span", {"class": "where"}, escaped(f" {where}" if where else ""))
    short = line(item.text)
    whole = element("p", {}, escaped(item.text))
    text = (
        folded(f"{short[:EXCERPT]}…", whole, opened=False)
        if len(short) > EXCERPT
        else joined(element("br"), escaped(short))
    )
    grade = element("span", {"class": "grade"}, escaped(grade_mark(item.grades)))
    by = element("span", {"title": channels}, escaped(item.tool))
    return [escaped(place), grade, score, joined(title, told, text), by]


def _line(place: int, item: Evidence) -> str:
    grade = grade_mark(item.grades)
    where = place_of(item.section, item.page)
    parts = [f"{place}. {line(item.title or item.source)}", where, grade, f"{item.score:.3f}"]
    return " · ".join(part for part in parts if part) + f"\n   {line(item.text)[:EXCERPT]}"
