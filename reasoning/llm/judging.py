"""Grade evidence, find values in it, and say whether quotes support a claim."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from core.settings import Settings
from core.types import Evidence, Finding, Grade, SubQuestion
from models.chat.types import ChatModel, ChatRequest
from reasoning.llm.data import as_data, evidence_data, language_name
from reasoning.llm.deciding import Ask, Decider, WholeReply
from reasoning.llm.replies import Reply, Unfit, loaded, parsed
from reasoning.llm.schemas import items, number, one_of, record, text

SAYS = ("off topic", "related", "partly answers", "answers")
BILLIONS = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s?[bB](?![a-zA-Z])")
SMALL = 4.0  # billions; nobody has shown that a smaller one grades better than the scorer
VERDICTS = ["supported", "unsupported"]


class GivenValue(Reply):
    """Hold one value as the model gives it."""

    value: str
    source: int


class Values(Reply):
    """Hold the values the model found."""

    values: list[GivenValue]


class SupportVerdict(Reply):
    """Hold the model's word on a claim."""

    verdict: Literal["supported", "unsupported"]


def grades_by_rules(chat: ChatModel, settings: Settings) -> bool:
    """Tell whether the rules' scorer grades in the model's stead: by setting, or for a small one.

    How large a model is its name says, in billions; one whose name does not is not taken as small.
    """
    if settings.llm_grader != "auto":
        return settings.llm_grader == "rules"
    said = BILLIONS.search(chat.capabilities.model)
    return said is not None and float(said[1]) < SMALL


def grades_of(
    question: SubQuestion, evidence: Sequence[Evidence], decider: Decider
) -> Ask[Evidence, list[Grade]]:
    """Return what to ask for a grade of each piece; the decision is on those that fit."""

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        names = [f"e{place}" for place in range(1, len(shown) + 1)]
        prompt = _evidence_text("grade", question, shown, decider)
        return decider.request(prompt, record(**{name: number(0, 3) for name in names}))

    def read(said: str, shown: Sequence[Evidence]) -> list[Grade]:
        reply = loaded(said)
        return [_grade(reply, f"e{n}", item) for n, item in enumerate(shown, start=1)]

    return Ask("grade", make, WholeReply(read), evidence)


def _grade(reply: dict[str, Any], name: str, item: Evidence) -> Grade:
    if name not in reply:
        raise Unfit(f"{name} is missing; every piece of evidence needs a grade")
    grade = reply[name]
    if type(grade) is not int or not 0 <= grade <= 3:
        raise Unfit(f"{name} must be 0, 1, 2 or 3")
    reason = f"the model says: {SAYS[grade]}"
    return Grade(evidence_id=item.evidence_id, grade=grade, reason=reason)


def findings_of(
    question: SubQuestion, evidence: Sequence[Evidence], decider: Decider
) -> Ask[Evidence, list[Finding]]:
    """Return what to ask for the values a sub-question wants, best first.

    More values than one branching and its undoing can use are not asked for.
    """
    settings = decider.settings
    most = settings.plan_fan_out * (1 + settings.max_backtracks)

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        prompt = _evidence_text("extract", question, shown, decider)
        value = record(value=text(), source=number(1, len(shown)))
        return decider.request(prompt, record(values=items(value, most=most)))

    def read(said: str, shown: Sequence[Evidence]) -> list[Finding]:
        values = parsed(said, Values).values
        found = [_finding(value, shown, settings.plan_slot_chars) for value in values]
        return list(dict.fromkeys(found))[:most]

    return Ask("extract", make, WholeReply(read), evidence)


def _finding(value: GivenValue, shown: Sequence[Evidence], most: int) -> Finding:
    """Return the place of a value of at most `most` characters; raises Unfit.

    Only the model's own text must be on one line: documents break lines where they like.
    """
    if len(value.value.strip().splitlines()) > 1:
        raise Unfit("a value is on one line; copy the words that answer, no more")
    if len(value.value.strip()) > most:
        raise Unfit(f"a value has at most {most} characters (plan_slot_chars); copy fewer words")
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


def support_of(
    claim: str, quotes: Sequence[str], language: str, decider: Decider
) -> Ask[str, bool]:
    """Return what to ask about a claim and its quotes."""

    def make(_: Sequence[str]) -> ChatRequest:
        prompt = decider.prompts.text(
            "supports",
            quotes="\n".join(as_data(quote) for quote in quotes),
            claim=as_data(claim),
            language=language_name(language),
        )
        return decider.request(prompt, record(verdict=one_of(VERDICTS)))

    def read(said: str, _: Sequence[str]) -> bool:
        return parsed(said, SupportVerdict).verdict == "supported"

    return Ask("supports", make, WholeReply(read))


def _evidence_text(
    name: str, question: SubQuestion, shown: Sequence[Evidence], decider: Decider
) -> str:
    return decider.prompts.text(
        name,
        evidence=evidence_data(shown),
        question=as_data(f"{question.text} {question.about}".strip()),
        wants=question.wants,
    )
