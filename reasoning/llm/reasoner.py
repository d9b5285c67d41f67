"""The reasoner that asks a chat model, and the one-call baseline beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from core.budget import current_ledger
from core.cache import Cache
from core.fields.chat import NULL
from core.language.analysis import content_terms
from core.language.detect import UNDETERMINED
from core.metadata import ROW
from core.recall import RecallState
from core.settings import Settings
from core.types import (
    Call,
    Claim,
    Draft,
    Evidence,
    Finding,
    Grade,
    Plan,
    QuestionKind,
    Rewrite,
    SubQuestion,
    ToolSpec,
    Understanding,
)
from models.chat.types import ChatModel
from models.embeddings import Embedder
from reasoning.llm.answer import Excerpt, Written, answer_of, excerpts_of
from reasoning.llm.deciding import Ask, Decider, I, T
from reasoning.llm.evidence import findings_of, grades_of, support_of, tools_of
from reasoning.llm.plan import most_questions, plan_of
from reasoning.llm.recalling import action_of
from reasoning.llm.searching import rewrite_of, searches
from reasoning.llm.understand import understanding_of
from reasoning.rules.answering.relevance import Sentence
from reasoning.rules.answering.summaries import is_settled, only_summarises
from reasoning.rules.grade import ANSWERS, OFF_TOPIC, PARTLY
from reasoning.rules.reasoner import RulesReasoner
from reasoning.types import Nearest, Turn
from reasoning.verification import settle

# The rules' answer stands though a model finds none, where it is likelier than not that both are
# wrong to doubt: the rules' own likelihood times the model's that something else had to be said.
LIKELIER = 0.5  # by hand
ENDED = re.compile(r"[.!?…。！？][\"”»)）」]*$")
MOST_PARTS = 3  # of a question whose evidence is shown beside each other; chosen, not measured


class LlmReasoner:
    """Decide by a chat model; every reply is checked, and a bad one costs one decision only."""

    name = "llm"

    def __init__(
        self,
        chat: ChatModel,
        rules: RulesReasoner,
        settings: Settings,
        embedder: Embedder | None,
        verbs: frozenset[str],
        rewrites: Cache | None = None,
    ) -> None:
        """Leave to `rules` what is not in `verbs` and what the model fails at.

        With `NULL` among them a model is believed that nothing answers, though the rules are sure.

        `rewrites` remembers what the model made of a question and its searches.
        """
        self._rules = rules
        self._settings = settings
        self._verbs = verbs
        self._supported: dict[tuple[str, ...], bool] = {}  # verification asks the same again
        self._decider = Decider(chat, settings, embedder, rewrites)

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Make the question stand alone, classify it and split it into parts."""

        def kind(alone: str) -> QuestionKind:
            return self._rules.understand(alone, []).kind

        ask = understanding_of(question, history, self._decider, kind)
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
        offered = searches(tools)
        if decomposed or is_settled(by_rules) or not offered:
            return by_rules
        if most_questions(understanding, self._settings) == 1:
            if len(offered) == 1:
                return by_rules
            text, language = understanding.parts[0].search_text, understanding.language
            choice = tools_of(text, language, by_rules, offered, self._decider)
            return self._decided(choice, lambda: by_rules)
        ask = plan_of(understanding, tools, self._decider)
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
        ask = rewrite_of(question, evidence, tools, self._decider)
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
        """Write the sentences that answer the question, in one call.

        Lists, records and summaries are the rules' alone, since their totals are exact. The rules'
        sentences stand where the model's say less (`_chosen`).
        """
        draft = self._rules.answer(understanding, plan, evidence)
        if "answer" not in self._verbs:
            return draft
        parts = [
            self._part(one, draft, evidence)
            for one in plan.questions
            if not _is_settled(one, evidence)
        ]
        shown = _shown(parts, self._settings.llm.evidence_tokens)
        if not shown:
            return draft
        unsure = {part.question.id for part in parts if not part.claims}
        sure = _draft(plan, [one for one in draft.claims if one.question_id not in unsure])
        ledger = current_ledger()
        if ledger.on_draft is not None:
            ledger.on_draft(sure)
        known = {part.question.id: part for part in parts}
        ask = answer_of(
            understanding,
            [part.question for part in parts],
            shown,
            self._decider,
            lambda claim: known[claim.question_id].confidence(claim),
            tells=len(plan.questions) == 1,
        )
        written = self._decider.decide(ask, lambda: None)
        if written is None:
            return sure
        by_id = {item.evidence_id: item for item in evidence}
        good = [one for claim in written.claims if (one := self._settled(claim, by_id))]
        chosen = {part.question.id: self._chosen(part, good, written, parts) for part in parts}
        settled = [one for one in sure.claims if one.question_id not in known]
        claims = [
            one
            for question in plan.questions
            for one in chosen.get(question.id, [c for c in settled if c.question_id == question.id])
        ]
        return _draft(plan, claims)

    def _part(
        self, question: SubQuestion, draft: Draft, evidence: Sequence[Evidence]
    ) -> PartAnswer:
        """Return what the rules make of a part, nothing where their gate would let nothing through.

        A model is shown less likely passages than the rules answer from.
        """
        usable = [item for item in evidence if item.grades.get(question.id, 0) >= PARTLY]
        ranked = self._rules.ranked(question, usable)
        best = next((one for one in ranked if one.is_answer), None)
        score = best.score if best else 0.0
        settings = self._settings.for_hop() if question.in_chain else self._settings
        sure = score >= settings.answering.grade_partly
        by_rules = "grade" not in self._verbs or current_ledger().lost
        if by_rules:  # of a section that says how, all is as good as its best
            sure = sure or any(item.grades[question.id] > PARTLY for item in usable)
        own = [one for one in draft.claims if one.question_id == question.id]
        return PartAnswer(question, ranked, best, score, own if sure else [])

    def _chosen(
        self, part: PartAnswer, good: Sequence[Claim], written: Written, parts: Sequence[PartAnswer]
    ) -> list[Claim]:
        """Return the model's sentences for a part, or the rules'.

        The model's are taken where they say the value that the reader has found, and else where
        the rules are not sure, or could only quote another language. With 1.5 billion weights, as
        the rules alone to this: right .80 to .85 (SQuAD 2.0, n = 20), unanswerable answered .80 to
        .55 (RGB's noise, n = 20; docs/evals/qwen.md).
        """
        own = [one for one in good if one.question_id == part.question.id]
        if not part.claims:
            return own
        if written.not_found and len(parts) == 1:
            if NULL not in self._verbs and part.score >= self._settings.answering.grade_answers:
                current_ledger().note("the model finds no answer; the rules' stands")
                return part.claims
            doubt = 1.0 - (1.0 if written.null is None else written.null)
            return part.claims if part.score * doubt >= LIKELIER else []
        agreed = any(one.confidence is not None for one in own)
        unsure = part.score < self._settings.answering.grade_answers or part.is_foreign
        return own if own and (agreed or unsure) else part.claims

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        """Say whether quotes in other words or another language support a claim; False in doubt."""
        if "answer" not in self._verbs:
            return self._rules.supports(claim, quotes, language)
        asked = (claim, *quotes)
        if asked not in self._supported:
            ask = support_of(claim, quotes, language, self._decider)
            self._supported[asked] = self._decider.decide(ask, lambda: False)
        return self._supported[asked]

    def recall(self, state: RecallState, notes: Sequence[Evidence]) -> Call:
        """Choose the memory agent's next action, where the model makes plans."""
        if "plan" not in self._verbs:
            return self._rules.recall(state, notes)
        ask = action_of(state, notes, self._decider)
        return self._decider.decide(ask, lambda: self._rules.recall(state, notes))

    def nearest(self, question: SubQuestion, evidence: Sequence[Evidence]) -> Nearest:
        """Return what the rules find nearest: a refusal needs no model."""
        return self._rules.nearest(question, evidence)

    def _settled(self, claim: Claim, evidence: dict[str, Evidence]) -> Claim | None:
        """Return a claim as it may stand; note why it does not."""
        stands, reason = settle(claim, evidence, self.supports)
        if stands is None:
            current_ledger().note(f"dropped an unsupported sentence of the model: {reason}")
        return stands


class PartAnswer(NamedTuple):
    """Hold a part of a question with its sentences, the likeliest first, and the rules' claims."""

    question: SubQuestion
    ranked: list[Sentence]
    best: Sentence | None
    score: float
    claims: list[Claim]

    @property
    def is_foreign(self) -> bool:
        """Tell whether the likeliest sentence is in another language than the question."""
        known = {self.question.language, UNDETERMINED}
        return self.best is not None and self.best.evidence.language not in known

    def confidence(self, claim: Claim) -> float | None:
        """Return the rules' own where a claim says what they would, else None."""
        confidences = [one.confidence or 0.0 for one in self.claims]
        return max(confidences) if confidences and self._is_stated_by(claim) else None

    def _is_stated_by(self, claim: Claim) -> bool:
        """Tell whether a sentence says, to the letter, what the reader takes for the answer.

        It must be whole, and name something that the question names.

        Where no reader has looked, it must rest on the likeliest sentence.
        """
        best, language = self.best, self.question.language
        asked = content_terms(f"{self.question.text} {self.question.about}", language)
        complete = ENDED.search(claim.text) and set(asked) & set(
            content_terms(claim.text, language)
        )
        if best is None or not complete:
            return False
        if best.value is None:
            cited = (one for one in claim.citations if one.chunk_id == best.chunk_id)
            return any(one.start < best.end and one.end > best.start for one in cited)
        start, end = best.value
        value = best.evidence.text[start:end]
        return " ".join(value.split()).casefold() in claim.text.casefold()


def _shown(parts: Sequence[PartAnswer], tokens: int) -> list[Excerpt]:
    """Return the passages to show, those of each part first; none is shown twice."""
    found: dict[str, Excerpt] = {}
    for part in parts[-MOST_PARTS:]:
        for one in excerpts_of(part.ranked, tokens):
            earlier = found.get(one.item.chunk_id)
            found[one.item.chunk_id] = one.joined(earlier) if earlier else one
    return list(found.values())


def _is_settled(question: SubQuestion, evidence: Sequence[Evidence]) -> bool:
    """Tell whether a part is counted, listed or summarised by the rules."""
    usable = [item for item in evidence if item.grades.get(question.id, 0) >= PARTLY]
    exact = any(item.kind == ROW for item in usable)
    return exact or question.wants == "list" or only_summarises(question)


def _draft(plan: Plan, claims: Sequence[Claim]) -> Draft:
    answered = {one.question_id for one in claims}
    missing = [one.text for one in plan.questions if one.id not in answered]
    return Draft(claims=list(claims), missing=missing)


SEARCH = "search"
SHOWN = 3  # passages, whole; chosen, not measured


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
        ask = answer_of(understanding, plan.questions, shown, self._decider)
        written = self._decider.decide(ask, lambda: None)
        if written is None or not written.claims:
            return Draft(claims=[], missing=[one.text for one in plan.questions])
        return Draft(claims=written.claims)
