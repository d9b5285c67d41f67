"""Take a question apart into parts that depend on each other, by the words that join them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from core.language.analysis import content_terms, terms
from core.language.stopwords import stopwords
from reasoning.planning.slots import escaped, filled, slots_in
from reasoning.rules.compare import compare_steps
from reasoning.rules.decompose_chinese import MARK, chinese_comparison, chinese_cuts
from reasoning.rules.decompose_cyrillic import cyrillic_cuts
from reasoning.rules.decompose_english import english_cuts
from reasoning.rules.fan_out import fan_out_steps
from reasoning.rules.in_situ import in_situ_steps
from reasoning.rules.lexicon import UNSPACED, Lexicon
from reasoning.rules.parts import Cut, Step, asked, slot_name
from reasoning.rules.phrases import words_of
from reasoning.rules.sequel import sequel_steps
from reasoning.rules.when_clause import when_steps

# A longer text is a story rather than a question, and taking it apart goes wrong.
_AND_MORE = re.compile(r"\s*,")
MOST_CHARACTERS = 400
CUTS: dict[str, Callable[[str, Lexicon], Iterator[Cut]]] = {
    "en": english_cuts,
    "ru": cyrillic_cuts,
    "uk": cyrillic_cuts,
    "zh": chinese_cuts,
}


def across(question: str, lists: Lexicon, room: int, taken: set[str]) -> list[Step]:
    """Return the steps of a comparison, or of a list and what is asked of its items, or none."""
    text = escaped(" ".join(question.split()))
    if room < 2 or len(text) > MOST_CHARACTERS or not _asks(text, lists):
        return []
    chinese = lists.language == UNSPACED
    compared = chinese_comparison(text, lists) if chinese else compare_steps(text, lists)
    steps = compared or _first_sequel(text, lists, taken)
    return steps if len(steps) <= room and _sound(steps) else []


def decompose(
    question: str, lists: Lexicon, room: int, taken: set[str] | None = None
) -> list[Step]:
    """Return at most `room` steps, each after those whose slots it uses; none when it is one.

    Braces in the question are doubled in every step, as slots demand. Slots are called otherwise
    than those in `taken`, to which their names are added.
    """
    names = set() if taken is None else taken
    text = escaped(" ".join(question.split()))
    if room < 2 or len(text) > MOST_CHARACTERS or not _asks(text, lists):
        return []
    together = across(question, lists, room, names)
    if together:
        return together
    steps = _described(text, lists, room, names) or _whole(text, lists, names)
    return steps if len(steps) <= room and _sound(steps) else []


def _asks(text: str, lists: Lexicon) -> bool:
    """Tell whether a text is a question rather than a statement that holds such a word."""
    if text.endswith(("?", "？")):
        return True
    beginning = " ".join(text.split()[:2])
    return lists.is_question(beginning) or lists.starts("listing", text)


def _first_sequel(text: str, lists: Lexicon, taken: set[str]) -> list[Step]:
    return sequel_steps(text, lists, taken) if lists.language == "en" else []


def _whole(text: str, lists: Lexicon, taken: set[str]) -> list[Step]:
    """Return the steps of a question whose form as a whole says what comes first."""
    if lists.language != "en":
        return fan_out_steps(text, lists, taken)
    words = words_of(text)
    return (
        in_situ_steps(text, words, lists, taken)
        or sequel_steps(text, lists, taken)
        or fan_out_steps(text, lists, taken)
        or when_steps(text, words, lists, taken)
    )


def _described(text: str, lists: Lexicon, room: int, taken: set[str]) -> list[Step]:
    """Put a slot in the place of each description, the innermost first."""
    cuts = CUTS.get(lists.language)
    steps: list[Step] = []
    while cuts is not None and len(steps) < room - 1:
        cut = next((c for c in cuts(text, lists) if not _root(text, c, lists)), None)
        if cut is None:
            break
        slot = slot_name(cut.noun, taken)
        steps.append(Step(cut.question, slot, cut.wants))
        text = f"{text[: cut.start]}{{{slot}}}{text[cut.end :]}"
    if not steps:
        return []
    rest = _whole(text, lists, taken) if room - len(steps) > 1 else []
    mark = MARK if lists.language == UNSPACED else "?"
    return [*steps, *(rest or [Step(asked(text, mark))])]


def _root(text: str, cut: Cut, lists: Lexicon) -> bool:
    """Tell whether a question asks for nothing but what the cut describes."""
    if not says_something(text[: cut.start], lists) and _AND_MORE.match(text, cut.end):
        return True  # "What is the name of the city that …, and which …"
    rest = f"{text[: cut.start]} {text[cut.end :]}"
    asks = lists.is_question(rest) or lists.starts("listing", rest) or not lists.is_question(text)
    return not (asks and says_something(rest, lists))


def says_something(text: str, lists: Lexicon) -> bool:
    """Tell whether a text has a content word beside those that only ask for a name."""
    bare = filled(text, dict.fromkeys(slots_in(text), " "))
    for name in ("question", "auxiliary", "naming"):
        bare = lists.remove(name, bare)
    only = _naming(lists) | stopwords(lists.language)
    left = [term for term in content_terms(bare, lists.language) if term.isalnum()]
    return any(len(term) > 1 and term not in only for term in left)


@lru_cache(maxsize=8)
def _naming(lists: Lexicon) -> frozenset[str]:
    """Return the terms of the words that only ask for a name, whatever their form."""
    return frozenset(
        term for word in lists.any_of("naming") for term in terms(word, lists.language)
    )


def _sound(steps: list[Step]) -> bool:
    """Tell whether every slot is used after it is found, and every text asks with words."""
    known: set[str] = set()
    used: set[str] = set()
    for step in steps:
        names = set(slots_in(step.text))
        bare = filled(step.text, dict.fromkeys(names, " "))
        if not names <= known or not any(character.isalnum() for character in bare):
            return False
        used |= names
        if step.slot is not None:
            known.add(step.slot)
    return known <= used
