"""Propose other searches for a sub-question that found too little, and guard against drift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from core.language.analysis import analyze, content_terms
from core.settings import Settings
from core.tool_spec import ToolSpec
from core.types import Call, Evidence, Rewrite, SubQuestion, TermWeights
from models.embeddings import Embedder
from reasoning.drift import similarity
from reasoning.rules.lexicon import lexicon
from reasoning.rules.plan import calls_for, general_tools
from reasoning.rules.wanted import steering_removed

FEEDBACK_TERMS, FEEDBACK_DOCUMENTS = 4, 3
READ_AROUND = 2


def rewrite(
    question: SubQuestion,
    evidence: Sequence[Evidence],
    tools: Sequence[ToolSpec],
    attempt: int,
    *,
    settings: Settings,
    weights: TermWeights,
    embedder: Embedder | None,
) -> Rewrite | None:
    """Return the search of this attempt (counted from 1), or None when it drifts.

    First the content words with their synonyms go to the same tools, with wider pools; then words
    of the best evidence are added and all general tools are asked.
    """
    words = lexicon(question.language)
    core = _core(question)
    if attempt <= 1:
        added = _synonyms(core, question.language)
        names = {call.tool for call in question.calls}
        chosen = [spec for spec in tools if spec.name in names] or general_tools(tools)
        how = "content words and synonyms, wider pools"
    else:
        added = _feedback(core, evidence, question.language, weights)
        chosen = general_tools(tools)
        how = "words of the best evidence, all general tools"
    query = " ".join([core, *added]).strip()
    kept = similarity(question.query, query, question.language, embedder)
    if kept < settings.drift_similarity:
        query, how = core, f"{how} drifted ({kept:.2f}); content words alone"
        kept = similarity(question.query, query, question.language, embedder)
        if kept < settings.drift_similarity:
            return None
    calls = [extended(call) for call in calls_for(query, words.language, chosen)]
    if attempt > 1:
        calls += [
            Call(tool="read_document", arguments={"chunk_id": item.chunk_id})
            for item in evidence[:READ_AROUND]
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


def _feedback(
    core: str, evidence: Sequence[Evidence], language: str, weights: TermWeights
) -> list[str]:
    """Return the most telling words of the best evidence (pseudo-relevance feedback)."""
    asked = set(content_terms(core, language))
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for item in evidence[:FEEDBACK_DOCUMENTS]:
        counts.update(set(content_terms(item.text, item.language)) - asked)
        for token in analyze(item.text, item.language):
            written.setdefault(token.term, item.text[token.start : token.end])
    rarity = weights(list(counts))
    ranked = sorted(counts, key=lambda term: (-counts[term] * rarity[term], term))
    return [written.get(term, term) for term in ranked[:FEEDBACK_TERMS]]


def extended(call: Call) -> Call:
    """Return the call with wider pools."""
    return Call(tool=call.tool, arguments={**call.arguments, "extended": True})
