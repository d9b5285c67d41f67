"""Take a question apart into parts that depend on each other, by the table of its language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from core.language.analysis import content_terms, terms
from core.language.cues import stopwords
from core.language.words import MorphAnalysis, inflected, readings
from core.types import AnswerKind
from reasoning.planning.slots import SLOT_NAME, escaped, filled, slots_in
from reasoning.rules.decomposition.patterns import PatternMatch, find, table
from reasoning.rules.decomposition.phrases import Word, is_past, is_plural, kind_of, singular, span
from reasoning.rules.lexicon import Lexicon


class DecompositionStep(NamedTuple):
    """Hold one part; `wants` is None where its own words decide."""

    text: str
    slot: str | None = None
    wants: AnswerKind | None = None


def slot_name(noun: str, taken: set[str]) -> str:
    """Return a slot name made of a noun that is not taken yet, and note it there."""
    letters = "".join(c if c.isalnum() else "_" for c in noun.strip().casefold()).strip("_")
    name = letters[:40] if SLOT_NAME.fullmatch(letters[:40] or "0") else "value"
    number = 2
    unique = name
    while unique in taken:
        unique = f"{name}{number}"
        number += 1
    taken.add(unique)
    return unique


def capitalised(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def asked(text: str, mark: str = "?") -> str:
    """Return a text that ends with a question mark."""
    return f"{text.strip().rstrip('?？.。,，;:! ')}{mark}"


ADJECTIVES = ("ADJF", "PRTF")


def inflect_phrase(
    phrase: str, words: Sequence[Word], form: str, agreeing: Sequence[Word], lists: Lexicon
) -> str:
    """Return a phrase in a grammatical form; one that has no such form is returned unchanged.

    The noun of a Cyrillic phrase agrees in number with the words `agreeing`.
    """
    if not words:
        return ""
    if form == "lower":
        return phrase[:1].lower() + phrase[1:]
    if form == "one":
        return _one(phrase, words, lists)
    if form == "singular" or (lists.table(form) and form != "which_is"):
        mapped = lists.table(form)
        return " ".join(mapped.get(word.low) or singular(word.low, lists) for word in words)
    if lists.any_of(form):  # a list of words to leave out
        return " ".join(word.text for word in words if word.low not in lists.any_of(form))
    noun = _noun(words, agreeing, lists)
    if noun is None:
        return "" if form == "which_is" else phrase
    place, reading = noun
    if form == "which_is":
        key = reading.gender if reading.number != "plur" else "plur"
        return lists.table("which_is").get(key) or lists.table("which_is")["plur"]
    made = []
    for at, word in enumerate(words):
        pos = reading.pos if at == place else _adjective(word, lists)
        early = bool(pos) and word.kind == "word" and (at <= place or pos == "PRTF")
        form_of = (pos, reading.gender, reading.number)
        known = inflected(word.low, lists.known.dictionary, *form_of) if early else ""
        capital = known.capitalize() if known and word.capital else known
        made.append(capital or word.text)
    return " ".join(made)


def noun_of(word: str, lists: Lexicon) -> str:
    """Return the dictionary form of a noun."""
    found = [one.form for one in readings(word, lists.known.dictionary) if one.pos == "NOUN"]
    listed = lists.any_of("person_noun", "place_noun", "role", "date_noun")
    return next((one for one in found if one in listed), found[0] if found else word)


def _noun(
    words: Sequence[Word], agreeing: Sequence[Word], lists: Lexicon
) -> tuple[int, MorphAnalysis] | None:
    """Return the first noun of some words, read as agrees with the others, and its place."""
    numbers = {
        one.number
        for word in agreeing
        for one in readings(word.low, lists.known.dictionary)
        if one.pos in ("ADJF", "NPRO", "PRTF")
    }
    for place, word in enumerate(words):
        found = [one for one in readings(word.low, lists.known.dictionary) if one.pos == "NOUN"]
        fitting = [one for one in found if one.number in numbers or not numbers]
        if found and not (_adjective(word, lists) and place < len(words) - 1):
            return place, (fitting or found)[0]
    return None


def _adjective(word: Word, lists: Lexicon) -> str:
    found = readings(word.low, lists.known.dictionary)[:1]
    return next((one.pos for one in found if one.pos in ADJECTIVES), "")


def _one(phrase: str, words: Sequence[Word], lists: Lexicon) -> str:
    """Say "airports in X" of one thing: "an airport in X"; what is no such phrase stays."""
    for place, word in enumerate(words):
        if word.kind != "word" or (place and is_past(word.low, lists)):
            break
        if word.low in lists.any_of("relative_preposition", "joint", "determiner"):
            break
        if word.plain and is_plural(word.low, lists):
            first = words[0].start
            at, end = word.start - first, word.end - first
            one = f"{phrase[:at]}{singular(word.low, lists)}{phrase[end:]}"
            return f"{'an' if one[:1].casefold() in 'aeiou' else 'a'} {one}"
    return phrase


# A longer text is a story rather than a question, and taking it apart goes wrong.
MOST_CHARACTERS = 400  # chosen, not measured
SIDES = ("a", "b", "c")
_AND_MORE = re.compile(r"\s*,")
_PIECE = re.compile(r"<(\w+)(?:\.(\w+))?>")


def across(question: str, lists: Lexicon, room: int, taken: set[str]) -> list[DecompositionStep]:
    """Return the steps of a comparison, or of a list and what is asked of its items, or none."""
    text = escaped(" ".join(question.split()))
    fits = room > 1 and len(text) <= MOST_CHARACTERS and _asks(text, lists)
    return _sound(_rows(text, "beside", lists, room, taken), room) if fits else []


def decompose(
    question: str, lists: Lexicon, room: int, taken: set[str] | None = None
) -> list[DecompositionStep]:
    """Return at most `room` steps, each after those whose slots it uses; none when it is one.

    Braces in the question are doubled in every step, as slots demand. Slots are called otherwise
    than those in `taken`, to which their names are added.
    """
    names = set() if taken is None else taken
    together = across(question, lists, room, names)
    text = escaped(" ".join(question.split()))
    if together or room < 2 or len(text) > MOST_CHARACTERS or not _asks(text, lists):
        return together
    return _sound(_described(text, lists, room, names), room)


def _asks(text: str, lists: Lexicon) -> bool:
    """Tell whether a text is a question rather than a statement that holds such a word."""
    if text.endswith(("?", "？")):
        return True
    beginning = " ".join(text.split()[:2])
    return lists.is_question(beginning) or lists.starts("listing", text)


def _described(text: str, lists: Lexicon, room: int, taken: set[str]) -> list[DecompositionStep]:
    """Put a slot in the place of each description, the innermost first."""
    steps: list[DecompositionStep] = []
    while len(steps) < room - 1:
        cuts = [
            one
            for one in find(text, "inside", lists)
            if one.row.then or not _root(text, one, lists)
        ]
        if not cuts:
            break
        # The cut that holds no other: what describes stands behind, in Chinese before.
        last = max(cuts, key=lambda one: one.places["cut"][0])
        cut = last if lists.known.spaced else min(cuts, key=lambda one: one.places["cut"][1])
        step = _first(text, cut, cut.row.ask, lists, taken)
        steps.append(step)
        start, end = _ends(cut, "cut")
        slot = f"{{{step.slot}}}"
        rest = f"{text[:start]}{slot}{text[end:]}"
        text = _written(text, cut.row.then, cut, {"slot": slot}, lists) or rest
    complete = _rows(text, "whole", lists, room, taken) if room - len(steps) > 1 else []
    return [*steps, *(complete or ([DecompositionStep(_question(text, lists))] if steps else []))]


def _rows(
    text: str, section: str, lists: Lexicon, room: int, taken: set[str]
) -> list[DecompositionStep]:
    """Return the steps of the first row of a section that matches, or none."""
    for found in find(text, section, lists):
        if "a" in found.places:
            sides = [name for name in SIDES if found.group(name)]
            things = [span(text, found.group(name)) for name in sides]
            if len({thing.casefold() for thing in things}) == len(things):
                head = "tail" if "tail" in found.places else ""
                named = [found.named(side=name, head=head or name) for name in sides]
                return _chained(
                    [
                        _question(_written(text, found.row.ask, one, {}, lists), lists)
                        for one in named
                    ],
                    lists,
                    room,
                    taken,
                )
            continue
        first = _first(text, found, found.row.ask, lists, taken)
        slot = {"slot": f"{{{first.slot}}}"}
        then = _question(_written(text, found.row.then, found, slot, lists), lists)
        return [first, DecompositionStep(then)]
    return []


def _chained(
    asks: Sequence[str], lists: Lexicon, room: int, taken: set[str]
) -> list[DecompositionStep]:
    """Return the steps of questions side by side, each taken apart where there is room for all."""
    chains = [_described(one, lists, room, taken) or [DecompositionStep(one)] for one in asks]
    steps = [step for chain in chains for step in chain]
    return steps if len(steps) <= room else [DecompositionStep(one) for one in asks]


def _first(
    text: str, found: PatternMatch, ask: str, lists: Lexicon, taken: set[str]
) -> DecompositionStep:
    """Return what is asked first, with the slot of its noun and the kind of its answer."""
    given = found.row.given
    head = span(text, found.group("head")).casefold() or given["slot"]
    noun = noun_of(head, lists) if lists.known.dictionary else singular(head, lists)
    kind: AnswerKind | None = given.get("wants") or kind_of(noun, lists)
    if "wants" not in given and is_plural(head, lists):
        kind = "list"
    slot = slot_name(noun, taken)
    return DecompositionStep(_question(_written(text, ask, found, {}, lists), lists), slot, kind)


def _written(
    text: str, template: str, found: PatternMatch, given: dict[str, str], lists: Lexicon
) -> str:
    """Put groups of a match into a template: `<noun>`, or `<noun.form>` in another form."""

    def put(piece: re.Match[str]) -> str:
        name, form = piece[1], piece[2] or ""
        if name in given:
            return given[name]
        return _text(text, found, name, form, lists)

    # Only the template is read for pieces, never what a person typed.
    return " ".join(_PIECE.sub(put, template).split()).replace(" ,", ",")


def _text(text: str, found: PatternMatch, name: str, form: str, lists: Lexicon) -> str:
    if name == "is":
        return _asker(text, found, lists)
    words = found.group(name)
    phrase = span(text, words)
    return inflect_phrase(phrase, words, form, found.group("pronoun"), lists) if form else phrase


def _asker(text: str, found: PatternMatch, lists: Lexicon) -> str:
    """Return the words that ask for a person, for a thing or for several."""
    templates = table(lists.language).templates
    head = span(text, found.group("head")).casefold()
    if lists.known.dictionary:
        return inflect_phrase(head, found.group("head"), "which_is", found.group("pronoun"), lists)
    several = "s" if is_plural(head.split()[-1], lists) else ""
    kind = "thing" if "a" in found.places else kind_of(singular(head, lists), lists)
    return templates.get(f"{kind}{several}") or templates[f"thing{several}"]


def _ends(found: PatternMatch, name: str) -> tuple[int, int]:
    words = found.group(name)
    return words[0].start, words[-1].end


def _question(text: str, lists: Lexicon) -> str:
    return capitalised(asked(text, lists.known.question_mark))


def _root(text: str, cut: PatternMatch, lists: Lexicon) -> bool:
    """Tell whether a question asks for nothing but what the cut describes."""
    start, end = _ends(cut, "cut")
    if not says_something(text[:start], lists) and _AND_MORE.match(text, end):
        return True  # "What is the name of the city that …, and which …"
    rest = f"{text[:start]} {text[end:]}"
    asks = lists.is_question(rest) or lists.starts("listing", rest) or not lists.is_question(text)
    return not (asks and says_something(rest, lists))


def says_something(text: str, lists: Lexicon) -> bool:
    """Tell whether a text has a content word beside those that only ask for a name."""
    bare = filled(text, dict.fromkeys(slots_in(text), " "))
    bare = lists.remove(bare, "question", "auxiliary", "naming")
    only = _naming(lists) | stopwords(lists.language)
    left = [term for term in content_terms(bare, lists.language) if term.isalnum()]
    acts = lists.any_of("base_verb") - lists.any_of("auxiliary_verb")
    if any(singular(word.casefold(), lists) in acts for word in bare.split()):
        return True  # "Who owns …": a verb may be a stop word
    return any(len(term) > 1 and term not in only for term in left)


@lru_cache(maxsize=8)
def _naming(lists: Lexicon) -> frozenset[str]:
    """Return the terms of the words that only ask for a name, whatever their form."""
    return frozenset(
        term for word in lists.any_of("naming") for term in terms(word, lists.language)
    )


def _sound(steps: list[DecompositionStep], room: int) -> list[DecompositionStep]:
    """Return the steps, none where a slot is used too early or never, or a text has no words."""
    known: set[str] = set()
    used: set[str] = set()
    for step in steps:
        names = set(slots_in(step.text))
        bare = filled(step.text, dict.fromkeys(names, " "))
        if not names <= known or not any(character.isalnum() for character in bare):
            return []
        used |= names
        if step.slot is not None:
            known.add(step.slot)
    return steps if len(steps) <= room and known <= used else []
