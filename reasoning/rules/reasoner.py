"""The rules as a Reasoner."""

from __future__ import annotations

from collections.abc import Sequence

from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import (
    Draft,
    Evidence,
    Finding,
    Grade,
    Plan,
    Rewrite,
    SubQuestion,
    TermWeights,
    Understanding,
)
from models.embeddings import Embedder
from reasoning.rules import answer, extract, grade, plan, rewrite, understand
from reasoning.rules.record_answers import record_claims, record_grades, with_records
from reasoning.rules.relevance import Relevance, SentenceVectors, evidence_languages
from reasoning.types import Turn


class RulesReasoner:
    """Decide by words, counts and the embedder; the same input gives the same decision."""

    name = "rules"

    def __init__(
        self,
        settings: Settings,
        weights: TermWeights,
        embedder: Embedder | None,
        vectors: SentenceVectors | None = None,
    ) -> None:
        """Weigh words by `weights`, the rarity of terms in the collection that is asked.

        `vectors` gives the stored vectors of sentences, so that nothing is embedded twice.
        """
        self._settings = settings
        self._weights = weights
        self._embedder = embedder
        self._relevance = Relevance(embedder, weights, vectors)

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Make the question stand alone, classify it and split it into parts."""
        turns = list(history)[-self._settings.history_turns :] if history else []
        return understand.understand(
            question, turns, self._settings.max_sub_questions, self._settings.plan_in_degree
        )

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Give each part its search text and its tools, chosen by their specs."""
        made = plan.plan(understanding, tools, self._embedder)
        return with_records(made, understanding, tools)

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        """Judge each piece of evidence by its best sentence."""
        if graded := record_grades(evidence):
            return graded
        wanted = self._relevance.wanted(question, evidence_languages(evidence))
        return grade.grade(self._relevance, wanted, evidence, self._settings)

    def rewrite(
        self,
        question: SubQuestion,
        evidence: Sequence[Evidence],
        tools: Sequence[ToolSpec],
        attempt: int,
    ) -> Rewrite | None:
        """Propose synonyms first, then words of the best evidence; None when both drift."""
        return rewrite.rewrite(
            question,
            evidence,
            tools,
            attempt,
            settings=self._settings,
            weights=self._weights,
            embedder=self._embedder,
        )

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Find values of the kind the sub-question wants, best first."""
        return extract.extract(question, evidence, self._relevance)

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        """Choose whole sentences of the evidence, each cited to its characters."""
        records, rest = record_claims(plan, evidence)
        if not rest.questions:
            return Draft(claims=records)
        draft = answer.answer(understanding, rest, evidence, self._relevance, self._settings)
        return draft.model_copy(update={"claims": [*records, *draft.claims]})

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        """Deny, since words cannot be compared across languages."""
        return False
