"""Two or three named things in a row: "A or B", "both A and B", "A, B and C"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from reasoning.rules.lexicon import Lexicon
from reasoning.rules.phrases import Word, name_end, span


class Pair(NamedTuple):
    """Hold things that words[start:end] name, and the words that join them."""

    things: tuple[str, ...]
    start: int
    end: int
    joiner: str
    both: bool


def find_pair(text: str, words: Sequence[Word], lists: Lexicon) -> Pair | None:
    """Return the last things that "or", or else "and", joins; each must be named."""
    for name in ("either", "conjoined"):
        for at in range(len(words) - 1, 0, -1):
            if words[at].low in lists.any_of(name):
                pair = _pair_at(text, words, at, lists)
                if pair is not None:
                    return pair
    return None


def _pair_at(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Pair | None:
    inside = lists.any_of("title_word") - lists.any_of("conjoined", "either")
    right = _after_article(words, at + 1, lists)
    end = name_end(words, right, inside)
    while end > right and words[end - 1].text in ",:":
        end -= 1
    if end == right or not any(word.capital for word in words[right:end]):
        return None
    left_end = at - 1 if words[at - 1].text == "," else at
    start = _name_start(words, left_end, inside, lists)
    if start is None:
        return None
    things = [span(text, words[start:left_end]), span(text, words[at + 1 : end])]
    listed = words[at - 1].text == "," or words[at].low in lists.any_of("conjoined")
    if listed and start > 1 and words[start - 1].text == "," and words[start - 2].capital:
        first = _name_start(words, start - 1, inside, lists)
        if first is not None:  # "A, B and C"
            things.insert(0, span(text, words[first : start - 1]))
            start = first
    both = False
    if start and words[start - 1].low in lists.any_of("both", "between", "either_of"):
        both = words[start - 1].low in lists.any_of("both")
        start -= 1
    if end < len(words) and words[end].low in lists.any_of("both"):
        both, end = True, end + 1
    joiner = "or" if words[at].low in lists.any_of("either") else "and"
    return Pair(tuple(things), start, end, joiner, both)


def _after_article(words: Sequence[Word], at: int, lists: Lexicon) -> int:
    return at + 1 if at < len(words) and words[at].low in lists.any_of("determiner") else at


def _name_start(
    words: Sequence[Word], end: int, inside: frozenset[str], lists: Lexicon
) -> int | None:
    """Return where the name that ends before words[end] begins, with its article; else None."""
    start = None
    place = end - 1
    waiting = 0
    asking = lists.any_of("question", "be", "inverting", "auxiliary_verb", "listing", "both")
    while place >= 0:
        word = words[place]
        first = place == 0 and word.low in asking | lists.any_of("between")
        if word.named and word.kind in ("word", "quoted", "slot") and not first:
            start, waiting = place, 0
        elif word.kind == "mark" or word.low not in inside or waiting >= 2 or start is None:
            break
        else:
            waiting += 1
        place -= 1
    if start is None or not any(word.capital for word in words[start:end]):
        return None
    if start and words[start - 1].low in lists.any_of("determiner"):
        start -= 1
    return start
