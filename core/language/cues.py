"""Words by which a question says what it wants, and stop words, by the folder of a language."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from languages.language import Language, find_language, known_languages, read_yaml

_FOLDER = Path(__file__).parent / "resources"


class Cues:
    """Hold the word lists of one language and find them in a text."""

    def __init__(self, known: Language, lists: Mapping[str, Sequence[object]]) -> None:
        """Take the lists of a language by name."""
        self.language = known.code
        self.known = known
        self._lists = {name: tuple(str(word) for word in words) for name, words in lists.items()}
        self._patterns: dict[str, re.Pattern[str]] = {}

    def _pattern(self, name: str) -> re.Pattern[str] | None:
        """Return the pattern of a list, compiled when it is first used: a question uses a few."""
        if name not in self._patterns and name in self._lists:
            self._patterns[name] = re.compile(self.alternatives(name), re.IGNORECASE)
        return self._patterns.get(name)

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list by name; empty when this language has none of that name."""
        return self._lists.get(name, ())

    def alternatives(self, name: str) -> str:
        """Return a list as a regular expression; one that is lacking matches nothing."""
        if name not in self._lists:
            return "(?!)"
        longest_first = sorted(self._lists[name], key=len, reverse=True)
        body = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest_first) or "(?!)"
        edges = ("", "") if not self.known.spaced else (r"(?<![\w'’])", r"(?![\w'’])")
        return f"{edges[0]}(?:{body}){edges[1]}"

    def found(self, name: str, text: str) -> bool:
        """Tell whether a text holds a word of a list; a list that is lacking holds none."""
        pattern = self._pattern(name)
        return pattern is not None and pattern.search(text) is not None

    def starts(self, name: str, text: str) -> bool:
        """Tell whether a text begins with a word of a list."""
        pattern = self._pattern(name)
        return pattern is not None and pattern.match(text.lstrip(" \t\"'«“(¿¡")) is not None


@cache
def resource(name: str) -> dict[str, Any]:
    """Return what a YAML file of the resources holds: of scripts, and of other languages."""
    found: dict[str, Any] = read_yaml(_FOLDER / f"{name}.yaml")
    return found


@cache
def cues(language: str) -> Cues:
    """Return the cues of a language; one without a folder gets the English ones."""
    known = find_language(language)
    return Cues(known, known.read("cues"))


@cache
def negations() -> frozenset[str]:
    """Return the casefolded words of denial of all languages."""
    return frozenset(
        word.casefold()
        for language in known_languages()
        for word in cues(language).words("negation")
    )


def stopwords(language: str) -> frozenset[str]:
    """Return the casefolded function words of a language; empty for one without a folder."""
    known = known_languages().get(language)
    return known.stopwords if known is not None else frozenset()


def own_texts() -> Iterator[str]:
    """Yield what Carrel says in any language, without what is filled into it.

    The names of messages as well: a trail gives a reason to stop by its name.
    """
    for known in known_languages().values():
        yield from _strings(known.messages)


def _strings(message: Any) -> Iterator[str]:  # noqa: ANN401
    if isinstance(message, dict):
        for inner in (*message, *message.values()):
            yield from _strings(inner)
    else:
        yield from re.split(r"\{[^}]*\}", str(message))
