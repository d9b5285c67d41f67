"""What "how many" counts: the noun asked for, and the numbers of a text that count it."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import takewhile

from core.language.analysis import terms
from core.language.inflection import readings
from core.language.stopwords import stopwords
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.values.forms import NUMBER

MOST_NOUN, AFTER = 3, 6  # words of the noun asked for; words behind a number
HAN_AROUND, HAN_NOUN = 10, 4  # characters
WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\d.,\u00a0 ]*\d|\d|[^\w\s]")
# A year, a clock time, a decimal or a version, the number of an item, an amount or a share.
NO_COUNT = re.compile(r"(?:1\d{3}|20\d{2})(?!\d|,\d)|\d+(?:[:.]\d|[.)] |\s?[%€$£₽°])")
CLAUSE_ENDS = ";!?。；！？"


@lru_cache(maxsize=256)
def counted_noun(text: str, words: Lexicon) -> frozenset[str]:
    """Return the terms of the noun that a question counts, none when it counts nothing."""
    asked = re.finditer(words.alternatives("counting"), text, re.IGNORECASE)
    return frozenset().union(*(_noun(text[one.end() :], words) for one in asked))


def _noun(behind: str, words: Lexicon) -> frozenset[str]:
    """Return the terms of the noun that a text begins with."""
    if not words.known.spaced:
        return frozenset(terms(behind[:HAN_NOUN], words.language)) - words.any_of("counter")
    common = stopwords(words.language) | words.any_of("auxiliary_verb", "base_verb", "question")
    run = list(takewhile(lambda one: one.isalpha() and one not in common, _low(behind)))
    if dictionary := words.known.dictionary:
        said = [{one.pos for one in readings(word, dictionary)[:2]} for word in run]
        nouns = [place for place, kinds in enumerate(said) if "NOUN" in kinds]
        verbs = [place for place, kinds in enumerate(said) if kinds == {"VERB"}]
        run = run[nouns[0] : nouns[0] + 1] if nouns and min(verbs, default=9) > nouns[0] else []
    return frozenset(terms(" ".join(run[:MOST_NOUN]), words.language))


def counts(text: str, nouns: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a number of a sentence counts one of the nouns: it stands by it, or alone.

    The second is for a sentence that says the noun elsewhere. (Of SQuAD's gold sentences .92 pass,
    of others with a number in the same passages .24; n = 213 and 444.)
    """
    if words.known.spaced and not nouns & set(terms(text, words.language)):
        return False
    written = re.finditer(words.alternatives("numeral"), text, re.IGNORECASE)
    ones = words.any_of("ones") if words.known.spaced else ()
    numbers = [one.span() for one in written if one.group().casefold() not in ones]
    numbers += [one.span() for one in NUMBER.finditer(text)]
    return any(_counts(text, start, end, nouns, words) for start, end in numbers)


def _counts(text: str, start: int, end: int, nouns: frozenset[str], words: Lexicon) -> bool:
    """Tell whether one of the nouns stands behind text[start:end], or nothing it could count."""
    if not words.known.spaced:
        about = "".join(words.any_of("approximately"))  # between a noun and how many there are
        if text[:start].rstrip(f"{about} ").endswith(tuple(nouns)):  # 员工620人
            return True
        behind = text[end : end + HAN_AROUND].lstrip()
        counter = behind[:1] in words.any_of("counter")
        bare = not behind[counter : counter + 1].isalnum()
    else:
        small = stopwords(words.language)
        after = list(takewhile(lambda one: one not in CLAUSE_ENDS, _low(text[end:])[:AFTER]))
        bare = not after or after[0] in small or not after[0][0].isalnum()
        while after and (after[0] in small or not after[0][0].isalnum()):
            del after[0]
        behind = " ".join(takewhile(lambda one: one not in small, after))
    if nouns & set(terms(behind, words.language)):
        return True
    return bare and NO_COUNT.match(text, start) is None and text[start - 1 : start] != ":"


def _low(text: str) -> list[str]:
    return [match.group().casefold() for match in WORD.finditer(text)]
