"""A list and what is asked of its items: "Which five … are there, and when did they die?"."""

from __future__ import annotations

from collections.abc import Sequence

from reasoning.rules.fan_out import is_counted, plural_noun
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import kind_of, singular
from reasoning.rules.parts import Step, asked, capitalised, slot_name
from reasoning.rules.phrases import Word, span, words_of

LEAST_FIRST, LEAST_SECOND = 4, 2


def sequel_steps(text: str, lists: Lexicon, taken: set[str]) -> list[Step]:
    """Return the list and the question about an item of it, or none."""
    words = words_of(text)
    for at in range(LEAST_FIRST, len(words) - LEAST_SECOND):
        joins = words[at].low in lists.any_of("conjoined") or words[at].text in ".?"
        if not joins or not _begins(words, at + 1, lists):
            continue
        noun = _listed(words[:at], lists)
        if noun is None:
            continue
        item = singular(noun, lists)
        slot = slot_name(item, taken)
        second = _about_item(text, words[at + 1 :], f"{{{slot}}}", item, lists)
        if second:
            first = asked(span(text, words[:at]))
            return [Step(first, slot, "list"), Step(capitalised(asked(second)))]
        taken.discard(slot)
    return []


def _begins(words: Sequence[Word], at: int, lists: Lexicon) -> bool:
    """Tell whether a question, or "their …", begins here."""
    if words[at].low in lists.any_of("theirs", "question"):
        return True
    led = words[at].low in lists.any_of("relative_preposition")
    return led and at + 1 < len(words) and words[at + 1].low in lists.any_of("question")


def _listed(words: Sequence[Word], lists: Lexicon) -> str | None:
    """Return the noun of the things that a first question lists, None when it lists nothing."""
    if words[0].low not in lists.any_of("question", "listing"):
        return None
    for at, word in enumerate(words):
        if is_counted(words, at, lists):
            place = plural_noun(words, at, lists)
            if place is not None and kind_of(words[place].low, lists) != "date":
                return words[place].low
        listing = (
            word.low in lists.any_of("determiner")
            and at
            and (words[at - 1].low in lists.any_of("be", "listing"))
        )
        place = plural_noun(words, at + 1, lists) if listing else None
        if place is not None and words[place].low not in lists.any_of("naming"):
            return words[place].low
    place = plural_noun(words, 1, lists)
    return words[place].low if place is not None and words[0].low == "which" else None


def _about_item(text: str, words: Sequence[Word], slot: str, item: str, lists: Lexicon) -> str:
    """Put the slot in the place of "their", "they" and "each of these countries"; "" for none."""
    pieces: list[str] = []
    place = start = 0
    found = False
    while place < len(words):
        end, put = _mention(words, place, slot, item, lists)
        if end > place:
            pieces += [span(text, words[start:place]), put]
            place = start = end
            found = True
        else:
            place += 1
    pieces.append(span(text, words[start:]))
    said = " ".join(piece for piece in pieces if piece)
    if found and words[0].low in lists.any_of("theirs"):
        plural = any(singular(word.low, lists) != word.low for word in words[1:4])
        return f"What {'are' if plural else 'is'} {said}"
    return said if found else ""


def _mention(
    words: Sequence[Word], place: int, slot: str, item: str, lists: Lexicon
) -> tuple[int, str]:
    """Return where a mention of the listed things ends, and what stands for it."""
    word = words[place]
    following = words[place + 1].low if place + 1 < len(words) else ""
    if word.low in lists.any_of("theirs"):
        skip = following in lists.any_of("respective")
        return place + 1 + skip, f"{slot}'s"
    if word.low in lists.any_of("anaphor"):
        return place + 1, slot
    each = word.low in lists.any_of("each")
    start = place + 1 + (following == "of") if each else place
    if each and start < len(words) and words[start].low in lists.any_of("anaphor"):
        return start + 1, slot
    pointing = start < len(words) and words[start].low in lists.any_of("demonstrative")
    if pointing and (each or words[start].low != "the"):
        noun = plural_noun(words, start + 1, lists)
        same = noun is not None and singular(words[noun].low, lists) == item
        if noun is not None and same:
            return noun + 1, slot
    closing = lists.any_of("relative_preposition", "auxiliary_verb", "first_last") | {"", "?"}
    if each and following in closing:
        return place + 1, slot
    return place, ""
