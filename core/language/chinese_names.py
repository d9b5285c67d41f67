"""Chinese names by their form: organisation endings, surnames before titles, foreign names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from core.language.chinese import CODE, segment
from core.language.cues import cues
from core.language.scan import HAN
from core.language.stopwords import stopwords

_RUN = re.compile(f"[{HAN}]+")
_FOREIGN = re.compile(f"[{HAN}]{{1,8}}(?:[·•・][{HAN}]{{1,8}})+")
_MAX_SINGLES = 4  # an unknown name falls apart into single characters


def chinese_names(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (kind, start, end) of persons and organisations; overlaps are possible."""
    for match in _FOREIGN.finditer(text):
        yield "PERSON", *_whole_name(match)
    for match in _titled().finditer(text):
        yield "PERSON", match.start(), match.end()
    endings = cues(CODE).words("organisation")
    for match in _RUN.finditer(text):
        if any(ending in match.group() for ending in endings):
            for start, end in _organisations(match.group(), endings):
                yield "ORG", match.start() + start, match.start() + end


def _whole_name(match: re.Match[str]) -> tuple[int, int]:
    """Cut the words of the sentence off both ends of "A·B", as far as they are function words."""
    start, end = match.span()
    parts = re.split("[·•・]", match.group())
    common = stopwords(CODE)
    heads = [to for at, to in _words(parts[0]) if parts[0][at:to] in common]
    tails = [at for at, to in _words(parts[-1]) if at and parts[-1][at:to] in common]
    start += max((to for to in heads if to < len(parts[0])), default=0)
    return start, end - len(parts[-1]) + min(tails, default=len(parts[-1]))


@cache
def _titled() -> re.Pattern[str]:
    """Match a surname and a given name before a title, the title left out."""
    words = cues(CODE)
    surnames = "|".join(sorted(words.words("surname"), key=len, reverse=True))
    titles = "|".join(words.words("person_title"))
    return re.compile(f"(?:{surnames})[{HAN}]{{1,2}}(?={titles})")


def _organisations(run: str, endings: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    """Yield the spans of a run that end like an organisation, with the name before the ending."""
    words = _words(run)
    for place, (start, end) in enumerate(words):
        word = run[start:end]
        ending = next((e for e in endings if word.endswith(e)), None)
        if ending is None:
            continue
        if word == ending:
            start = _name_start(run, words[:place], start)
        if start < end - len(ending):
            yield start, end


def _name_start(run: str, before: list[tuple[int, int]], start: int) -> int:
    """Go back over one known word, or over the single characters of an unknown name."""
    for taken, (word_start, word_end) in enumerate(reversed(before)):
        word = run[word_start:word_end]
        counted = word[-1] in cues(CODE).words("counter") and len(word) <= 2  # 这家, 一个
        if word in stopwords(CODE) or counted or taken == _MAX_SINGLES or (taken and len(word) > 1):
            break
        start = word_start
        if len(word) > 1:
            break
    return start


def _words(run: str) -> list[tuple[int, int]]:
    """Return the spans of the words, none inside another."""
    return [(start, end) for _, start, end in segment(run, "default")]
