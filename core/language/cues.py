"""Words by which a question says what it wants, one YAML file per language."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "resources"
LANGUAGES = ("en", "ru", "uk", "zh")
_UNSPACED = "zh"


class Cues:
    """Hold the word lists of one language and find them in a text."""

    def __init__(self, language: str, lists: Mapping[str, Sequence[object]]) -> None:
        """Take the lists of `language`, one of LANGUAGES, by name."""
        self.language = language
        self._lists = {name: tuple(str(word) for word in words) for name, words in lists.items()}
        self._patterns = {name: self._pattern(words) for name, words in self._lists.items()}

    def _pattern(self, words: tuple[str, ...]) -> re.Pattern[str]:
        longest_first = sorted(words, key=len, reverse=True)
        body = "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest_first) or "(?!)"
        edges = ("", "") if self.language == _UNSPACED else (r"(?<![\w'’])", r"(?![\w'’])")
        return re.compile(f"{edges[0]}(?:{body}){edges[1]}", re.IGNORECASE)

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list by name; empty when this language has none of that name."""
        return self._lists.get(name, ())

    def alternatives(self, name: str) -> str:
        """Return a list as a regular expression."""
        return self._patterns[name].pattern

    def found(self, name: str, text: str) -> bool:
        """Tell whether a text holds a word of a list; a list that is lacking holds none."""
        pattern = self._patterns.get(name)
        return pattern is not None and pattern.search(text) is not None


@cache
def resource(name: str) -> dict[str, Any]:
    """Return what a YAML file of the resources holds."""
    import yaml

    loaded: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


@cache
def cues(language: str) -> Cues:
    """Return the cues of a language; a language without a file gets the English ones."""
    known = language if language in LANGUAGES else "en"
    return Cues(known, resource(f"cues_{known}"))


@cache
def negations() -> frozenset[str]:
    """Return the casefolded words of denial of all languages."""
    return frozenset(
        word.casefold() for language in LANGUAGES for word in cues(language).words("negation")
    )
