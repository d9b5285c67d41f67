"""Say why a document is recommended: its own sentence about the need, and what its fields say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from core.language.analysis import query_terms, terms
from core.language.detect import detect_language
from core.language.orders import gives_orders
from core.language.sentences import sentence_spans
from core.metadata import CANONICAL, SYNONYMS, find_title, humanise
from core.types import Claim, Evidence
from reasoning.recommend.factors import Opinion, Suggestion
from reasoning.recommend.need import SMALL, TEXT, Need
from reasoning.recommend.roles import cue, tables
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.records.schema import label_of
from reasoning.verification import unsupported_reason

MOST_REASONS = 6
LONGEST_QUOTE = 300  # characters; a longer sentence is cut by nobody and left out
# Fields that speak for a document, in this order.
TELLING = ("licence", "language", "platform", "stars", "ratings", "rating", "updated", "maturity",
           "audience", "size", "pages", "downloads", "documentation")  # fmt: skip
ROW = re.compile(r"^(?P<label>[^\n:：]{1,60})[:：]\s*(?P<value>[^\n]+)$", re.MULTILINE)
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)T\S*")
_ADDRESS = re.compile(r"\S*[/\\@]\S*|\d\S*")  # no words
_DRY = SYNONYMS.keys() - {"title", "keywords"}  # fields that say nothing of what a thing is about
_LISTS = re.compile(r"[,;|、，；]")
LEAST_ENDED, LEAST_WORDS = 3, 4  # of text with and without a full stop; chosen, not measured
PROSE, LISTED, TITLE = 2, 1, 0  # how much a row of a record tells of what it is about


def write_reasons(one: Suggestion, need: Need, theme: str) -> list[dict[str, Any]]:
    """Return the sentence that fits best, and the fields that constraints and factors rest on."""
    language = lexicon(detect_language(need.text))
    best, rows = _best_sentence(one, theme), _rows(one, need, language)
    for limits in need.constraints.values():
        if limits.cue == SMALL and not any(cue(SMALL).search(own.text) for own in best):
            best += _best_sentence(one, "", cue(SMALL))
    liked = [{"text": _because(one, one.because, language), "citations": []}] if one.because else []
    found = [
        {"text": claim.text, "citations": [cited.model_dump() for cited in claim.citations]}
        for claim in [*best, *rows][:MOST_REASONS]
    ]
    return [*found[: len(best)], *liked, *found[len(best) :]]


def _because(one: Suggestion, opinion: Opinion, language: Lexicon) -> str:
    """Say what its user thinks of the document, or of the one that it is most like."""
    own = "own_" if opinion.key == one.key else ""
    return language.message(f"because_{own}{opinion.rating}").format(title=opinion.title)


def _best_sentence(
    one: Suggestion, theme: str, having: re.Pattern[str] | None = None
) -> list[Claim]:
    """Quote what has most words of the need, the first among equals; prose before other fields."""
    found: list[tuple[int, int, Evidence, tuple[int, int]]] = []
    items = {item.evidence_id: item for item in (one.passage, one.card) if item is not None}
    for item in items.values():
        wanted = query_terms(theme, {item.language})
        for rank, span in _sentences(item):
            if having is not None and not having.search(item.text[slice(*span)]):
                continue
            words = {*terms(item.text[slice(*span)], item.language)}
            shared = sum(not words.isdisjoint(forms) for forms in wanted)
            if shared or rank == PROSE:
                found.append((shared, rank, item, span))
    found.sort(key=lambda row: (row[1] != TITLE, row[0], row[1]), reverse=True)
    for _, _, item, span in found:
        if claims := _verified(item, item.text[slice(*span)], span):
            return claims
    return []


def _sentences(item: Evidence) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the sentences of a passage, of a record those of its values, and how telling they are.

    What the fields of roles say is left out: it stands in reasons of its own.
    """
    spans: list[tuple[int, tuple[int, int]]] = []
    if item.kind != "record":
        spans = [(PROSE, one) for one in sentence_spans(item.text)]
    rows = list(ROW.finditer(item.text)) if item.kind == "record" else []
    title = find_title(row["label"] for row in rows)
    for row in rows:
        label = humanise(row["label"]).casefold()
        named = label in {*_roles(), "id", "source", "file"} or CANONICAL.get(label, label) in _DRY
        if named or _ADDRESS.fullmatch(row["value"].strip()):
            continue
        start, end = row.span("value")
        if row["label"] == title or not _is_prose(row["value"], item.language):
            spans.append((TITLE if row["label"] == title else LISTED, row.span()))
            continue
        spans += [(PROSE, (start + first, start + last))
                  for first, last in sentence_spans(row["value"])]  # fmt: skip
    for rank, (start, end) in spans:
        if end - start <= LONGEST_QUOTE and not gives_orders(item.text, start, end):
            yield rank, (start, end)


def _is_prose(value: str, language: str) -> bool:
    """Tell whether a value is text, as descriptions are, which often end without a full stop."""
    words = len(terms(value, language))
    ends = value.rstrip()[-1:] in ".!?…。！？"
    return words >= (LEAST_ENDED if ends else LEAST_WORDS) and words > 3 * len(
        _LISTS.findall(value)
    )


@cache
def _roles() -> dict[str, str]:
    """Return the role of each label that has one."""
    return {name.casefold(): role for role, names in tables()["roles"].items() for name in names}


def _rows(one: Suggestion, need: Need, language: Lexicon) -> list[Claim]:
    """Quote the rows of fields: first those that meet a constraint, then those that tell most.

    A sentence about a row has its value as it stands there.
    """
    card = one.card or (one.passage if one.passage.kind == "record" else None)
    if card is None:
        return []
    asked = [label_of(limits.field).casefold() for limits in need.constraints.values()
             if limits.field and limits.field != TEXT]  # fmt: skip
    found: list[tuple[int, Claim]] = []
    for match in ROW.finditer(card.text):
        label, value = humanise(match["label"].strip()).casefold(), match["value"].strip()
        role = _roles().get(label, "")
        # The language that a text is in is seen, and no reason unless it is asked for.
        seen = label not in asked and value == card.language
        if seen or (label not in asked and role not in TELLING):
            continue
        if len(value) > LONGEST_QUOTE or gives_orders(card.text, *match.span()):
            continue
        place = asked.index(label) if label in asked else len(asked) + TELLING.index(role)
        form = language.message(f"says_{role}" if role in TELLING else "says_field")
        text = form.format(label=label, value=_DAY.sub(r"\1", value))
        found.append((place, Claim(text=text, citations=[card.cited(*match.span())],
                                   question_id="need")))  # fmt: skip
    return [claim for _, claim in sorted(found, key=lambda row: row[0])]


def _verified(item: Evidence, text: str, span: tuple[int, int]) -> list[Claim]:
    claim = Claim(text=text, citations=[item.cited(*span)], question_id="need")
    return [] if unsupported_reason(claim, {item.evidence_id: item}) else [claim]
