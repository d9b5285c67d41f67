"""Read the words of a language before the time of a run is counted."""

from __future__ import annotations

from core.language.detect import detect_language
from core.settings import Settings
from core.types import Evidence
from models.embeddings import Embedder
from reasoning.rules.reasoner import RulesReasoner
from reasoning.statements import asks_to_keep

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
