"""Forms of answers: what a question asks for by its form, and what "how many" counts."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from core.language.analysis import terms
from core.language.cues import stopwords
from core.language.words import readings
from core.types import AnswerKind
from languages.language import known_languages, read_yaml
from reasoning.rules.lexicon import Lexicon

FORMS = Path(__file__).with_name("forms.yaml")
DIGITS = re.compile(r"\d")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
# A year of three digits is like any other number, so that something must say what it is. (Of
# sentences with a number that answer no question for a date 8 % fewer pass so, of gold ones none.)
YEAR_OR_DATE = re.compile(
    "|".join(
        [
            r"(?<![\d.,$€£¥])[12]\d{3}(?!\d|[.,]\d|\s?%)|\d{1,2}[./:：-]\d{1,2}",
            *(dated for one in known_languages().values() for dated in one.dated),
        ]
    )
)
CAPITALISED = re.compile(
    r"(?<=\s)[^\W\d_a-zа-яёіїєґ][\w'’-]+|[\u4e00-\u9fff]|[A-Z][a-z]*[A-Z]\w*", re.UNICODE
)


class Form(NamedTuple):
    """Hold one form of values: its kind, None for any, what holds it, and whether that is enough.

    A year is like any number: it must also look like one of its kind.
    """

    kind: AnswerKind | None
    holds: re.Pattern[str]
    enough: bool = False


@cache
def forms() -> dict[str, Form]:
    """Return the forms of numbers and dates by name; a text may say them in any language."""
    spoken = [one.read("forms") for one in known_languages().values()]
    found = {}
    for name, one in read_yaml(FORMS).items():
        holding = [
            own["holds"] for own in (one, *(s.get(name, {}) for s in spoken)) if "holds" in own
        ]
        found[name] = Form(
            one.get("kind"), re.compile("|".join(holding), re.IGNORECASE), bool(one.get("enough"))
        )
    return found


@cache
def _asks(language: str) -> dict[str, re.Pattern[str]]:
    known = known_languages().get(language)
    listed = known.read("forms") if known is not None else {}
    return {name: re.compile(one["asks"], re.IGNORECASE) for name, one in listed.items()}


def form_asked(text: str, language: str) -> str:
    """Return the form of number or date that a question asks for, "" for none."""
    return next((name for name, asks in _asks(language).items() if asks.search(text)), "")


def has_kind(
    kind: AnswerKind,
    text: str,
    words: Lexicon,
    asked: frozenset[str] = frozenset(),
    form: str = "",
) -> bool:
    """Tell whether a text contains a value of the wanted kind; text and yes/no always do.

    A person or place needs a name that is not among the terms `asked`, a number or a date the
    `form` that is asked for: a version, an amount of money.
    """
    if form and not forms()[form].holds.search(text):
        return False
    if form and forms()[form].enough:
        return True
    if kind == "number":
        if (form and forms()[form].kind) or DIGITS.search(text) is not None:
            return True
        # "One" is an article or a pronoun more often than a number.
        written = words.all_of("numeral", text)
        return any(one.group().casefold() not in words.any_of("ones") for one in written)
    if kind == "date":
        return YEAR_OR_DATE.search(text) is not None or words.found("day_name", text)
    if kind in ("person", "place"):
        # The first word of a sentence has a capital anyway: no function word is a name.
        first = text.split(maxsplit=1)[:1]
        common = stopwords(words.language)
        lead = "" if first and first[0].casefold().strip(",") in common else " "
        names = CAPITALISED.findall(f"{lead}{text}")
        return any(not asked.issuperset(terms(name, words.language)) for name in names)
    return True


def without_numbers(text: str, numbers: frozenset[str]) -> str:
    """Return a text without the numbers that the question says itself: they are no answer."""
    return NUMBER.sub(lambda match: "" if match.group() in numbers else match.group(), text)


MOST_NOUN, AFTER = 3, 6  # words of the noun asked for; words behind a number; chosen, not measured
HAN_AROUND, HAN_NOUN = 10, 4  # characters; chosen, not measured
WORD = re.compile(r"[^\W\d_][\w'’-]*|\d[\d.,\u00a0 ]*\d|\d|[^\w\s]")
# A year, a clock time, a decimal or a version, the number of an item, an amount or a share.
NO_COUNT = re.compile(r"(?:1\d{3}|20\d{2})(?!\d|,\d)|\d+(?:[:.]\d|[.)] |\s?[%€$£₽°])")
CLAUSE_ENDS = ";!?。；！？"


@lru_cache(maxsize=256)
def counted_noun(text: str, words: Lexicon) -> frozenset[str]:
    """Return the terms of the noun that a question counts, none when it counts nothing."""
    asked = words.all_of("counting", text)
    return frozenset().union(*(_noun(text[one.end() :], words) for one in asked))


def _noun(behind: str, words: Lexicon) -> frozenset[str]:
    """Return the terms of the noun that a text begins with."""
    if not words.known.spaced:
        return frozenset(terms(behind[:HAN_NOUN], words.language)) - words.any_of("counter")
    common = stopwords(words.language) | words.any_of("auxiliary_verb", "base_verb", "question")
    run = list(takewhile(lambda one: one.isalpha() and one not in common, _low(behind)))
    if dictionary := words.known.dictionary:
        speech = [{one.pos for one in readings(word, dictionary)[:2]} for word in run]
        nouns = [place for place, kinds in enumerate(speech) if "NOUN" in kinds]
        verbs = [place for place, kinds in enumerate(speech) if kinds == {"VERB"}]
        run = run[nouns[0] : nouns[0] + 1] if nouns and min(verbs, default=9) > nouns[0] else []
    return frozenset(terms(" ".join(run[:MOST_NOUN]), words.language))


def counts(text: str, nouns: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a number of a sentence counts one of the nouns: it stands by it, or alone.

    The second is for a sentence that says the noun elsewhere. (Of SQuAD's gold sentences .92 pass,
    of others with a number in the same passages .24; n = 213 and 444.)
    """
    if words.known.spaced and not nouns & set(terms(text, words.language)):
        return False
    written = words.all_of("numeral", text)
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
