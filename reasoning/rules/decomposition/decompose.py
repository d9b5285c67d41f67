"""Take a question apart into parts that depend on each other, by the table of its language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from core.language.analysis import content_terms, terms
from core.language.stopwords import stopwords
from core.types import AnswerKind
from reasoning.planning.slots import escaped, filled, slots_in
from reasoning.rules.decomposition.noun_phrase import is_plural, kind_of, singular
from reasoning.rules.decomposition.parts import DecompositionStep, asked, capitalised, slot_name
from reasoning.rules.decomposition.patterns import PatternMatch, find, table
from reasoning.rules.decomposition.phrases import span
from reasoning.rules.decomposition.word_forms import noun_of, said_as
from reasoning.rules.lexicon import Lexicon

# A longer text is a story rather than a question, and taking it apart goes wrong.
MOST_CHARACTERS = 400
SIDES = ("a", "b", "c")
_AND_MORE = re.compile(r"\s*,")
_PIECE = re.compile(r"<(\w+)(?:\.(\w+))?>")


def across(question: str, lists: Lexicon, room: int, taken: set[str]) -> list[DecompositionStep]:
    """Return the steps of a comparison, or of a list and what is asked of its items, or none."""
    text = escaped(" ".join(question.split()))
    if room < 2 or len(text) > MOST_CHARACTERS or not _asks(text, lists):
        return []
    return _sound(_rows(text, "beside", lists, room, taken), room)


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
        cut = _innermost(cuts, lists)
        step = _first(text, cut, cut.row.ask, lists, taken)
        steps.append(step)
        start, end = _ends(cut, "cut")
        slot = f"{{{step.slot}}}"
        rest = f"{text[:start]}{slot}{text[end:]}"
        text = _written(text, cut.row.then, cut, {"slot": slot}, lists) or rest
    whole = _rows(text, "whole", lists, room, taken) if room - len(steps) > 1 else []
    return [*steps, *(whole or ([DecompositionStep(_question(text, lists))] if steps else []))]


def _innermost(cuts: Sequence[PatternMatch], lists: Lexicon) -> PatternMatch:
    """Return the cut that holds no other: what describes stands behind, in Chinese before."""
    if not lists.known.spaced:
        return min(cuts, key=lambda one: one.places["cut"][1])
    return max(cuts, key=lambda one: one.places["cut"][0])


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
    said = span(text, words)
    return said_as(said, words, form, found.group("pronoun"), lists) if form else said


def _asker(text: str, found: PatternMatch, lists: Lexicon) -> str:
    """Return the words that ask for a person, for a thing or for several."""
    templates = table(lists.language).templates
    head = span(text, found.group("head")).casefold()
    if lists.known.dictionary:
        return said_as(head, found.group("head"), "which_is", found.group("pronoun"), lists)
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
    for name in ("question", "auxiliary", "naming"):
        bare = lists.remove(name, bare)
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
