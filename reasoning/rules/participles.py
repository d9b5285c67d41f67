"""English descriptions without a pronoun: "the team founded by X", "the city X lived in"."""

from __future__ import annotations

from collections.abc import Sequence

from reasoning.rules.clause_end import clause_end
from reasoning.rules.lexicon import Lexicon
from reasoning.rules.noun_phrase import asker, is_past, phrase_before
from reasoning.rules.parts import Cut, asked
from reasoning.rules.phrases import POSSESSIVE, Word, name_end, span
from reasoning.rules.relative import described, is_share


def participle_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description whose participle is words[at] ("the team founded by X"), or None."""
    if not _describes(words, at, lists):
        return None
    phrase = phrase_before(text, words, at, lists)
    if phrase is None or not phrase.definite or is_share(words, phrase.start, lists):
        return None
    before = words[phrase.start - 1].low if phrase.start else ""
    if before in lists.any_of("be", "have"):  # "was the company founded by X"
        return None
    end = clause_end(words, at + 1, phrase.start, lists, verbs=1)
    clause = words[at:end] if end else []
    if not any(word.capital for word in clause):
        return None
    question = asked(f"{asker(phrase.noun, lists)} the {phrase.body} {span(text, clause)}")
    return described(words, phrase, clause, question, lists)


def _describes(words: Sequence[Word], at: int, lists: Lexicon) -> bool:
    word = words[at]
    if not word.plain or at + 1 >= len(words) or POSSESSIVE.search(word.text):
        return False
    if word.low in lists.any_of("participle_ing"):
        return words[at + 1].kind != "mark"
    if not is_past(word.low, lists):
        return False
    following = words[at + 1].low
    if word.low in lists.any_of("participle_naming"):
        named = words[at + 1 : at + 3]
        return not any(one.capital for one in named) and named[0].low in lists.any_of("joint")
    if word.low in lists.any_of("participle_alone"):
        links = lists.any_of("relative_preposition", "joint", "determiner", "indefinite", "not_of")
        return following in links or words[at + 1].capital
    return following == "by"


def bare_cut(text: str, words: Sequence[Word], at: int, lists: Lexicon) -> Cut | None:
    """Return the description of "the city Kevin Durant played for …", at its name, or None."""
    if at < 2 or not words[at].capital or words[at].kind == "quoted":
        return None
    phrase = phrase_before(text, words, at, lists)
    if phrase is None or not phrase.definite or phrase.noun not in lists.any_of("place_or_group"):
        return None
    stop = name_end(words, at, lists.any_of("title_word"))
    after = words[stop] if stop < len(words) else None
    if after is None or not is_past(after.low, lists):
        return None
    if after.low in lists.any_of("auxiliary_verb"):
        return None
    end = clause_end(words, stop, phrase.start, lists)
    if not end:
        return None
    clause = words[at:end]
    question = asked(f"{asker(phrase.noun, lists)} the {phrase.body} that {span(text, clause)}")
    return described(words, phrase, clause, question, lists)
