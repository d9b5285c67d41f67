"""Take a Russian or Ukrainian question apart: relative clauses, participles, chains of roles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from core.language.analysis import content_terms
from core.language.inflection import Reading, inflected, readings
from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.parts import Cut, asked, capitalised
from reasoning.rules.phrases import Word, name_end, span, words_of

LEAST_CLAUSE, LEAST_WORDS = 2, 2
ABBREVIATED = 4
CASES = ("nomn", "accs", "gent", "datv", "ablt", "loct")
ADJECTIVES = ("ADJF", "PRTF", "NPRO")
# What changes the noun after it: cut off alone, the noun would mean something else.
MODIFIERS = ("ADJF", "PRTF", "NUMR", "ADVB")
MOST_ADJECTIVES, MOST_COMMON = 2, 2


class _Noun(NamedTuple):
    """Hold a noun with the adjectives before it: words[start:end]."""

    start: int
    end: int
    reading: Reading
    adjectives: tuple[str, ...]


def cyrillic_cuts(text: str, lists: Lexicon) -> Iterator[Cut]:
    """Yield the descriptions of a question that can be asked for alone, the last first."""
    words = words_of(text)
    for at in range(len(words) - 1, 0, -1):
        for finder in (_relative, _owned, _participle, _role):
            cut = finder(text, words, at, lists)
            if cut is not None:
                yield cut


def kind_of_lemma(lemma: str, lists: Lexicon) -> AnswerKind | None:
    """Return the kind of answer that a noun in its dictionary form stands for."""
    if lemma in lists.any_of("person_noun", "role") - lists.any_of("thing_role"):
        return "person"
    if lemma in lists.any_of("place_noun"):
        return "place"
    return "date" if lemma in lists.any_of("date_noun") else None


def _relative(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Take ", которая издавала …" after a noun that it agrees with."""
    pronoun = words[at]
    forms = _pronoun(pronoun, lists)
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
    noun = _noun_before(words, comma, lists, forms)
    if noun is None:
        return None
    clause = words[at + 1 : _clause_end(words, at + 1)]
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
    forms = () if whose else tuple(one for one in _pronoun(words[at], lists) if one.case == "gent")
    led = words[comma + 1].low in lists.any_of("relative_preposition", "conjoined")
    noun = None if led or not (whose or forms) else _noun_before(words, comma, lists, forms)
    clause = words[comma + 1 : _clause_end(words, at + 1)]
    if noun is None or not _telling(text, clause, lists):
        return None
    question = _which_is(words, noun, span(text, clause), lists)
    return _cut(words, noun, clause, question, lists) if question else None


def _which_is(words: Sequence[Word], noun: _Noun, said: str, lists: Lexicon) -> str:
    """Ask "Какая это страна, столица которой …"."""
    reading = noun.reading
    asking = lists.table("which_is").get(reading.gender if reading.number != "plur" else "plur")
    phrase = _in_case(noun, words, "nomn", lists)
    if not asking or not phrase:
        return ""
    return asked(capitalised(f"{asking} {phrase.partition(' ')[2]}, {said}"))


def _pronoun(word: Word, lists: Lexicon) -> tuple[Reading, ...]:
    """Return the readings of a relative pronoun, () for any other word."""
    if word.low in lists.any_of("invariant"):
        return (Reading("NPRO", "nomn", "", "", False, word.low),)
    found = readings(word.low, lists.language)
    return tuple(one for one in found if one.form in lists.any_of("relative"))


def _noun_before(
    words: Sequence[Word], end: int, lists: Lexicon, forms: Sequence[Reading]
) -> _Noun | None:
    """Return the noun that ends before words[end] and agrees with one of the forms."""
    word = words[end - 1]
    if not word.plain or word.low in lists.any_of("reporting"):
        return None
    nouns = [one for one in readings(word.low, lists.language) if one.pos == "NOUN"]
    fitting = [one for one in nouns if not forms or any(_agree(one, form) for form in forms)]
    if not fitting:
        return None
    start = end - 1
    adjectives: list[str] = []
    while start and end - 1 - start < MOST_ADJECTIVES and words[start - 1].plain:
        found = readings(words[start - 1].low, lists.language)
        if not any(one.pos in ("ADJF", "PRTF") for one in found[:1]):
            break
        if any(one.form in lists.any_of("relative", "interrogative", "naming") for one in found):
            break
        start -= 1
        adjectives.insert(0, words[start].low)
    if _modified(words, start, lists) or _asked_for(words, start, lists):
        return None
    return _Noun(start, end, fitting[0], tuple(adjectives))


def _asked_for(words: Sequence[Word], start: int, lists: Lexicon) -> bool:
    """Tell whether the question asks for the noun itself: "Какой город, …", "Кто из …"."""
    if start and words[start - 1].low in lists.any_of("question"):
        return True
    of = lists.any_of("out_of")
    asked_of = start > 1 and words[start - 2].low in lists.any_of("question")
    return asked_of and words[start - 1].low in of


def _modified(words: Sequence[Word], start: int, lists: Lexicon) -> bool:
    """Tell whether the word before words[start] belongs to the same noun phrase."""
    if not start or words[start - 1].kind != "word":
        return False
    before = words[start - 1].low
    if before in lists.any_of("relative_preposition"):
        return False
    if before in lists.any_of("conjoined"):
        return True
    found = readings(before, lists.language)[:1]
    asking = lists.any_of("interrogative", "relative", "first_of")
    return any(one.pos in MODIFIERS and one.form not in asking for one in found)


def _agree(noun: Reading, form: Reading) -> bool:
    if not form.number:
        return True
    if form.number != noun.number:
        return False
    return form.number == "plur" or not form.gender or form.gender == noun.gender


def _clause_end(words: Sequence[Word], start: int) -> int:
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
    noun: _Noun,
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
    phrase = _in_case(noun, words, case, lists)
    if not phrase:
        return ""
    person = kind_of_lemma(noun.reading.form, lists) == "person"
    if person and case == "nomn" and noun.reading.form in lists.any_of("naming"):
        return asked(capitalised(f"{sorted(lists.any_of('who_is'))[0]} {said}"))
    return asked(capitalised(f"{led} {phrase} {said}".strip()))


def _in_case(noun: _Noun, words: Sequence[Word], case: str, lists: Lexicon) -> str:
    """Return "какая научная ассоциация" in a case, "" when a word has no such form."""
    language = lists.language
    reading = noun.reading
    head = inflected(
        words[noun.end - 1].low, language, "NOUN", case, reading.gender, reading.number
    )
    asking = sorted(lists.any_of("interrogative"))[0]
    parts = [asking, *noun.adjectives]
    made = []
    for part in parts:
        # An accusative follows the genitive for what is alive, else the nominative.
        pos = next((one.pos for one in readings(part, language) if one.pos in ADJECTIVES), "ADJF")
        adjusted = case
        if case == "accs" and (reading.gender != "femn" or reading.number == "plur"):
            adjusted = "gent" if reading.animate else "nomn"
        made.append(inflected(part, language, pos, adjusted, reading.gender, reading.number))
    return " ".join([*made, head]) if head and all(made) else ""


def _cut(
    words: Sequence[Word], noun: _Noun, clause: Sequence[Word], question: str, lists: Lexicon
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
    noun = _noun_before(words, at - 1, lists, forms)
    if noun is None:
        return None
    clause = words[at : _clause_end(words, at + 1)]
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


def _role(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Take "режиссёра фильма «X»": a role before what it belongs to."""
    word = words[at]
    if not word.plain:
        return None
    role = _role_at(word, lists)
    if role is None:
        return None
    if role.form not in lists.any_of("role"):
        outer = _role_at(words[at - 1], lists)
        if outer is None or role.case != "gent":
            return None
    place = at + 1
    while place < len(words) and place - at <= MOST_COMMON and _work(words[place], lists):
        place += 1
    end = name_end(words, place, lists.any_of("particle"))
    inner = (n for n in range(place, end) if words[n].text in ",:" or words[n].text[0].isdigit())
    end = next(inner, end)
    if end == place or not any(one.capital for one in words[place:end]):
        return None
    if not _belongs(words, at, place, role, lists) or _modified(words, at, lists):
        return None
    if _goes_on(words, end, lists):
        return None
    form = inflected(word.low, lists.language, "NOUN", "nomn", "", role.number) or role.form
    thing = role.form in lists.any_of("thing_role")
    led = sorted(lists.any_of("what_is" if thing else "who_is"))[0]
    question = asked(capitalised(f"{led} {form} {span(text, words[at + 1 : end])}"))
    kind = kind_of_lemma(role.form, lists)
    return Cut(word.start, words[end - 1].end, question, role.form, kind)


def _role_at(word: Word, lists: Lexicon) -> Reading | None:
    """Return the reading of a word as a role, None when it is none."""
    if not word.plain:
        return None
    roles = lists.any_of("role", "role_office")
    found = readings(word.low, lists.language)
    return next((one for one in found if one.pos == "NOUN" and one.form in roles), None)


def _work(word: Word, lists: Lexicon) -> bool:
    if not word.plain:
        return False
    found = readings(word.low, lists.language)
    return any(one.form in lists.any_of("work") and one.case == "gent" for one in found)


def _belongs(words: Sequence[Word], at: int, place: int, role: Reading, lists: Lexicon) -> bool:
    """Tell whether a role is of what follows: "writer X" is one person, "mother of X" two."""
    if words[place].kind in ("quoted", "slot") or place > at + 1:
        return True
    if role.form not in lists.any_of("kin", "thing_role"):
        return False
    return any(one.case == "gent" for one in readings(words[place].low, lists.language))


def _goes_on(words: Sequence[Word], end: int, lists: Lexicon) -> bool:
    """Tell whether more is said of a name: another one, or a clause that would lose its noun."""
    following = words[end : end + 3]
    if not following:
        return False
    if following[0].low in lists.any_of("conjoined", "either"):
        return True
    if following[0].text != ",":
        return following[0].named
    for word in following[1:]:
        found = readings(word.low, lists.language)[:1]
        if _pronoun(word, lists) or any(one.pos == "PRTF" for one in found):
            return True
    return False
