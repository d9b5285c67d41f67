"""Values without a name or number: "the keeper" answers who, "behind the door" where.

"After the briefing" answers when.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from core.language.analysis import Token, analyze
from core.language.words import readings
from reasoning.rules.lexicon import Lexicon

AUXILIARIES_BEFORE = 3  # words before a participle that may hold its auxiliary; chosen
WORDS_BEHIND = 4  # words behind a preposition in which the place may stand; chosen
ADDRESS = re.compile(r"\S@\w|://|(?<!\w)[~.\w]*/\w")  # of somebody, of a page, of a file
# Cases of a noun that may be the one who acts: of the subject, and beside a passive verb.
ACTING = frozenset({"nomn", "ablt"})


class AskedAct(NamedTuple):
    """Hold what somebody does in "who repaired the lamp?": the verb's terms, none for no such act.

    `cases` are those of one who does it, in a language that has cases. `passive` tells that the
    question has an auxiliary of the passive itself ("who is responsible …"), `objective` that it
    asks whom somebody else acts on ("who do I call?").
    """

    terms: frozenset[str] = frozenset()
    cases: frozenset[str] = ACTING
    passive: bool = False
    objective: bool = False


NO_ACT = AskedAct()


def asked_act(text: str, words: Lexicon) -> AskedAct:
    """Return the first word behind "who" that is neither small nor an auxiliary nor a name.

    "Who is the …" asks for a name.
    """
    asked = words.search("person", text) if words.known.spaced else None
    if asked is None:
        return NO_ACT
    behind, passive, objective = text[asked.end() :], False, False
    dictionary = words.known.dictionary
    own = {one.case for one in readings(asked.group().casefold(), dictionary)} if dictionary else ()
    for token in analyze(behind, words.language):
        written = behind[token.start : token.end]
        word = written.casefold()
        if word in words.any_of("determiner", "indefinite"):
            return NO_ACT
        if word in words.any_of("passive"):
            passive = True
        elif token.is_function and word not in words.any_of("auxiliary_verb"):
            objective = True
        elif word not in words.any_of("auxiliary_verb"):
            if written[:1].isupper() or not written.isalpha():
                return NO_ACT
            cases = ACTING.union(own)
            return AskedAct(words.forms_of(token.term), cases, passive, objective)
    return NO_ACT


def names_agent(text: str, act: AskedAct, asked: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a sentence says who does what is asked, by a word that is not among `asked`."""
    if act.terms and ADDRESS.search(text):
        return True
    tokens = analyze(text, words.language)
    places = [place for place, token in enumerate(tokens) if token.term in act.terms]
    if not places:
        return False
    new = [one for one in tokens if _is_new(text, one, asked, words)]
    if words.known.dictionary:
        after = dict(zip(tokens, tokens[1:], strict=False))
        return any(_may_act(text, one, after.get(one), act.cases, words) for one in new)
    if act.objective:
        return bool(new)
    agents = (_agents(text, tokens, place, act, words) for place in places)
    return any(one in new for found in agents for one in found)


def names_place(text: str, asked: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a sentence has a word that is not among `asked` behind one like "under"."""
    if ADDRESS.search(text) or words.found("whereabouts", text):
        return True
    return _leads("spatial", text, asked, words)


def names_time(text: str, asked: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a sentence has a word that is not among `asked` beside one like "after"."""
    return words.found("occasion", text) or _leads("temporal", text, asked, words)


def _leads(name: str, text: str, asked: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a new word stands close behind a word of a list; beside it in Chinese."""
    tokens = analyze(text, words.language)
    for led in words.all_of(name, text):
        behind = [one for one in tokens if one.start >= led.end()][:WORDS_BEHIND]
        if not words.known.spaced:
            behind += [one for one in tokens if one.end <= led.start()][-WORDS_BEHIND:]
        if any(_is_new(text, one, asked, words) for one in behind):
            return True
    return False


def _is_new(text: str, token: Token, asked: frozenset[str], words: Lexicon) -> bool:
    word = _written(text, token)
    small = token.is_function or not word.isalpha()
    return not small and token.term not in asked and not words.found("day_name", word)


def _may_act(
    text: str, token: Token, after: Token | None, cases: frozenset[str], words: Lexicon
) -> bool:
    """Tell whether a word is a noun in one of the cases, or stands for one: "дежурный"."""
    found = readings(_written(text, token), words.known.dictionary)[:3]
    behind = readings(_written(text, after), words.known.dictionary)[:3] if after else ()
    alone = not any(one.pos in ("NOUN", "ADJF", "PRTF") for one in behind)
    kinds = ("NOUN", "ADJF") if alone else ("NOUN",)
    return any(one.pos in kinds and one.case in cases for one in found)


def _agents(
    text: str, tokens: Sequence[Token], place: int, act: AskedAct, words: Lexicon
) -> Sequence[Token]:
    """Return what stands before an active verb, or behind "by" of a passive one."""
    before, behind = tokens[:place], tokens[place + 1 :]
    near = {_written(text, one) for one in before[-AUXILIARIES_BEFORE:]}
    if act.passive or not near & words.any_of("passive"):
        return before
    led = [at for at, one in enumerate(behind) if _written(text, one) in words.any_of("by")]
    return behind[led[0] + 1 :] if led else ()


def _written(text: str, token: Token) -> str:
    return text[token.start : token.end].casefold()
