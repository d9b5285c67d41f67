"""Correct the ranking by what a chunk is, beside what it says (SPEC T3, T4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from core.language.analysis import content_terms, query_terms
from core.language.cues import cues
from core.language.detect import detect_language
from core.language.identifiers import find_identifiers
from core.types import Evidence
from retrievers.shapes import code_share, is_index_page
from retrievers.types import Searched
from retrievers.versions import asked_version, version_distance

FACTORS = "factors"
Factor = Callable[[Evidence], tuple[str, float]]


def factors(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Add to each score what its version, headings, code, shape and API names are worth.

    Every amount is a setting, in units of a score of 1, or of the best score where that is more
    (BM25 alone). Scores may leave 0..1; equal ones keep their order, and `scores["factors"]` is the
    sum of what was added.
    """
    settings = searched.index.settings
    sinks = settings.factor_index_page
    chosen: list[Factor] = [
        *_by_version(searched, evidence),
        *_by_code(searched),
        *_by_api_name(searched),
        *_by_heading(searched),
        lambda item: ("index page", sinks * is_index_page(item, settings)),
    ]
    unit = max([1.0, *(item.score for item in evidence)])
    counts: Counter[str] = Counter()
    corrected = []
    for item in evidence:
        named = [factor(item) for factor in chosen]
        counts.update(name for name, amount in named if amount)
        added = unit * sum(amount for _, amount in named)
        update = {"score": item.score + added, "scores": {**item.scores, FACTORS: added}}
        corrected.append(item.model_copy(update=update) if added else item)
    corrected.sort(key=lambda item: -item.score)
    return corrected, ", ".join(f"{name}: {count}" for name, count in counts.items())


def _by_version(searched: Searched, evidence: list[Evidence]) -> Iterable[Factor]:
    settings = searched.index.settings
    asked = asked_version(searched, evidence)
    amounts = {
        "exact": settings.factor_version_exact,
        "near": settings.factor_version_near,
        "far": settings.factor_version_far,
    }

    def version(item: Evidence) -> tuple[str, float]:
        distance = item.version and version_distance(
            asked, item.version, near=settings.version_near
        )
        return (f"version {asked} {distance}", amounts[distance]) if distance else ("", 0.0)

    return [version] if asked else []


def _by_code(searched: Searched) -> Iterable[Factor]:
    settings, text = searched.index.settings, searched.query.text
    words = cues(searched.query.language or detect_language(text))
    asks = bool(find_identifiers(text)) or words.found("code", text)
    amount = settings.factor_code if asks else settings.factor_code_other
    yield lambda item: ("code", amount * code_share(item))


def _by_api_name(searched: Searched) -> Iterable[Factor]:
    names = [name.removesuffix("()") for name in find_identifiers(searched.query.text)]
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(name)}(?!\w)" for name in names))
    amount = searched.index.settings.factor_api_name

    def api_name(item: Evidence) -> tuple[str, float]:
        said = pattern.search(f"{item.title}\n{item.section}\n{item.text}")
        return "API name", amount if said else 0.0

    return [api_name] if names else []


def _by_heading(searched: Searched) -> Iterable[Factor]:
    """Prefer what is filed under words of the query: its whole title, or a whole keyword.

    The amount is for a heading that is the query; one that is a part of it counts as much of the
    query's words as it covers, each weighted by its rarity.
    """
    index, amount = searched.index, searched.index.settings.factor_heading
    hot, collection = index.store.hot, index.collection.id
    asked = query_terms(searched.query.text, hot.languages(collection))
    rarity = hot.idf(collection, sorted({term for word in asked for term in word}))
    weights = {word: min(rarity[term] for term in word) or 1.0 for word in asked}

    def heading(item: Evidence) -> tuple[str, float]:
        keywords = item.metadata.get("keywords")
        filed = [item.title, *(keywords if isinstance(keywords, list) else [])]
        said = (set(content_terms(str(text), item.language)) for text in filed if text)
        return "heading", amount * max((_covered(weights, words) for words in said), default=0.0)

    return [heading] if asked and amount else []


def _covered(asked: dict[frozenset[str], float], said: set[str]) -> float:
    """Return the share of the query that a heading covers, 0 unless all of it is in the query."""
    if not said or not said <= frozenset().union(*asked):
        return 0.0
    total = sum(asked.values())
    return sum(weight for word, weight in asked.items() if word & said) / total
