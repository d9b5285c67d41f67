"""The words that steer the rules, by the folder of their language."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache

from core.language.analysis import analyze, terms
from core.language.cues import Cues
from core.types import AnswerKind
from languages.language import Language, find_language

KINDS: tuple[AnswerKind, ...] = ("person", "date", "place", "number")
# The lists of words that steer a question but name nothing it is about.
STEERING = ("recommend", "recent", "filler")


class Lexicon(Cues):
    """Hold the word lists of one language with tables, synonyms and what Carrel says."""

    def __init__(self, known: Language) -> None:
        """Read the words of a language."""
        loaded = known.read("words")
        units = (filter(str.isalpha, one) for one in known.read("claims").get("units", ()))
        self.synonyms: list[list[str]] = [*loaded.get("synonyms", []), *map(list, units)]
        self._tables: dict[str, dict[str, str]] = {
            name: value for name, value in loaded.items() if isinstance(value, dict)
        }
        lists = {name: v for name, v in loaded.items() if name not in {"synonyms", *self._tables}}
        super().__init__(known, lists)

    @cached_property
    def forms(self) -> list[frozenset[str]]:
        """Return the terms of each word whose forms no stemmer joins: "draw", "drew", "drawn"."""
        listed = self.known.read("claims").get("forms", [])
        return [frozenset(terms(" ".join(one), self.language)) for one in listed]

    def forms_of(self, term: str) -> frozenset[str]:
        """Return a term with its irregular forms."""
        return frozenset({term}).union(*(one for one in self.forms if term in one))

    def any_of(self, *names: str) -> frozenset[str]:
        """Return the entries of some lists together; a list that the language lacks is empty."""
        return frozenset(word for name in names for word in self._lists.get(name, ()))

    def names(self) -> list[str]:
        """Return the names of all lists and tables."""
        return [*self._lists, *self._tables]

    def table(self, name: str) -> dict[str, str]:
        """Return a table of words by name, empty where the language lacks it."""
        return self._tables.get(name, {})

    def search(self, name: str, text: str) -> re.Match[str] | None:
        """Find the first word of a list in a text."""
        pattern = self._pattern(name)
        return None if pattern is None else pattern.search(text)

    def remove(self, text: str, *names: str) -> str:
        """Take the words of some lists out of a text, one list after the other."""
        for pattern in filter(None, map(self._pattern, names)):
            text = self._without(pattern, text)
        return text

    def _without(self, pattern: re.Pattern[str], text: str) -> str:
        if self.known.spaced:
            return pattern.sub(" ", text)
        tokens = analyze(text, self.language)
        starts, ends = ({getattr(one, side) for one in tokens} for side in ("start", "end"))
        # "请" is also the half of "申请".
        return pattern.sub(
            lambda one: " " if one.start() in starts and one.end() in ends else one.group(), text
        )

    def all_of(self, name: str, text: str) -> list[re.Match[str]]:
        """Find every word of a list in a text."""
        pattern = self._pattern(name)
        return [] if pattern is None else [*pattern.finditer(text)]

    def message(self, name: str) -> str:
        """Return a sentence that Carrel itself says."""
        message: str = self.known.messages[name]
        return message

    def answer_kind(self, text: str) -> AnswerKind:
        """Say what kind of answer a question wants; its first question word decides.

        A later one only joins a clause, as "when" does in "what happens when …" and in "may I …
        when …", not in "can you tell me when …".
        """
        leading = self.search("question", text)
        limit = leading.start() if leading else len(text)
        found: list[tuple[int, AnswerKind]] = []
        for kind in KINDS:
            match = self.search(kind, text)
            if match and match.start() <= limit:
                found.append((match.start(), kind))
        if found:
            before = text[: min(found)[0]]
            joins = self.asks_yes_or_no(before) and not self.found("telling", before)
            return "yesno" if joins else min(found)[1]
        return "yesno" if self.asks_yes_or_no(text) else "text"

    def names_something(self, text: str) -> bool:
        """Tell whether a clause has more than words that ask; "and by whom" has not."""
        bare = self.remove(text, "question", "auxiliary", "joiner", "preposition")
        return any(character.isalnum() for character in bare)

    def asks_yes_or_no(self, text: str) -> bool:
        """Tell whether a clause can be answered by yes or no."""
        found = self.found if self.known.yes_or_no == "anywhere" else self.starts
        return found("auxiliary", text)

    def is_question(self, text: str) -> bool:
        """Tell whether a clause asks something by itself."""
        return self.found("question", text) or self.asks_yes_or_no(text)


@lru_cache(maxsize=8)
def lexicon(language: str) -> Lexicon:
    """Return the lexicon of a language; a language without one gets the English lists."""
    return Lexicon(find_language(language))
