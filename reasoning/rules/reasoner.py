"""The reasoner that decides by rules, and the classic one-pass pipeline beside it."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.detect import detect_language
from core.metadata import ROW
from core.recall import NOTE, RecallState
from core.settings import Settings
from core.types import (
    Call,
    Draft,
    Evidence,
    Finding,
    Grade,
    Part,
    Plan,
    Rewrite,
    SubQuestion,
    TermWeights,
    ToolSpec,
    Understanding,
)
from models.embeddings import Embedder, Reads, serves
from reasoning.claims.support import entails
from reasoning.rules import grade, nearest, plan, recall, understand
from reasoning.rules import plan as rewrite
from reasoning.rules.answering import answer
from reasoning.rules.answering.relevance import Relevance, Sentence, SentenceVectors
from reasoning.rules.answering.summaries import (
    only_summarises,
    summary_claims,
    with_summary,
)
from reasoning.rules.note_grades import grade_notes
from reasoning.rules.records.answers import record_claims, record_grades, with_records
from reasoning.rules.records.questions import record_calls
from reasoning.rules.values import extract
from reasoning.statements import asks_to_keep
from reasoning.types import Nearest, Turn, recent


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
        self._relevance = Relevance(
            embedder,
            weights,
            vectors,
            reads=settings.answering.reader,
            order=settings.selection.amounts["order"],
        )

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Make the question stand alone, classify it and split it into parts."""
        return understand.understand(
            question,
            recent(history, self._settings),
            self._settings.answering.max_sub_questions,
            self._settings.plan.in_degree,
        )

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Give each part its search text and its tools, chosen by their specs."""
        made = plan.plan(understanding, tools, self._embedder)
        served = serves(self._embedder, understanding.language)
        listed = self._settings.answering.list_items * served
        made = with_records(made, understanding, tools, listed)
        return with_summary(made, understanding, tools)

    def grade(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Grade]:
        """Judge each piece of evidence by its best sentence, notes as a whole."""
        embedder = self._embedder
        own = bool(evidence) and all(one.kind == NOTE and not one.title for one in evidence)
        if own and isinstance(embedder, Reads) and embedder.reads:
            return grade_notes(question, evidence, embedder)
        graded = record_grades(question, evidence)
        known = {one.evidence_id for one in graded}
        rest = [one for one in evidence if one.evidence_id not in known]
        # Where only a summary is asked for, titles like the one asked for answer nothing.
        if only_summarises(question) or (graded and not rest):
            return graded
        wanted = self._relevance.wanted(question, rest)
        settings = self._settings.for_hop() if question.in_chain else self._settings
        return [*graded, *grade.grade(self._relevance, wanted, rest, settings)]

    def bound(
        self, question: SubQuestion, evidence: Sequence[Evidence], grades: Sequence[Grade]
    ) -> list[Grade]:
        """Hold what somebody else has graded to the checks that bind every grade."""
        wanted = self._relevance.wanted(question, evidence)
        return grade.bound(self._relevance, wanted, evidence, grades)

    def rewrite(
        self,
        question: SubQuestion,
        evidence: Sequence[Evidence],
        tools: Sequence[ToolSpec],
    ) -> Rewrite | None:
        """Propose the content words with their synonyms; None when they drift.

        Nor does it help to ask a record query or for a summary in other words.
        """
        if only_summarises(question) or any(item.kind == ROW for item in evidence):
            return None
        calls = record_calls(question.text, question.language, tools, unanswered=True)
        if calls:
            why = "no passage answers; the records have such a field"
            return Rewrite(query=question.query, calls=calls, similarity=1.0, reason=why)
        return rewrite.rewrite(
            question,
            tools,
            settings=self._settings,
            embedder=self._embedder,
            found=any(question.id in item.grades for item in evidence),
        )

    def extract(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Finding]:
        """Find values of the kind the sub-question wants, best first."""
        return extract.extract(question, evidence, self._relevance)

    def ranked(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Sentence]:
        """Return the sentences of evidence, the likeliest answer first."""
        return self._relevance.ranked(question, evidence)

    def answer(
        self, understanding: Understanding, plan: Plan, evidence: Sequence[Evidence]
    ) -> Draft:
        """Choose whole sentences of the evidence, each cited to its characters."""
        extracts, rest = summary_claims(plan, evidence)
        records, rest = record_claims(rest, evidence)
        settled = [*extracts, *records]
        if not rest.questions:
            return Draft(claims=settled)
        draft = answer.answer(rest, evidence, self._relevance, self._settings)
        return draft.model_copy(update={"claims": [*settled, *draft.claims]})

    def supports(self, claim: str, quotes: Sequence[str], language: str) -> bool:
        """Compare by the embedder the words that quotes lack; deny across languages."""
        embedder = self._embedder
        if not serves(embedder, language) or detect_language("\n".join(quotes)) != language:
            return False
        return entails(claim, quotes, language, embedder, self._settings.answering.same_word)

    def recall(self, state: RecallState, notes: Sequence[Evidence]) -> Call:
        """Choose the memory agent's next action."""
        return recall.next_action(state, notes)

    def nearest(self, question: SubQuestion, evidence: Sequence[Evidence]) -> Nearest:
        """Return the likeliest sentence though it does not answer, and what it lacks."""

        def answers(asked: SubQuestion) -> bool:
            return any(one.grade >= grade.PARTLY for one in self.grade(asked, evidence))

        return nearest.nearest(self._relevance, question, evidence, answers)


class ClassicReasoner(RulesReasoner):
    """Ask everything at once, of one tool, once (SPEC L4)."""

    name = "classic"

    def understand(self, question: str, history: Sequence[Turn]) -> Understanding:
        """Take the whole question as one part."""
        known = super().understand(question, history)
        about = known.parts[0].about if len(known.parts) == 1 else ""
        return known.model_copy(
            update={
                "kind": "plain",
                "reason": "the classic pipeline does not split",
                "parts": [Part(text=question, about=about)],
                "required_fields": known.required_fields[:1],
            }
        )

    def plan(self, understanding: Understanding, tools: Sequence[ToolSpec]) -> Plan:
        """Call the classic search alone."""
        part = understanding.parts[0]
        question = SubQuestion(
            id="q1",
            text=part.text,
            about=part.about,
            query=part.search_text,
            language=understanding.language,
            wants="list" if understanding.intent == "recommend" else "text",
            calls=[
                Call(
                    tool="search_classic",
                    arguments={"query": part.search_text, "language": understanding.language},
                )
            ],
        )
        return Plan(questions=[question])

    def rewrite(
        self,
        question: SubQuestion,
        evidence: Sequence[Evidence],
        tools: Sequence[ToolSpec],
    ) -> Rewrite | None:
        """Never search twice."""
        return None


_loaded: set[str] = set()


def load_words(question: str, settings: Settings, embedder: Embedder | None) -> None:
    """Load what a question of this language is read with, once per process.

    The first question would pay for it (about a second: patterns, word lists, the reader's weights)
    and could use up a small `budget.seconds` before anything is searched.
    """
    language = detect_language(question)
    if language in _loaded:
        return
    _loaded.add(language)
    reasoner = RulesReasoner(settings, lambda terms: dict.fromkeys(terms, 1.0), embedder)
    asks_to_keep(question)
    query = reasoner.understand(question, [])
    plan = reasoner.plan(query, [])
    text = Evidence(
        evidence_id="e1",
        chunk_id="c1",
        document_id="d1",
        document_key="d1",
        source="",
        title=question,
        text=question,
        language=language,
    )
    for asked in plan.questions:
        reasoner.grade(asked, [text])
    reasoner.answer(query, plan, [text])
