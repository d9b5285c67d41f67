"""Correct words of a question that no document has but for one slip of the fingers.

A candidate is one letter left out, put in, exchanged or swapped with its neighbour away (Damerau
1964: four of five misspellings), a word of documents the caller may see, and the commonest such.
What a dictionary holds is no misspelling: that of Russian or Ukrainian, else the vocabulary of the
embedder, which cuts its common words into one or two pieces. A name must have two pieces more than
what it is read as. Of 60 questions on other subjects one is changed, 29 without these rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from core.language.analysis import content_terms, query_terms, terms
from core.language.scan import WORD, fold, words_replaced
from core.language.words import cyrillic_dictionary, is_known
from models.embeddings import CutsWords, serves
from retrievers.types import Index, Query

LONG = 6  # letters from which on a word of two pieces may be misspelt
_LEAST = 4  # letters of a word that is corrected
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґ"
MOST = 3  # words of one question; more are a language that the documents do not have


def corrections(index: Index, query: Query, *, surely: bool = True) -> dict[str, str]:
    """Return what misspelt words of a query should be, by the word as it is written.

    Where not `surely`, for who asks back, a name may be misspelt, too. A question that is surely
    corrected, and whose meaning drifts from that of the one that was typed, is left as it was.
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
    strange = {word: _strangeness(index, query, word) for word in unknown}
    common = {word for word in unknown if len(word) >= LONG and not _is_name(query, word)}
    least = 2 if not surely else 3
    unknown = [word for word in unknown if strange[word] >= (2 if word in common else least)]
    if len(unknown) > MOST:
        return {}
    found: dict[str, str] = {}
    for word in unknown:
        most = strange[word] - (2 if _is_name(query, word) else 1)
        slips = set(_one_slip(fold(word)))
        if surely and not word.isascii():  # to look a word up is quicker than to analyse it
            slips = {one for one in slips if _strangeness(index, query, one) <= most}
        slips.discard(fold(word)[:-1])  # its stem is no other word
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
