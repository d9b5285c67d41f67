"""Evidence, sub-questions and claims made by hand, and the word weights of such a collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log

from fakes import short_hash

from core.language.analysis import terms
from core.trace import RunRecord
from core.types import (
    AnswerKind,
    Citation,
    Claim,
    Draft,
    Evidence,
    Plan,
    SubQuestion,
    TermWeights,
    Understanding,
)
from reasoning.types import Reasoner


def piece(text: str, language: str = "en", **values: object) -> Evidence:
    """Build evidence whose ids come from its text."""
    made = short_hash(text, sorted(values))
    given = {
        "evidence_id": f"e-{made}",
        "chunk_id": made,
        "document_id": made,
        "document_key": made,
        "source": f"{made[:6]}.txt",
        "title": "",
        "text": text,
        "language": language,
    }
    return Evidence.model_validate({**given, **values})


def asking(
    text: str, language: str = "en", wants: AnswerKind = "text", about: str = "", **values: object
) -> SubQuestion:
    """Build a sub-question as a plan would hold it."""
    query = f"{text} {about}".strip()
    return SubQuestion.model_validate(
        {
            "id": "q1",
            "text": text,
            "query": query,
            "about": about,
            "language": language,
            "wants": wants,
            **values,
        }
    )


def answered(
    reasoner: Reasoner, question: SubQuestion, evidence: Sequence[Evidence], **known: object
) -> Draft:
    """Let a reasoner answer a question of one part from evidence."""
    understanding = Understanding.model_validate(
        {"question": question.text, "language": question.language, **known}
    )
    return reasoner.answer(understanding, Plan(questions=[question]), evidence)


def graded(item: Evidence, grade: int = 3, question_id: str = "q1") -> Evidence:
    return item.model_copy(update={"grades": {question_id: grade}})


def weights_of(texts: Sequence[tuple[str, str]]) -> TermWeights:
    """Weigh terms as the catalogue does, over (text, language) pairs."""
    uses = Counter(term for text, language in texts for term in set(terms(text, language)))
    return lambda wanted: {term: log(1 + len(texts) / (1 + uses[term])) for term in wanted}


def weights_for(evidence: Sequence[Evidence]) -> TermWeights:
    return weights_of([(f"{item.title} {item.text}", item.language) for item in evidence])


def citing(item: Evidence, quote: str, text: str | None = None, /, **changes: object) -> Claim:
    """Build a claim that quotes an item; `changes` spoil the citation."""
    start = max(0, item.text.find(quote))
    given = {
        "evidence_id": item.evidence_id,
        "document_id": item.document_id,
        "source": item.source,
        "chunk_id": item.chunk_id,
        "start": start,
        "end": start + len(quote),
        "quote": quote,
    }
    citation = Citation.model_validate({**given, **changes})
    return Claim(text=quote if text is None else text, citations=[citation], question_id="q1")


def run_record(run_id: str = "r1", **values: object) -> RunRecord:
    """Build a run that ann of acme had in the collection "main"."""
    given = {
        "run_id": run_id,
        "tenant": "acme",
        "user": "ann",
        "collection": "main",
        "question": "Why?",
        "pipeline": "agentic",
        "created_at": "2026-01-01",
        "index_version": 1,
        "result": {"answer": "Because", "refused": False},
        "trail": [],
    }
    return RunRecord.model_validate({**given, **values})
