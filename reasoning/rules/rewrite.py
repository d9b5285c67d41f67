"""Propose another search for a sub-question that found too little, and guard against drift."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.analysis import content_terms
from core.settings import Settings
from core.types import Call, Rewrite, SubQuestion, ToolSpec
from models.embeddings import Embedder
from reasoning.drift import similarity
from reasoning.rules.answering.summaries import SUMMARISE
from reasoning.rules.answering.wanted import steering_removed
from reasoning.rules.lexicon import lexicon
from reasoning.rules.plan import calls_for, general_tools


def rewrite(
    question: SubQuestion,
    tools: Sequence[ToolSpec],
    *,
    settings: Settings,
    embedder: Embedder | None,
    found: bool = True,
) -> Rewrite | None:
    """Return a search for the content words with their synonyms, or None when it drifts.

    It goes to the same tools with wider pools, or to those without a scope where the same ones
    `found` nothing at all.
    """
    core = _core(question)
    query = " ".join([core, *_synonyms(core, question.language)]).strip()
    how = "content words and synonyms, wider pools"
    kept = similarity(question.query, query, question.language, embedder)
    if kept < settings.answering.drift_similarity:
        query, how = core, f"{how} drifted ({kept:.2f}); content words alone"
        kept = similarity(question.query, query, question.language, embedder)
        if kept < settings.answering.drift_similarity:
            return None
    names = {call.tool for call in question.calls} - {SUMMARISE}
    chosen = [spec for spec in tools if spec.name in names and found] or general_tools(tools)
    calls = [
        extended(call) for call in calls_for(query, lexicon(question.language).language, chosen)
    ]
    return Rewrite(query=query, calls=calls, similarity=round(kept, 3), reason=how)


def _core(question: SubQuestion) -> str:
    """Return the words of a question that name something, as written."""
    words = lexicon(question.language)
    text = steering_removed(question.query, words)
    for name in ("question", "auxiliary", "pronoun"):
        text = words.remove(name, text)
    kept = " ".join(text.split())
    return kept if content_terms(kept, question.language) else question.query


def _synonyms(text: str, language: str) -> list[str]:
    asked = set(content_terms(text, language))
    added = []
    for group in lexicon(language).synonyms:
        analysed = {word: set(content_terms(word, language)) for word in group}
        if any(terms & asked for terms in analysed.values()):
            added += [word for word, terms in analysed.items() if not terms & asked]
    return added


def extended(call: Call) -> Call:
    """Return the call with wider pools."""
    return Call(tool=call.tool, arguments={**call.arguments, "extended": True})
