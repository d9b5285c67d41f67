"""Answers: the text with its citation marks, and each cited passage with what is cited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.citations import citation_marks, numbered_sources
from core.types import Answer, Citation, Claim, Evidence
from display.evidence import passage
from display.html import Markup, bullets, element, escaped, facts, joined, line
from display.view import View


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
        said = f"{claim.text} "
        marks = citation_marks(claim, numbers)
        found = answer.text.find(said + marks, place)
        if found < 0:
            continue
        end = found + len(said)
        parts.append(escaped(answer.text[place:end]))
        parts += [_mark(number, quotes) for number in _numbers(claim, numbers)]
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


def _numbers(claim: Claim, numbers: dict[str, int]) -> list[int]:
    return list(dict.fromkeys(numbers[one.chunk_id] for one in claim.citations))


def _mark(number: int, quotes: Mapping[int, str]) -> Markup:
    return element("sup", {"class": "cite", "title": quotes[number]}, escaped(f"[{number}]"))


def _quotes(claims: Sequence[Claim], numbers: dict[str, int]) -> dict[int, str]:
    found: dict[int, str] = {}
    for claim in claims:
        for one in claim.citations:
            found.setdefault(numbers[one.chunk_id], f"{line(one.source)}: “{line(one.quote)}”")
    return found
