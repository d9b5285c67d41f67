"""Take a Russian or Ukrainian question apart: relative clauses, participles, chains of roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.language.analysis import content_terms
from core.language.inflection import Reading, inflected, readings
from reasoning.rules.cyrillic_noun import (
    ADJECTIVES,
    Noun,
    in_case,
    kind_of_lemma,
    noun_before,
    pronoun_forms,
)
from reasoning.rules.cyrillic_roles import role_cut
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.parts import Cut, asked, capitalised
from reasoning.rules.phrases import Word, span, words_of

LEAST_CLAUSE, LEAST_WORDS = 2, 2
ABBREVIATED = 4
CASES = ("nomn", "accs", "gent", "datv", "ablt", "loct")


def cyrillic_cuts(text: str, lists: Lexicon) -> Iterator[Cut]:
    """Yield the descriptions of a question that can be asked for alone, the last first."""
    words = words_of(text)
    for at in range(len(words) - 1, 0, -1):
        for finder in (_relative, _owned, _participle, role_cut):
            cut = finder(text, words, at, lists)
            if cut is not None:
                yield cut


def _relative(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Take ", которая издавала …" after a noun that it agrees with."""
    pronoun = words[at]
    forms = pronoun_forms(pronoun, lists)
    placed = pronoun.low in lists.any_of("relative_place")
    if not pronoun.plain or not (forms or placed):
        return None
    comma = at - 1
    preposition = ""
    if words[comma].low in lists.any_of("relative_preposition"):
        preposition = words[comma].low
        comma -= 1
    if comma < 1 or words[comma].text != ",":
        return None
    noun = noun_before(words, comma, lists, forms)
    if noun is None:
        return None
    clause = words[at + 1 : clause_stop(words, at + 1)]
    several = noun.reading.number == "plur"
    if not _telling(text, clause, lists, named=several):
        return None
    said = span(text, clause)
    question = _which(words, noun, pronoun, forms, preposition, said, lists)
    return _cut(words, noun, clause, question, lists) if question else None


def _owned(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Take ", столица которой …" and ", чей флаг …" after a noun."""
    whose = any(
        one.form in lists.any_of("whose") for one in readings(words[at].low, lists.language)
    )
    comma = at - 1 if whose else at - 2
    if comma < 1 or words[comma].text != "," or not words[comma + 1].plain:
        return None
    forms = (
        () if whose else tuple(one for one in pronoun_forms(words[at], lists) if one.case == "gent")
    )
    led = words[comma + 1].low in lists.any_of("relative_preposition", "conjoined")
    noun = None if led or not (whose or forms) else noun_before(words, comma, lists, forms)
    clause = words[comma + 1 : clause_stop(words, at + 1)]
    if noun is None or not _telling(text, clause, lists):
        return None
    question = _which_is(words, noun, span(text, clause), lists)
    return _cut(words, noun, clause, question, lists) if question else None


def _which_is(words: Sequence[Word], noun: Noun, said: str, lists: Lexicon) -> str:
    """Ask "Какая это страна, столица которой …"."""
    reading = noun.reading
    asking = lists.table("which_is").get(reading.gender if reading.number != "plur" else "plur")
    phrase = in_case(noun, words, "nomn", lists)
    if not asking or not phrase:
        return ""
    return asked(capitalised(f"{asking} {phrase.partition(' ')[2]}, {said}"))


def clause_stop(words: Sequence[Word], start: int) -> int:
    """Return where a clause ends: at a comma, a dash or the end, but not within a name."""
    place = start
    while place < len(words):
        if words[place].kind == "mark" and words[place].text in ",;:?!.—–":
            if words[place].text == "." and len(words[place - 1].text) < ABBREVIATED:
                place += 1
                continue
            inside = words[place - 1].named and words[place + 1 : place + 2]
            if not (words[place].text == "," and inside and words[place + 1].named):
                break
        place += 1
    return place


def _telling(text: str, clause: Sequence[Word], lists: Lexicon, *, named: bool = False) -> bool:
    """Tell whether a description can be searched for: it names something, or says enough."""
    if len(clause) < LEAST_CLAUSE:
        return False
    if any(word.capital for word in clause):
        return True
    return not named and len(set(content_terms(span(text, clause), lists.language))) > LEAST_WORDS


def _which(
    words: Sequence[Word],
    noun: Noun,
    pronoun: Word,
    forms: Sequence[Reading],
    preposition: str,
    said: str,
    lists: Lexicon,
) -> str:
    """Ask for the noun in the case that its pronoun has: "В какой стране родился …"."""
    led = preposition or lists.table("place_of").get(pronoun.low, "")
    cases = [form.case for form in forms]
    wanted = lists.table("case_of").get(led, "") if led else ""
    if wanted and cases and wanted not in cases:
        wanted = next((case for case in CASES if case in cases and case != "nomn"), "")
    case = wanted or next((case for case in CASES if case in cases), "nomn")
    phrase = in_case(noun, words, case, lists)
    if not phrase:
        return ""
    person = kind_of_lemma(noun.reading.form, lists) == "person"
    if person and case == "nomn" and noun.reading.form in lists.any_of("naming"):
        return asked(capitalised(f"{sorted(lists.any_of('who_is'))[0]} {said}"))
    return asked(capitalised(f"{led} {phrase} {said}".strip()))


def _cut(
    words: Sequence[Word], noun: Noun, clause: Sequence[Word], question: str, lists: Lexicon
) -> Cut:
    lemma = noun.reading.form
    kind = "list" if noun.reading.number == "plur" else kind_of_lemma(lemma, lists)
    after = next((word for word in words if word.start >= clause[-1].end), None)
    end = after.end if after is not None and after.text == "," else clause[-1].end
    return Cut(words[noun.start].start, end, question, lemma, kind)


def _participle(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Take ", основанной …" after a noun that it agrees with."""
    word = words[at]
    if not word.plain or at < 2 or words[at - 1].text != ",":
        return None
    found = readings(word.low, lists.language)
    forms = [one for one in found if one.pos == "PRTF"]
    if not forms or found[0].pos not in ADJECTIVES:
        return None
    noun = noun_before(words, at - 1, lists, forms)
    if noun is None:
        return None
    clause = words[at : clause_stop(words, at + 1)]
    if not _telling(text, clause[1:], lists, named=True):
        return None
    reading = noun.reading
    made = inflected(word.low, lists.language, "PRTF", "nomn", reading.gender, reading.number)
    bare = noun._replace(adjectives=())
    said = f"{made} {span(text, clause[1:])}"
    question = _which_is(words, noun, said, lists) or _which_is(words, bare, said, lists)
    if not made or not question:
        return None
    return _cut(words, noun, clause, question, lists)
