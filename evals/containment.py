"""Tell whether a gold answer stands within what was said, however it is spelled."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from core.language.scan import HAN, UNSPACED

# Nothing that a sentence contains shows that it means yes.
YES_NO = frozenset(
    ("yes", "no", "true", "false", "да", "нет", "так", "ні", "是", "否", "不", "是的", "不是")
)
_WITHIN_NUMBERS = re.compile(r"(?<=\d)[.,'\u2019\u00a0\u202f](?=\d)")
_NO_WORD = re.compile(r"[\W_]+")
_SPACED = rf"[^\W{HAN}{UNSPACED}]"


def folded(text: str) -> str:
    """Return words with one blank between them, without case and punctuation.

    What groups or splits the digits of a number goes, so that a part of it is no number.
    """
    joined = _WITHIN_NUMBERS.sub("", unicodedata.normalize("NFKC", text).casefold())
    return _NO_WORD.sub(" ", joined).strip()


def judged_answers(answers: Iterable[str]) -> list[str]:
    """Return the accepted answers that containment can judge: neither yes or no, nor nothing."""
    return [answer for answer in answers if folded(answer) and folded(answer) not in YES_NO]


def contains_answer(answers: Sequence[str], said: Iterable[str]) -> bool:
    """Tell whether any accepted answer stands as whole words within any of the texts.

    Characters of scripts without blanks between words are words by themselves.
    """
    patterns = [_pattern(folded(answer)) for answer in answers if folded(answer)]
    texts = [folded(text) for text in said]
    return any(pattern.search(text) for pattern in patterns for text in texts)


def _pattern(wanted: str) -> re.Pattern[str]:
    before = f"(?<!{_SPACED})" if re.match(_SPACED, wanted) else ""
    after = f"(?!{_SPACED})" if re.match(_SPACED, wanted[-1]) else ""
    return re.compile(before + re.escape(wanted) + after)
