"""Let a model grade evidence, say what supports a claim, and read values of slots in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from core.types import Evidence, Finding, Grade, Plan, SubQuestion, ToolSpec
from models.chat.types import ChatReply, ChatRequest, Message
from reasoning.llm.deciding import Ask, Decider, I, ReplyReader, T
from reasoning.llm.prompts import as_data, evidence_data, language_name, tools_data
from reasoning.llm.replies import Reply, Unfit, items, number, parsed, record, text
from reasoning.llm.searching import MOST_TOOLS
from reasoning.rules.grade import PARTLY
from reasoning.rules.plan import calls_for

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"
NONE, YES, NO = "Z", "yes", "no"
TOKENS = 3  # a choice, and the end of the message as some templates write it
# Of the likeliest: what is as likely is taken as well. Set by hand: of the exam's tools the second
# was at most .3 as likely as the first, so any CLOSE above chooses alike; NEAR was not measured.
CLOSE, NEAR = 0.5, 0.2


def _choice(
    options: Callable[[Sequence[I]], Sequence[str]],
    decide: Callable[[Mapping[str, float], Sequence[I]], T],
) -> ReplyReader[I, T]:
    """Return what reads which of some options was chosen.

    `decide` gets the likelihood of each option for the items shown, 0..1, together 1; where the
    server tells none, what was written is certain.
    """

    def read(reply: ChatReply, shown: Sequence[I]) -> T:
        names = options(shown)
        found = {one: reply.alternatives.get(one, 0.0) for one in names}
        if not any(found.values()):
            written = reply.text.strip().rstrip(".").casefold()
            found = {one: float(written == one.casefold()) for one in names}
        total = sum(found.values())
        if not total:
            raise Unfit(f"reply with one of {', '.join(names)}")
        return decide({one: share / total for one, share in found.items()}, shown)

    return ReplyReader(read)


def _request(decider: Decider, name: str, **values: str) -> ChatRequest:
    """Return the request of a choice; the dialogue before it never changes."""
    static = decider.prompts.dialogue(f"{name}_system")
    asked = Message("user", decider.prompts.text(name, **values))
    return ChatRequest((*static, asked), TOKENS, alternatives=True, static=len(static))


def grades_of(
    question: SubQuestion, evidence: Sequence[Evidence], decider: Decider
) -> Ask[Evidence, list[Grade]]:
    """Return what to ask for a grade of each piece; the decision is on those that fit."""

    def make(shown: Sequence[Evidence]) -> ChatRequest:
        asked = as_data(f"{question.text} {question.about}".strip())
        return _request(decider, "grade", evidence=evidence_data(shown, LETTERS), question=asked)

    def decide(shares: Mapping[str, float], shown: Sequence[Evidence]) -> list[Grade]:
        best = max(shares.values())
        answers = shares[NONE] < best
        return [
            Grade(
                evidence_id=item.evidence_id,
                grade=_grade(shares[letter] / best, answers=answers),
                reason=f"the model says: answers, with {shares[letter]:.2f}",
            )
            for letter, item in zip(LETTERS, shown, strict=False)
        ]

    reader = _choice(lambda shown: [*LETTERS[: len(shown)], NONE], decide)
    return Ask("grade", make, reader, evidence[: len(LETTERS)], repairs=0)


def _grade(share: float, *, answers: bool) -> int:
    """Return the grade of a piece by its share of the likeliest choice."""
    if not answers:
        return PARTLY - 1 if share >= NEAR else 0
    return PARTLY + 1 if share >= CLOSE else PARTLY if share >= NEAR else 0


def tools_of(
    question: str, language: str, plan: Plan, offered: Sequence[ToolSpec], decider: Decider
) -> Ask[ToolSpec, Plan]:
    """Return what to ask for the tools that search for the only question of a plan."""

    def make(shown: Sequence[ToolSpec]) -> ChatRequest:
        return _request(
            decider, "plan", tools=tools_data(shown, LETTERS), question=as_data(question)
        )

    def decide(shares: Mapping[str, float], shown: Sequence[ToolSpec]) -> Plan:
        best = max(shares.values())
        ranked = sorted(zip(LETTERS, shown, strict=False), key=lambda one: -shares[one[0]])
        likely = [spec for letter, spec in ranked if shares[letter] >= CLOSE * best]
        calls = calls_for(question, language, likely[:MOST_TOOLS])
        if not calls:
            raise Unfit(f"the question names no field value for {likely[0].name}")
        return Plan(questions=[plan.questions[0].model_copy(update={"calls": calls})])

    reader = _choice(lambda shown: LETTERS[: len(shown)], decide)
    return Ask("plan", make, reader, offered[: len(LETTERS)], repairs=0)


def support_of(
    claim: str, quotes: Sequence[str], language: str, decider: Decider
) -> Ask[str, bool]:
    """Return what to ask about a claim and its quotes."""

    def make(_: Sequence[str]) -> ChatRequest:
        listed = "\n".join(as_data(quote) for quote in quotes)
        return _request(
            decider,
            "supports",
            quotes=listed,
            claim=as_data(claim),
            language=language_name(language),
        )

    def decide(shares: Mapping[str, float], _: Sequence[str]) -> bool:
        return shares[YES] > shares[NO]

    reader = _choice(lambda _: (YES, NO), decide)
    return Ask("supports", make, reader, repairs=0)


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

    def read(reply: ChatReply, shown: Sequence[Evidence]) -> list[Finding]:
        values = parsed(reply.text, Values).values
        found = [_finding(value, shown, settings.plan.slot_chars) for value in values]
        return list(dict.fromkeys(found))[:most]

    return Ask("extract", make, ReplyReader(read), evidence)


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
