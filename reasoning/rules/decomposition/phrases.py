"""Words of a question with their places: quoted titles and slots are one word each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

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
