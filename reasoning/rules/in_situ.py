"""English questions that ask at their end: "X was produced by a man born in what year?"."""

from __future__ import annotations

from collections.abc import Sequence

from core.language.stopwords import stopwords
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import Phrase, is_past, is_verb, kind_of, phrase_before
from reasoning.rules.parts import Step, asked, slot_name
from reasoning.rules.phrases import Word, span
from reasoning.rules.relative import fits, has_subject

LEAST_BEFORE = 2


def in_situ_steps(text: str, words: Sequence[Word], lists: Lexicon, taken: set[str]) -> list[Step]:
    """Return the two steps of a statement that ends in a question about what it names, or none."""
    asking = [n for n, word in enumerate(words) if word.plain and _asks(word, lists)]
    if not asking or not text.endswith("?") or _starts_asking(words, lists):
        return []
    last = asking[-1]
    for place in range(last, LEAST_BEFORE, -1):
        found = _joined(text, words, place, last, lists)
        if found is None:
            continue
        phrase, asked_of = found
        before = words[: phrase.start]
        if len(before) < LEAST_BEFORE or not _names(before):
            return []
        slot = slot_name(phrase.noun, taken)
        first = asked(f"{span(text, before)} which {phrase.body}")
        second = asked_of.format(slot=f"{{{slot}}}")
        return [Step(first, slot, kind_of(phrase.noun, lists)), Step(asked(second))]
    return []


def _names(before: Sequence[Word]) -> bool:
    """Tell whether a statement names something; its first word is capitalised anyway."""
    first = before[0]
    return any(word.capital for word in before[1:]) or first.low not in stopwords("en")


def _asks(word: Word, lists: Lexicon) -> bool:
    return word.low in lists.any_of("in_situ")


def _starts_asking(words: Sequence[Word], lists: Lexicon) -> bool:
    """Tell whether a question word or an auxiliary begins the question, or a preposition and it."""
    starts = lists.any_of("question", "inverting", "be", "auxiliary_verb", "listing")
    return any(word.low in starts for word in words[:2])


def _joined(
    text: str, words: Sequence[Word], at: int, last: int, lists: Lexicon
) -> tuple[Phrase, str] | None:
    """Return the phrase that ends before words[at], and what is asked of it, with {slot}."""
    word = words[at]
    phrase = phrase_before(text, words, at, lists) if at < last or word.low == "whose" else None
    if phrase is None or any(one.text == "," for one in words[at:]):
        return None
    rest = _braced(span(text, words[at:]))
    if word.low in lists.any_of("relative") and word.low not in ("where", "whom"):
        if not fits(word.low, phrase.noun, lists):
            return None
        rest = _braced(span(text, words[at + 1 :]))
        if word.low != "whose" and has_subject(words[at + 1 :], lists):  # "that Italy entered when"
            before, after = span(text, words[at + 1 : last]), span(text, words[last:])
            return phrase, f"{_braced(before)} {{slot}} {_braced(after)}"
        return phrase, f"{{slot}}'s {rest}" if word.low == "whose" else f"{{slot}} {rest}"
    if _participle(words, at, phrase, lists):
        return phrase, f"{{slot}} was {rest}"
    links = lists.any_of("relative_preposition", "be")
    linked = phrase.start > 0 and words[phrase.start - 1].low in links
    loose = linked and not phrase.definite and word.low in lists.any_of("relative_preposition")
    return (phrase, f"{{slot}} is {rest}") if loose and at == last - 1 else None


def _participle(words: Sequence[Word], at: int, phrase: Phrase, lists: Lexicon) -> bool:
    """Tell whether words[at] describes the phrase ("a man born in …") and is no main verb."""
    word, links = words[at], lists.any_of("relative_preposition", "in_situ")
    if not is_past(word.low, lists) or word.low in lists.any_of("auxiliary_verb"):
        return False
    verb = any(is_verb(one, lists) for one in words[: phrase.start])
    return verb and at + 1 < len(words) and words[at + 1].low in links


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
