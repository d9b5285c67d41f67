"""Take an English question apart, the innermost description first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reasoning.rules.lexicon import Lexicon
from reasoning.rules.participles import bare_cut, participle_cut
from reasoning.rules.parts import Cut
from reasoning.rules.phrases import Word, words_of
from reasoning.rules.relative import relative_cut
from reasoning.rules.roles import possessive_cut, role_cut

Finder = Callable[[str, Sequence[Word], int, Lexicon], Cut | None]
FINDERS: tuple[Finder, ...] = (
    relative_cut,
    participle_cut,
    role_cut,
    possessive_cut,
    bare_cut,
)


def english_cuts(text: str, lists: Lexicon) -> Iterator[Cut]:
    """Yield the descriptions of a question that can be asked for alone, the last first."""
    words = words_of(text)
    for at in range(len(words) - 1, 0, -1):
        for finder in FINDERS:
            cut = finder(text, words, at, lists)
            if cut is not None:
                yield cut
