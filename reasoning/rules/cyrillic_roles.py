"""Russian and Ukrainian chains of roles: "отец режиссёра фильма «X»"."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.inflection import Reading, inflected, readings
from reasoning.rules.cyrillic_noun import kind_of_lemma, modified, pronoun_forms
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.parts import Cut, asked, capitalised
from reasoning.rules.phrases import Word, name_end, span

MOST_COMMON = 2


def role_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
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
    if not _belongs(words, at, place, role, lists) or modified(words, at, lists):
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
        if pronoun_forms(word, lists) or any(one.pos == "PRTF" for one in found):
            return True
    return False
