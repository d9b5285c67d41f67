"""Find the values that a question wants in its evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.types import Evidence, Finding, SubQuestion
from models.chat.types import ChatRequest
from reasoning.llm.data import as_data, evidence_data
from reasoning.llm.deciding import Ask, Decider, WholeReply
from reasoning.llm.replies import Reply, Unfit, parsed
from reasoning.llm.schemas import items, number, record, text


class GivenValue(Reply):
    """Hold one value as the model gives it."""

    value: str
    source: int


class Values(Reply):
    """Hold the values the model found."""

    values: list[GivenValue]


def findings_of(
    question: SubQuestion, evidence: Sequence[Evidence], decider: Decider
) -> Ask[Evidence, list[Finding]]:
    """Return what to ask for the values a sub-question wants, best first.

    More values than one branching and its undoing can use are not asked for.
    """
    settings = decider.settings
    most = settings.plan.fan_out * (1 + settings.plan.max_backtracks)

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        prompt = decider.prompts.text(
            "extract",
            evidence=evidence_data(shown),
            question=as_data(f"{question.text} {question.about}".strip()),
            wants=question.wants,
        )
        value = record(value=text(), source=number(1, len(shown)))
        return decider.request(prompt, record(values=items(value, most=most)))

    def read(said: str, shown: Sequence[Evidence]) -> list[Finding]:
        values = parsed(said, Values).values
        found = [_finding(value, shown, settings.plan.slot_chars) for value in values]
        return list(dict.fromkeys(found))[:most]

    return Ask("extract", make, WholeReply(read), evidence)


def _finding(value: GivenValue, shown: Sequence[Evidence], most: int) -> Finding:
    """Return the place of a value of at most `most` characters; raises Unfit.

    Only the model's own text must be on one line: documents break lines where they like.
    """
    if len(value.value.strip().splitlines()) > 1:
        raise Unfit("a value is on one line; copy the words that answer, no more")
    if len(value.value.strip()) > most:
        raise Unfit(f"a value has at most {most} characters (plan.slot_chars); copy fewer words")
    if not 1 <= value.source <= len(shown):
        raise Unfit(f"there is no evidence {value.source}")
    item = shown[value.source - 1]
    words = value.value.split()
    place = re.search(r"\s+".join(map(re.escape, words)), item.text, re.IGNORECASE)
    if not words or place is None:
        raise Unfit(f"'{value.value}' is not written in evidence {value.source}; copy values")
    return Finding(
        value=place.group(), evidence_id=item.evidence_id, start=place.start(), end=place.end()
    )
