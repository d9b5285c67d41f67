"""The entity channel: candidates that name what the question names (SPEC M3)."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.analysis import query_terms, terms
from core.language.detect import detect_language
from core.language.entities import entities
from core.types import Evidence
from models.entity_tagger import entity_tagger
from retrievers.types import Searched

ENTITIES_WEIGHT = 0.2  # added to evidence that names all entities of the question

ENTITIES = "entities"
Name = list[frozenset[str]]  # the words of a name, each with its possible index terms


def boost_entities(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Add `weight_entities` times the share of the question's entities that evidence names.

    Equal scores keep their order; `scores["entities"]` is the share.
    """
    shares = entity_shares(searched, evidence)
    weight = ENTITIES_WEIGHT
    boosted = []
    for item in evidence:
        share = shares.get(item.chunk_id, 0.0)
        scores = {**item.scores, ENTITIES: share}
        update = {"score": item.score + weight * share, "scores": scores}
        boosted.append(item.model_copy(update=update) if share else item)
    boosted.sort(key=lambda item: -item.score)
    return boosted, f"{len(shares)} name entities of the question" if shares else ""


def entity_shares(searched: Searched, candidates: Sequence[Evidence]) -> dict[str, float]:
    """Return the share of the question's entities that candidates name, by chunk id, above 0.

    Each entity is weighted by the mean rarity of its words.
    """
    names = question_names(searched) if candidates else []
    weights = [_weight(searched, name) for name in names]
    shares = {}
    for item in candidates:
        said = frozenset(terms(f"{item.title}\n{item.section}\n{item.text}", item.language))
        named = [
            weight
            for name, weight in zip(names, weights, strict=True)
            if all(said & word for word in name)
        ]
        if named:
            shares[item.chunk_id] = sum(named) / sum(weights)
    return shares


def question_names(searched: Searched) -> list[Name]:
    """Return the entities of the question as index terms, each once, in its order."""
    index, query = searched.index, searched.query
    language = query.language or detect_language(query.text)
    tagger = entity_tagger(index.settings.retrieval.entity_model, language)
    languages = index.catalogue.languages(index.collection.id)
    names: list[Name] = []
    for entity in entities(query.text, language, tagger):
        name = query_terms(entity.text, languages)
        if name and name not in names:
            names.append(name)
    return names


def _weight(searched: Searched, name: Name) -> float:
    """Weigh a name by the mean inverse frequency of its words, the commonest reading of each."""
    index = searched.index
    wanted = sorted(term for word in name for term in word)
    rarity = index.catalogue.inverse_frequencies(index.collection.id, wanted)
    return sum(min(rarity[term] for term in word) for word in name) / len(name)
