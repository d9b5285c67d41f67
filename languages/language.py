"""One language as its folder describes it; the languages known are the folders that are there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

FALLBACK = "en"  # whose words are used where a language has none of its own
FILE = "language.yaml"  # a folder with this file is one of a language
_folders = [Path(__file__).resolve().parent]


class Abbreviations(BaseModel):
    """Words whose full stop ends no sentence, as lists with spaces between; see `sentences.py`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    announcing: str = ""
    before_number: str = ""
    continuing_pairs: str = ""
    starters: str = ""
    after_number: str = ""
    after_words: str = ""


class Readability(BaseModel):
    """Say how easy a language is to read: Flesch's ease (1948) and Gunning's fog (1952).

    `ease` is a constant and what words per sentence and syllables per word take from it; words of
    `complex` syllables, which `syllable` matches, are difficult.
    """

    ease: tuple[float, float, float]
    syllable: str
    complex: int

    def measure(self, words: Sequence[str], sentences: int) -> tuple[float, float]:
        """Return ease and fog of a text with these words."""
        syllables = [max(1, len(re.findall(self.syllable, word))) for word in words]
        length, (constant, per_word, per_syllable) = len(words) / max(1, sentences), self.ease
        ease = constant - per_word * length - per_syllable * sum(syllables) / len(words)
        difficult = sum(count >= self.complex for count in syllables) / len(words)
        return ease, 0.4 * (length + 100 * difficult)


class Language(BaseModel):
    """Describe a language by `language.yaml`; the larger files of its folder are read when used.

    `script` is latin, cyrillic, han or the name of another in core/language/resources. A language
    whose words change by their endings alone needs `singular` and `past`, one with a pymorphy3
    `dictionary` has its forms from there, and one that is not `spaced` is cut into known words.
    The reader model has learnt from questions in one with `reader`. `orders` are patterns of what
    gives orders to a program; "<name>" in one stands for a pattern of `order_words`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: str
    folder: Path
    name: str
    script: str = "latin"
    spaced: bool = True
    stemmer: str = ""
    dictionary: str = ""
    letters: str = ""
    shared_letters: str = ""
    letter_weight: int = 1
    marks: str = ""
    shows: str = ""
    near: tuple[str, ...] = ()
    reader: bool = False
    yes_or_no: Literal["first", "anywhere"] = "first"
    question_mark: str = "?"
    full_stop: str = "."
    singular: tuple[tuple[str, str], ...] = ()
    past: str = "(?!)"
    gerund: str = ""
    dated: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    order_words: Mapping[str, str] = Field(default_factory=dict)
    dates: tuple[str, ...] = ()
    decade: str = ""
    born: tuple[str, ...] = ()
    abbreviations: Abbreviations = Field(default_factory=Abbreviations)
    readability: Readability | None = None

    @cached_property
    def stopwords(self) -> frozenset[str]:
        """Return its casefolded function words."""
        path = self.folder / "stopwords.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return frozenset(
            word for line in lines if not line.startswith("#") for word in line.casefold().split()
        )

    @cached_property
    def messages(self) -> dict[str, Any]:
        """Return what Carrel says, in the fallback's words where this language lacks them."""
        own = self.read("messages")
        return own if self.code == FALLBACK else {**find_language(FALLBACK).messages, **own}

    @cached_property
    def steps(self) -> dict[str, dict[str, str]]:
        """Return what steps and operations are called, else in the fallback's words."""
        own, others = self.read("steps"), find_language(FALLBACK).read("steps")
        return {part: {**words, **own.get(part, {})} for part, words in others.items()}

    def read(self, name: str) -> dict[str, Any]:
        """Return what one of its files holds ("words", "messages" …), nothing where it has none."""
        return _read(self.folder / f"{name}.yaml")


@cache
def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(path) if path.exists() else {}
    return found


def read_yaml(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return what a YAML file holds, by the loader in C where there is one: ten times as fast."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


def add_folder(folder: Path) -> None:
    """Look for folders of languages in another folder as well.

    For a program of one's own and for tests, before anything else is asked: what was made of the
    languages known is kept.
    """
    _folders.append(folder)
    known_languages.cache_clear()


@cache
def known_languages() -> Mapping[str, Language]:
    """Return the languages that have a folder, by ISO 639-1 code in alphabetical order."""
    found = [path for folder in _folders for path in folder.glob(f"*/{FILE}")]
    return {path.parent.name: _described(path) for path in sorted(found, key=_code)}


def _code(path: Path) -> str:
    return path.parent.name


def _described(path: Path) -> Language:
    try:
        return Language(code=_code(path), folder=path.parent, **read_yaml(path))
    except (ValidationError, TypeError) as error:
        raise ValueError(f"{path} describes no language: {error}") from error


def find_language(code: str | None) -> Language:
    """Return the language of a code, the fallback where it is unknown."""
    known = known_languages()
    return known.get(code or FALLBACK) or known[FALLBACK]


def of_script(script: str) -> list[Language]:
    """Return the languages written in a script."""
    return [one for one in known_languages().values() if one.script == script]


def is_spaced(code: str) -> bool:
    """Tell whether a language has spaces between words, as one that is unknown is taken to have."""
    known = known_languages().get(code)
    return known is None or known.spaced
