"""The chat model as a Reasoner: it decides what it can, the rules decide the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.cache.cache import Cache
from core.ledger import current_ledger
from core.record_names import ROW
from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import (
    Claim,
    Draft,
    Evidence,
    Finding,
    Grade,
    Plan,
    QuestionKind,
    Rewrite,
    SubQuestion,
    Understanding,
)
from models.chat.types import ChatModel
from models.embeddings import Embedder
from reasoning.llm.answer import claims_of
from reasoning.llm.deciding import LOST, Ask, Decider, I, T
from reasoning.llm.judging import findings_of, grades_by_rules, grades_of, support_of
from reasoning.llm.plan import plan_of
from reasoning.llm.prompts import load_prompts
from reasoning.llm.rewriting import rewrite_of
from reasoning.llm.searching import searches
from reasoning.llm.understand import understanding_of
from reasoning.rules.reasoner import RulesReasoner
from reasoning.rules.summaries import is_settled, only_summarises
from reasoning.types import Turn

ALL_VERBS = frozenset({"understand", "plan", "grade", "rewrite", "extract", "answer"})


class LlmReasoner:
    """Decide by a chat model; every reply is checked, and a bad one costs one decision only."""

    name = "llm"

    def __init__(
        self,
        chat: ChatModel,
        rules: RulesReasoner,
        settings: Settings,
        embedder: Embedder | None,
        verbs: frozenset[str] = ALL_VERBS,
        rewrites: Cache | None = None,
    ) -> None:
        """Leave to `rules` what is not in `verbs` and what the model fails at.

        `rewrites` remembers what the model made of a question and its searches.
        """
        self._rules = rules
        self._embedder = embedder
        self._verbs = verbs - {"grade"} if grades_by_rules(chat, settings) else verbs
        self._decider = Decider(chat, settings, load_prompts(settings.llm_prompts), rewrites)

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Make the question stand alone, classify it and split it into parts."""

        def kind(alone: str) -> QuestionKind:
            return self._rules.understand(alone, []).kind

        ask = understanding_of(question, history, self._decider, self._embedder, kind)
        return self._decided(ask, lambda: self._rules.understand(question, history))

    def _decided(self, ask: Ask[I, T], by_rules: Callable[[], T]) -> T:
        """Return what the model decides, or what the rules do where its verbs lack this one."""
        return self._decider.decide(ask, by_rules) if ask.verb in self._verbs else by_rules()

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Plan the questions that the model proposes, with its search texts and tools.

        Parts with slots are a decomposition by the rules already, so they plan them too. Records
        are counted and wholes are read, whatever a model thinks of them.
        """
        by_rules = self._rules.plan(understanding, tools)
        decomposed = any(part.slot or part.deps for part in understanding.parts)
        if decomposed or is_settled(by_rules) or not searches(tools):
            return by_rules
        ask = plan_of(understanding, tools, self._decider, self._embedder)
        return self._decided(ask, lambda: by_rules)

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        """Judge each piece; the rules judge those that do not fit the model's context.

        What a count of records or a summary is made of is no matter of judgement, and a piece
        without the kind of value asked for answers nothing.
        """
        settled = only_summarises(question) or any(item.kind == ROW for item in evidence)
        if "grade" not in self._verbs or not evidence or settled:
            return self._rules.grade(question, evidence)
        ask = grades_of(question, evidence, self._decider)
        grades = self._decider.decide(ask, lambda: self._rules.grade(question, evidence))
        grades = self._rules.bound(question, evidence, grades)
        rest = evidence[len(grades) :]
        if rest:
            current_ledger().degrade(
                f"grade: {len(rest)} of {len(evidence)} passages did not fit the model's context"
            )
            grades = [*grades, *self._rules.grade(question, rest)]
        return grades

    def rewrite(
        self,
        question: SubQuestion,
        evidence: Sequence[Evidence],
        tools: Sequence[ToolSpec],
    ) -> Rewrite | None:
        """Propose a search that was not tried yet and does not drift."""

        def by_rules() -> Rewrite | None:
            return self._rules.rewrite(question, evidence, tools)

        if not searches(tools) or only_summarises(question):
            return by_rules()
        ask = rewrite_of(question, evidence, tools, self._decider, self._embedder)
        return self._decided(ask, by_rules)

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Find values that are written in the evidence."""
        if not evidence:
            return []
        ask = findings_of(question, evidence, self._decider)
        return self._decided(ask, lambda: self._rules.extract(question, evidence))

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        """Write the claims of each sub-question from its own graded evidence."""
        ledger = current_ledger()
        if "answer" not in self._verbs:
            return self._rules.answer(understanding, plan, evidence)
        if ledger.lost:
            ledger.degrade(f"answer: {LOST}")
            return self._rules.answer(understanding, plan, evidence)
        claims: list[Claim] = []
        missing: list[str] = []
        for question in plan.questions:
            usable = [item for item in evidence if item.grades.get(question.id, 0) >= 2]
            found = self._claims(understanding, question, usable) if usable else []
            claims += found
            if not found:
                missing.append(question.text)
        return Draft(claims=claims, missing=missing)

    def _claims(
        self, understanding: Understanding, question: SubQuestion, usable: Sequence[Evidence]
    ) -> list[Claim]:
        def by_rules() -> list[Claim]:
            found = self._rules.answer(understanding, Plan(questions=[question]), usable).claims
            on_claim = current_ledger().on_claim
            for claim in found if on_claim else ():
                on_claim(claim)  # type: ignore[misc] # the loop is empty without it
            return found

        if any(item.kind == ROW for item in usable):  # totals are exact
            return by_rules()
        ask = claims_of(question, usable, self._decider, self._embedder)
        return self._decider.decide(ask, by_rules)

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        """Say whether quotes in another language than the claim's support it; False in doubt."""
        if "answer" not in self._verbs:
            return self._rules.supports(claim, quotes, language)
        ask = support_of(claim, quotes, language, self._decider)
        return self._decider.decide(ask, lambda: False)
