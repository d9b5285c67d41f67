"""Say why a document is recommended, in claims that their citations support."""

from __future__ import annotations

import re
from typing import Any

from core.language.orders import gives_orders
from core.language.sentences import sentence_spans
from core.types import Claim, Evidence
from reasoning.recommend.factors import Suggestion
from reasoning.recommend.need import Need
from reasoning.recommend.roles import tables
from reasoning.rules.records.schema import label_of
from reasoning.verification import unsupported_reason

MOST_REASONS = 6
LONGEST_QUOTE = 300  # characters; a longer sentence is cut by nobody and left out
# Fields that speak for a document, in this order.
TELLING = ("licence", "language", "stars", "ratings", "rating", "updated", "maturity", "platform",
           "pages", "downloads", "documentation")  # fmt: skip
_ROW = re.compile(r"^(?P<label>[^\n:：]{1,60})[:：]\s*(?P<value>[^\n]+)$", re.MULTILINE)


def write_reasons(one: Suggestion, need: Need, theme: str) -> list[dict[str, Any]]:
    """Return the sentence that fits best, and the fields that constraints and factors rest on."""
    claims = [*_best_sentence(one, theme), *_rows(one, need)]
    liked = [{"text": f"Because you liked {one.liked}.", "citations": []}] if one.liked else []
    return liked + [
        {"text": claim.text, "citations": [cited.model_dump() for cited in claim.citations]}
        for claim in claims[:MOST_REASONS]
    ]


def _best_sentence(one: Suggestion, theme: str) -> list[Claim]:
    """Quote the sentence that has most words of the need, the first among equals."""
    item = one.passage
    if item.kind == "record":
        return []
    wanted = set(re.findall(r"\w{3,}|[\u3400-\u9fff]", theme.casefold()))
    spans = [(start, end) for start, end in sentence_spans(item.text)
             if end - start <= LONGEST_QUOTE
             and not gives_orders(item.text, start, end)]  # fmt: skip
    if not spans:
        return []

    def shared(span: tuple[int, int]) -> int:
        words = set(re.findall(r"\w{3,}|[\u3400-\u9fff]", item.text[slice(*span)].casefold()))
        return len(words & wanted)

    return _verified(item, item.text[slice(*(span := max(spans, key=shared)))], span)


def _rows(one: Suggestion, need: Need) -> list[Claim]:
    """Quote the rows of fields: first those that meet a constraint, then those that tell most."""
    card = one.card or (one.passage if one.passage.kind == "record" else None)
    if card is None:
        return []
    asked = [label_of(limits.field).casefold() for limits in need.constraints.values()
             if limits.field]  # fmt: skip
    names = [name.casefold() for role in TELLING for name in tables()["roles"][role]]
    order = [*asked, *names]
    rows = [
        (order.index(label), match)
        for match in _ROW.finditer(card.text)
        if (label := match["label"].strip().casefold()) in order
        # The language that a text is in is seen, and no reason unless it is asked for.
        and (label in asked or match["value"].strip() != card.language)
    ]
    found: list[Claim] = []
    for _, match in sorted(rows, key=lambda row: row[0]):
        sentence = _sentence(match["label"].strip(), match["value"].strip())
        claims = _verified(card, sentence, match.span()) if card.language == "en" else []
        found += claims or _verified(card, match[0], match.span())
    return found


def _sentence(label: str, value: str) -> str:
    if label.endswith("s") and value.replace(".", "").isdigit():
        return f"It has {value} {label}."
    return f"Its {label} {'are' if label.endswith('s') else 'is'} {value}."


def _verified(item: Evidence, text: str, span: tuple[int, int]) -> list[Claim]:
    claim = Claim(text=text, citations=[item.cited(*span)], question_id="need")
    return [] if unsupported_reason(claim, {item.evidence_id: item}) else [claim]
