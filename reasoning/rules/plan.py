"""Choose the tools of a question and write their calls; write them again in other words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import Any

from core.language.analysis import content_terms
from core.settings import Settings
from core.types import Call, Part, Plan, Rewrite, SubQuestion, ToolSpec, Understanding
from models.embeddings import Embedder, serves
from reasoning.planning.slots import filled, slots_in
from reasoning.question_words import similarity
from reasoning.rules.answering.summaries import SUMMARISE
from reasoning.rules.level import without_level
from reasoning.rules.lexicon import STEERING, lexicon
from reasoning.rules.records.schema import schema_of

GENERAL_SEARCH = ("search",)
RECORDS = "query_records"
# A tool whose score reaches this share of the best one is called as well.
CLOSE = 0.85  # chosen, not measured
NOT_FOR_SHARE = 0.5  # chosen, not measured
LEAST_NAMED = 1  # words of a question that may stand by itself; chosen, not measured


def plan(
    understanding: Understanding, tools: Sequence[ToolSpec], embedder: Embedder | None
) -> Plan:
    """Make one sub-question of each part, in the order they were asked.

    The tools of a part that waits for a slot are chosen by its other words.
    """
    questions = []
    for number, (part, wants) in enumerate(
        zip(understanding.parts, understanding.required_fields, strict=True), start=1
    ):
        known = part.model_copy(update={"text": _without_slots(part.text)})
        chosen = choose_tools(known, understanding.language, tools, embedder)
        # One part is the whole question: it is searched for just as it was written.
        alone = len(understanding.parts) == 1 and not part.about and wants != "topic"
        words = lexicon(understanding.language)
        query = without_level(understanding.question if alone else part.search_text, words)
        searched = query if alone else without_level(known.search_text, words)
        questions.append(
            SubQuestion(
                id=f"q{number}",
                text=part.text,
                about=part.about,
                query=query,
                language=understanding.language,
                wants=wants if understanding.intent != "recommend" else "list",
                calls=calls_for(searched, understanding.language, chosen),
                deps=[f"q{dep}" for dep in part.deps],
                slot=part.slot,
            )
        )
    return Plan(questions=questions)


def _without_slots(text: str) -> str:
    """Return a text with its slots left out, unless nothing is left then."""
    names = slots_in(text)
    if not names:
        return text
    bare = " ".join(filled(text, dict.fromkeys(names, " ")).split())
    return bare if any(character.isalnum() for character in bare) else text


def calls_for(query: str, language: str, tools: Sequence[ToolSpec]) -> list[Call]:
    """Return the calls that put a search text to these tools.

    A record tool gets the conditions the text names; the general one is left out without any.
    """
    calls = []
    recent = lexicon(language).search("recent", query) is not None
    for spec in tools:
        if spec.base != RECORDS:
            calls.append(Call(tool=spec.name, arguments={"query": query, "language": language}))
            continue
        schema = schema_of(spec)
        conditions = schema.named_values(query)
        if not spec.scoped and (not conditions or schema.is_within):
            continue
        # The words may name values of different kinds of records, so no condition is a must.
        arguments: dict[str, Any] = {"where": conditions, "match": "most", "language": language}
        if spec.scoped:
            arguments["query"] = query
        if recent and schema.dates:
            arguments["order_by"] = schema.dates[0]
        calls.append(Call(tool=spec.name, arguments=arguments))
    return calls


def choose_tools(
    part: Part, language: str, tools: Sequence[ToolSpec], embedder: Embedder | None
) -> list[ToolSpec]:
    """Return the scoped tools whose specs fit a part best, else the general ones.

    Only the part's own words count: what it is about is common to all its neighbours.
    """
    scoped = [spec for spec in tools if spec.scoped]
    if not scoped:
        return general_tools(tools)
    scores = {
        spec.name: word_score(part.text, language, spec, scoped)
        + meaning_score(part.text, language, spec, embedder)
        for spec in scoped
    }
    best = max(scores.values())
    if best <= 0:
        return scoped
    return [spec for spec in scoped if scores[spec.name] >= CLOSE * best]


def general_tools(tools: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return the unscoped search tools and the record query."""
    names = (*GENERAL_SEARCH, RECORDS)
    return [spec for spec in tools if spec.name in names]


def word_score(text: str, language: str, spec: ToolSpec, tools: Sequence[ToolSpec]) -> float:
    """Return the share of a text's words that a spec uses; words few specs use weigh more."""
    asked = set(content_terms(text, language))
    usage = Counter(term for tool in tools for term in _spec_terms(tool) & asked)
    if not usage:
        return 0.0
    weights = {term: log(1 + len(tools) / usage[term]) for term in usage}
    total = sum(weights.values())
    fits = sum(weights[term] for term in _spec_terms(spec) & asked)
    excluded = _terms("\n".join(spec.not_for))
    against = sum(weights.get(term, 0.0) for term in excluded & asked)
    return (fits - NOT_FOR_SHARE * against) / total


def meaning_score(text: str, language: str, spec: ToolSpec, embedder: Embedder | None) -> float:
    """Return how near a text is to the spec's purpose or examples, 0..1; 0 if unserved."""
    if not serves(embedder, language):
        return 0.0
    cosines = embedder.embed_documents([spec.purpose, *spec.examples]) @ embedder.embed_query(text)
    return min(1.0, embedder.similarity(float(max(cosines)), language))


def _spec_terms(spec: ToolSpec) -> frozenset[str]:
    described = [spec.name.replace("_", " "), spec.purpose, *spec.examples]
    described += [info.name.replace("_", " ") for info in spec.fields]
    return _terms("\n".join(described))


@lru_cache(maxsize=256)
def _terms(text: str) -> frozenset[str]:
    found: set[str] = set()
    for line in text.splitlines():
        found.update(content_terms(line))
    return frozenset(found)


def rewrite(
    question: SubQuestion,
    tools: Sequence[ToolSpec],
    *,
    settings: Settings,
    embedder: Embedder | None,
    found: bool = True,
) -> Rewrite | None:
    """Return a search for the content words with their synonyms, or None when it drifts.

    It goes to the same tools with wider pools and, where those are of one source each, to the
    search without a scope; to those without a scope alone where the same ones `found` nothing.
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
    chosen = [spec for spec in tools if spec.name in names and found]
    general = general_tools(tools)
    if any(spec.scoped for spec in chosen):
        chosen += [spec for spec in general if spec.base != RECORDS and spec not in chosen]
    calls = [
        extended(call)
        for call in calls_for(query, lexicon(question.language).language, chosen or general)
    ]
    return Rewrite(query=query, calls=calls, similarity=round(kept, 3), reason=how)


def asked_by_itself(question: SubQuestion) -> SubQuestion | None:
    """Return a question without what it took from an earlier one, None where it needs that."""
    words = lexicon(question.language)
    bare = words.remove(question.text, "recent", "filler")
    named = set(content_terms(bare, question.language))
    needs = words.search("pronoun", bare) or words.starts("opener", bare)
    if not question.about or question.deps or needs or len(named) < LEAST_NAMED:
        return None
    calls = [
        call.model_copy(update={"arguments": {**call.arguments, "query": question.text}})
        if "query" in call.arguments
        else call
        for call in question.calls
    ]
    return question.model_copy(update={"about": "", "query": question.text, "calls": calls})


def _core(question: SubQuestion) -> str:
    """Return the words of a question that name something, as written."""
    words = lexicon(question.language)
    bare = words.remove(question.query, *STEERING, "question", "auxiliary", "pronoun")
    kept = " ".join(bare.split())
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
