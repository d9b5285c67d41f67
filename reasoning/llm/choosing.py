"""Choose in one token: the model writes a letter or a word, the server says how likely each was."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from core.types import Evidence, Grade, Plan, SubQuestion, ToolSpec
from models.chat.types import ChatReply, ChatRequest, Message
from reasoning.llm.data import as_data, evidence_data, language_name, tools_data
from reasoning.llm.deciding import Ask, Decider, I, ReplyReader, T
from reasoning.llm.replies import Unfit
from reasoning.llm.searching import MOST_TOOLS
from reasoning.rules.grade import PARTLY
from reasoning.rules.plan import calls_for

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"
NONE, YES, NO = "Z", "yes", "no"
TOKENS = 3  # a choice, and the end of the message as some templates write it
# Of the likeliest: what is as likely is taken as well. Set by hand: of the exam's tools the second
# was at most .3 as likely as the first, so any CLOSE above chooses alike; NEAR was not measured.
CLOSE, NEAR = 0.5, 0.2


class ChoiceReader(ReplyReader[I, T]):
    """Read which of some options was chosen."""

    def __init__(
        self,
        options: Callable[[Sequence[I]], Sequence[str]],
        decide: Callable[[Mapping[str, float], Sequence[I]], T],
    ) -> None:
        """Decide by the likelihood of each option for the items shown, 0..1, together 1."""
        self._options = options
        self._decide = decide
        self._items: Sequence[I] = ()

    def begin(self, items: Sequence[I]) -> None:
        """Remember the items."""
        self._items = items

    def read(self, reply: ChatReply) -> T:
        """Decide; where the server tells no likelihoods, what was written is certain."""
        options = self._options(self._items)
        found = {one: reply.alternatives.get(one, 0.0) for one in options}
        total = sum(found.values())
        if not total:
            written = reply.text.strip().rstrip(".").casefold()
            found = {one: float(written == one.casefold()) for one in options}
            total = sum(found.values())
        if not total:
            raise Unfit(f"reply with one of {', '.join(options)}")
        return self._decide({one: share / total for one, share in found.items()}, self._items)


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

    reader = ChoiceReader[Evidence, list[Grade]](
        lambda shown: [*LETTERS[: len(shown)], NONE], decide
    )
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

    reader = ChoiceReader[ToolSpec, Plan](lambda shown: LETTERS[: len(shown)], decide)
    return Ask("plan", make, reader, offered[: len(LETTERS)], repairs=0)


def support_of(
    claim: str, quotes: Sequence[str], language: str, decider: Decider
) -> Ask[str, bool]:
    """Return what to ask about a claim and its quotes."""

    def make(_: Sequence[str]) -> ChatRequest:
        said = "\n".join(as_data(quote) for quote in quotes)
        return _request(
            decider,
            "supports",
            quotes=said,
            claim=as_data(claim),
            language=language_name(language),
        )

    reader = ChoiceReader[str, bool](
        lambda _: (YES, NO), lambda shares, _: shares[YES] > shares[NO]
    )
    return Ask("supports", make, reader, repairs=0)
