"""English chains of roles: "the wife of the director of X", "X's birthplace"."""

from __future__ import annotations

from collections.abc import Sequence

from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import asker, is_verb, kind_of
from reasoning.rules.parts import Cut, asked
from reasoning.rules.phrases import POSSESSIVE, Word, name_end, span

MOST_COMMON = 3


def role_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description whose role is words[at] ("the director of X"), or None."""
    role = words[at]
    if not role.plain or at < 1 or at + 2 >= len(words) or words[at + 1].low != "of":
        return None
    if words[at - 1].low not in lists.any_of("determiner"):
        return None
    owned = at > 2 and words[at - 2].low == "of"
    outer = words[at - 3].low if owned else ""
    if role.low not in lists.any_of("role"):
        if role.low not in lists.any_of("role_office"):
            return None
        if outer not in lists.any_of("role", "role_office"):
            return None
    end = _named_end(words, at + 2, lists)
    if end is None:
        return None
    said = span(text, words[at:end])
    noun = role.low
    question = asked(f"{asker(noun, lists)} the {said}")
    return Cut(words[at - 1].start, words[end - 1].end, question, noun, kind_of(noun, lists))


def _named_end(words: Sequence[Word], start: int, lists: Lexicon) -> int | None:
    """Return where "the film X" ends, None unless it names something and ends clearly."""
    place = start
    while place < len(words) and place - start < MOST_COMMON and _common(words[place], lists):
        place += 1
    end = name_end(words, place, lists.any_of("title_word"))
    if end == place or not any(word.capital for word in words[place:end]):
        return None
    return end if _ends(words, end, lists) else None


def _common(word: Word, lists: Lexicon) -> bool:
    return word.plain and word.low in lists.any_of("determiner", "work")


def _ends(words: Sequence[Word], end: int, lists: Lexicon) -> bool:
    """Tell whether a name is over here: nothing, a mark, a verb or a small word follows."""
    if end >= len(words) or words[end].kind == "mark":
        return not (end < len(words) and words[end].text in "-/&(")
    word = words[end]
    small = lists.any_of("relative", "relative_preposition", "indefinite", "either", "joint")
    return is_verb(word, lists) or word.low in small or word.kind == "slot"


def possessive_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description "X's birthplace" whose possessive is words[at], or None."""
    if not words[at].named or not POSSESSIVE.search(words[at].text):
        return None
    role_end = _role_end(text, words, at + 1, lists)
    if role_end is None or not _ends(words, role_end, lists):
        return None
    start = at
    inside = lists.any_of("title_word")
    particles = lists.any_of("particle")
    while start and words[start].kind == "word":
        if words[start - 1].named:
            start -= 1
        elif start > 1 and words[start - 1].low in particles and words[start - 2].named:
            start -= 2
        else:
            break
    if start > 1 and words[start - 1].low in lists.any_of("determiner"):
        start -= 2 if words[start - 2].capital and start > 2 else 0  # "William the Silent's"
    if start == 0 and words[0].low in inside | lists.any_of("listing", "be", "inverting"):
        start = 1
    if start > at:
        return None
    noun = words[at + 1].low
    question = asked(f"{asker(words[role_end - 1].low, lists)} {span(text, words[start:role_end])}")
    return Cut(words[start].start, words[role_end - 1].end, question, noun, kind_of(noun, lists))


def _role_end(text: str, words: Sequence[Word], start: int, lists: Lexicon) -> int | None:
    roles = lists.any_of("role_owned")
    for length in (3, 2, 1):
        end = start + length
        if end <= len(words) and span(text, words[start:end]).casefold() in roles:
            return end
    return None
