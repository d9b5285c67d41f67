"""Ask more than the question's own words, when the search itself is weak (SPEC M2).

Query2Doc adds a passage that a model expects to the query (Wang et al. 2023); HyDE lets its vector
stand for the query (Gao et al. 2022), a last resort behind a higher gate. A passage that drifts
from the question is thrown away. Without a model nothing is written (SPEC T5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from core.errors import ModelError
from core.language.analysis import content_terms, query_terms, terms
from core.language.scan import WORD, fold, words_replaced
from core.language.words import cyrillic_dictionary, is_known
from core.types import Evidence
from models.chat.types import ModelCancelled
from models.embeddings import CutsWords, serves
from retrievers.fusion import MAX_TERMS, RRF_CONSTANT, VECTOR, ChannelQuery
from retrievers.types import Index, Query, RetrievalResult

LONG = 6  # letters from which on a word of two pieces may be misspelt
ANY = 99  # strangeness of a word that may be misspelt whatever it is
_LEAST = 4  # letters of a word that is corrected
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ"
MOST = 3  # words of one question; more are a language that the documents do not have


def corrections(index: Index, query: Query, *, surely: bool = True) -> dict[str, str]:
    """Return what misspelt words of a query should be, by the word as it is written.

    A candidate is one letter left out, put in, exchanged or swapped with its neighbour away
    (Damerau 1964: four of five misspellings), a word of documents the caller may see, and the
    commonest such. What a dictionary holds is no misspelling: that of Russian or Ukrainian, else
    the vocabulary of the embedder, which cuts its common words into one or two pieces. A name must
    have two pieces more than what it is read as. Of 60 questions on other subjects one is changed,
    29 without these rules.

    Where not `surely`, whatever no document has may be misspelt: for who asks back. A surely
    corrected question whose meaning drifts from the one that was typed is left as it was.
    """
    segments, collection = index.search, index.collection.id
    languages = segments.languages(collection) | ({query.language} if query.language else set())

    def analysed(word: str) -> set[str]:
        return {term for code in languages for term in terms(word, code)}

    def shares(words: Iterable[str]) -> dict[str, float]:
        groups = {word: analysed(word) for word in words}
        found = segments.shares(collection, sorted(set().union(*groups.values())))
        return {word: max(found[term] for term in group) for word, group in groups.items() if group}

    content = set(content_terms(query.text, query.language))
    written = dict.fromkeys(one for one in WORD.findall(query.text) if len(one) >= _LEAST)
    asked = [word for word in written if not content.isdisjoint(terms(word, query.language))]
    unknown = [word for word, share in shares(asked).items() if not share]
    strange = {word: _strangeness(index, query, word) if surely else ANY for word in unknown}
    common = {word for word in unknown if len(word) >= LONG and not _is_name(query, word)}
    unknown = [word for word in unknown if strange[word] >= (2 if word in common else 3)]
    if len(unknown) > MOST:
        return {}
    found: dict[str, str] = {}
    for word in unknown:
        most = strange[word] - (2 if _is_name(query, word) else 1)
        slips = set(_one_slip(fold(word)))
        if surely and not word.isascii():  # to look a word up is quicker than to analyse it
            slips = {one for one in slips if _strangeness(index, query, one) <= most}
        near = {one: share for one, share in shares(slips).items() if share}
        words = [one for one in near if not surely or _strangeness(index, query, one) <= most]
        ranked = sorted(words, key=lambda one: (-near[one], one))
        best = next((one for one in ranked if _visible(index, query, analysed(one))), None)
        if best is not None:
            found[word] = best.capitalize() if word[0].isupper() else best
    return {} if surely and _drifts(index, query, words_replaced(query.text, found)) else found


def is_visible(index: Index, query: Query, word: str) -> bool:
    """Tell whether documents that the caller may see have a word, with all of its parts."""
    languages = index.search.languages(index.collection.id)
    groups = query_terms(word, languages | ({query.language} if query.language else set()))
    return bool(groups) and all(_visible(index, query, set(one)) for one in groups)


def _is_name(query: Query, word: str) -> bool:
    return word[0].isupper() and not query.text.startswith(word)


def _strangeness(index: Index, query: Query, word: str) -> int:
    """Return in how many pieces a vocabulary has a word; 1 for words of a dictionary.

    Where there is neither, no word is strange.
    """
    folded = fold(word)
    if set(folded) <= set(_CYRILLIC):
        if is_known(folded, cyrillic_dictionary(folded, query.language)):
            return 1
        if not _is_name(query, word):
            return 3
    model = index.embedder
    if not isinstance(model, CutsWords):
        return 1
    forms = (folded, folded.capitalize(), folded.removesuffix("s"))  # a plural is as strange
    return min(map(model.pieces, forms))


def _one_slip(word: str) -> Iterator[str]:
    letters = next((one for one in (_LATIN, _CYRILLIC) if set(word) <= set(one)), "")
    for place in range(len(word) + 1 if letters else 0):
        before, after = word[:place], word[place:]
        if after and len(word) > _LEAST:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in letters:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]


def _drifts(index: Index, query: Query, text: str) -> bool:
    model, language = index.embedder, query.language or ""
    if text == query.text or not serves(model, language):
        return False
    cosine = float(model.embed_query(text) @ model.embed_query(query.text))
    return model.similarity(cosine, language) < index.settings.answering.drift_similarity


def _visible(index: Index, query: Query, wanted: set[str]) -> bool:
    segments, collection = index.search, index.collection.id
    found = segments.candidates(query.auth, collection, terms=[wanted], vector=None, pool=1)
    return bool(found.chunk_ids)


QUERY2DOC_DISTANCE = 0.6  # a best distance beyond this lets a model write a passage
HYDE_DISTANCE = 0.99  # one beyond this lets that passage stand for the query

ORIGINAL = 5.0  # a word of the question weighs as much as five of the passage (Wang et al. 2023)


def expand(
    index: Index, query: Query, asked: ChannelQuery, distance: float | None
) -> ChannelQuery | None:
    """Return the query with a written passage, or None when a gate is closed.

    The gates: a model that writes, a best distance beyond `QUERY2DOC_DISTANCE`, and a passage
    whose similarity to the question is at least `answering.drift_similarity`.
    """
    if index.writer is None or index.embedder is None or asked.vector is None:
        return None
    if distance is None or distance <= QUERY2DOC_DISTANCE:
        return None
    try:
        passage = index.writer.write_passage(query.text, query.language or "").strip()
        vector = index.embedder.embed_query(passage) if passage else None
    except ModelCancelled:
        raise  # the caller gave up; going on without the passage would not be what they want
    except ModelError:
        vector = None
    asked.partial = vector is None
    if vector is None:
        return None
    cosine = float(vector @ asked.vector)
    alike = index.embedder.similarity(cosine, query.language or "")
    if alike < index.settings.answering.drift_similarity:
        return None
    if distance > HYDE_DISTANCE:
        return replace(asked, vector=vector, notes=[*asked.notes, "HyDE: a written passage"])
    languages = index.search.languages(index.collection.id)
    known = set(asked.terms)
    added = [group for group in query_terms(passage, languages) if group not in known]
    added = added[: MAX_TERMS - len(asked.terms)]
    both = asked.vector + vector
    return ChannelQuery(
        terms=[*asked.terms, *added],
        weights=[*asked.weights, *([1 / ORIGINAL] * len(added))],
        vector=np.asarray(both / np.linalg.norm(both), dtype=np.float32),
        notes=[*asked.notes, "Query2Doc: a written passage joins the query"],
    )


def fuse_wordings(found: Mapping[str, RetrievalResult]) -> RetrievalResult:
    """Return what a search found for each wording of a query, as one ranking.

    That has as many hits as the longest of them. Each stage of the trace names its wording.
    """
    results = list(found.values())
    if len(results) == 1:
        return results[0]
    most = max(len(one.evidence) for one in results)
    return RetrievalResult(
        evidence=reciprocal_ranks([one.evidence for one in results])[:most],
        notes=list(dict.fromkeys(note for one in results for note in one.notes)),
        hidden=sum(one.hidden for one in results),
        stages=[
            stage.model_copy(update={"note": "; ".join(filter(None, (stage.note, text)))})
            for text, one in found.items()
            for stage in one.stages
        ],
        partial=any(one.partial for one in results),
    )


def reciprocal_ranks(rankings: Sequence[Sequence[Evidence]]) -> list[Evidence]:
    """Merge rankings by the sum of 1 / (RRF_CONSTANT + rank) (Cormack et al. 2009).

    Scores are shares of what the first of all rankings would get; a cosine is the best of those
    found. Equal scores fall by source and place.
    """
    found: dict[str, Evidence] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            share = (RRF_CONSTANT + 1) / (RRF_CONSTANT + rank) / len(rankings)
            earlier = found.get(item.chunk_id)
            if earlier is None:
                found[item.chunk_id] = item.model_copy(update={"score": share})
                continue
            near = max(one.scores.get(VECTOR, -1.0) for one in (earlier, item))
            scores = earlier.scores | ({VECTOR: near} if near > -1 else {})
            update = {"score": earlier.score + share, "scores": scores}
            found[item.chunk_id] = earlier.model_copy(update=update)
    return sorted(found.values(), key=lambda item: (-item.score, item.source, item.ordinal))
