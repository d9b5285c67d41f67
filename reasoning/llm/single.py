"""The one-call baseline as a Reasoner: the first passages of one search, and one prompt."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Draft, Evidence, Grade, Plan, Rewrite, SubQuestion, ToolSpec, Understanding
from reasoning.llm.answer import answer_of
from reasoning.llm.excerpts import Excerpt
from reasoning.llm.reasoner import LlmReasoner

SEARCH = "search"
SHOWN = 3  # passages, whole
ANSWERS, OFF_TOPIC = 3, 0


class SingleReasoner(LlmReasoner):
    """Show a model the first passages and take what it says, if its evidence supports it."""

    name = "single"

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Search once, for the whole question."""
        made = self._rules.plan(understanding, tools)
        question = made.questions[0]
        calls = [one.model_copy(update={"tool": SEARCH}) for one in question.calls[:1]]
        return Plan(questions=[question.model_copy(update={"calls": calls, "wants": "text"})])

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        """Take the first passages as they come."""
        return [
            Grade(
                evidence_id=item.evidence_id,
                grade=ANSWERS if place < SHOWN else OFF_TOPIC,
                reason=f"place {place + 1} of the search",
            )
            for place, item in enumerate(evidence)
        ]

    def rewrite(
        self, question: SubQuestion, evidence: Sequence[Evidence], tools: Sequence[ToolSpec]
    ) -> Rewrite | None:
        """Never search twice."""
        return None

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        """Ask once; without a reply there is no answer."""
        shown = [Excerpt(item, ((0, len(item.text)),)) for item in evidence]
        ask = answer_of(understanding, plan.questions, shown, self._decider, self._embedder)
        written = self._decider.decide(ask, lambda: None)
        if written is None or not written.claims:
            return Draft(claims=[], missing=[one.text for one in plan.questions])
        return Draft(claims=written.claims)
