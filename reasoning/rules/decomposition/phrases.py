"""Phrases of a question: words by their endings, and the noun that names a kind of thing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from core.types import AnswerKind
from reasoning.rules.lexicon import Lexicon

_QUOTED = r"\"[^\"]{1,80}\"|“[^“”]{1,80}”|«[^«»]{1,80}»|„[^„“”]{1,80}[“”]|《[^《》]{1,80}》"
_OPENED = r"(?<!\w)['‘][^'‘’\n]{2,80}['’](?!\w)"
_WORD = re.compile(
    r"(?P<brace>\{\{|\}\})"
    rf"|(?P<slot>\{{[^\W\d]\w*\}}(?:['’]s)?)|(?P<quoted>{_QUOTED}|{_OPENED})"
    r"|(?P<word>(?:[^\W\d_]\.){2,}|(?<!\w)[A-ZА-ЯІЇЄҐ]\.(?=\s)|[$€£]?\w+(?:[-–'’.,&/]\w+)*['’]?)"
    r"|(?P<mark>[^\w\s])"
)
POSSESSIVE = re.compile(r"['’]s?$")


class Word(NamedTuple):
    """Hold one word, mark, quotation or slot: text[start:end] == word.text."""

    text: str
    start: int
    end: int
    kind: str

    @property
    def low(self) -> str:
        """Return the word in small letters."""
        return self.text.casefold()

    @property
    def plain(self) -> bool:
        """Tell whether it is a word in small letters."""
        return self.kind == "word" and self.text[0].islower()

    @property
    def named(self) -> bool:
        """Tell whether it names something: a capital, a digit, a quotation or a slot."""
        if self.kind in ("slot", "quoted"):
            return True
        return self.kind == "word" and (self.text[0].isupper() or self.text[0].isdigit())

    @property
    def capital(self) -> bool:
        """Tell whether it names something by letters, as numbers do not."""
        return self.named and not self.text[0].isdigit()


def words_of(text: str) -> list[Word]:
    """Cut a text into words and marks, in order."""
    return [
        Word(match.group(), match.start(), match.end(), match.lastgroup or "word")
        for match in _WORD.finditer(text)
    ]


def span(text: str, words: Sequence[Word]) -> str:
    """Return the text that some words in a row cover, "" for none."""
    return text[words[0].start : words[-1].end] if words else ""


SHORTEST = 4  # letters of a plural that its ending tells; chosen, not measured


def is_past(word: str, lists: Lexicon) -> bool:
    """Tell whether a word reads as a past tense or a participle."""
    if word in lists.any_of("not_participle"):
        return False
    return re.match(lists.known.past, word) is not None or word in lists.any_of(
        "participle", "past_verb"
    )


def is_verb(word: Word, lists: Lexicon) -> bool:
    """Tell whether a word reads as a verb."""
    return word.plain and (
        word.low in lists.any_of("base_verb", "auxiliary_verb") or is_past(word.low, lists)
    )


def kind_of(noun: str, lists: Lexicon) -> AnswerKind | None:
    """Return the kind of answer that a noun in small letters stands for, None when unknown."""
    last = singular(noun.split()[-1], lists) if noun.split() else ""
    kinds: tuple[AnswerKind, ...] = ("person", "place", "date")
    return next((one for one in kinds if lists.any_of(f"{one}_noun") & {last, noun}), None)


def is_plural(noun: str, lists: Lexicon) -> bool:
    """Tell whether a noun in small letters reads as a plural."""
    return singular(noun, lists) != noun


def singular(noun: str, lists: Lexicon) -> str:
    """Return the singular of a noun in small letters, where endings tell a plural."""
    noun = noun.rstrip("'’")
    endings = lists.known.singular
    irregular = lists.table("plural").get(noun) if endings else None
    if irregular or len(noun) < SHORTEST:
        return irregular or noun
    fitting = ((plural, one) for plural, one in endings if re.search(plural, noun))
    return next((re.sub(plural, one, noun) for plural, one in fitting), noun)
