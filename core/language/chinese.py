"""Chinese word segmentation: jieba's dictionary, quiet and without its file cache."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Protocol


class _Tokenizer(Protocol):
    """What is used of jieba."""

    def tokenize(  # noqa: D102
        self,
        unicode_sentence: str,
        mode: str,
        HMM: bool,  # noqa: N803
    ) -> Iterator[tuple[str, int, int]]: ...


def segment(run: str) -> Iterator[tuple[str, int, int]]:
    """Yield the search-mode words of a run of Han characters with their places in it.

    Dictionary only: on CMRC 2018 and XQuAD (2,158 questions) neither jieba's new-word model nor
    character bigrams found more passages, and they cost time and index size.
    """
    yield from _tokenizer().tokenize(run, mode="search", HMM=False)


@cache
def _tokenizer() -> _Tokenizer:
    """Load the dictionary (about 0.35 s) into a tokenizer of our own.

    jieba would unmarshal a cache from a fixed name in the shared temporary folder, which anyone
    may write; counting the dictionary directly is safe and, measured, faster than that cache.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pkg_resources, invalid escapes
        import jieba  # type: ignore[import-untyped]
    jieba.setLogLevel(logging.CRITICAL)
    made = jieba.Tokenizer()
    with made.get_dict_file() as lines:
        made.FREQ, made.total = _count(lines)
    made.initialized = True
    tokenizer: _Tokenizer = made
    return tokenizer


def _count(lines: Iterable[bytes]) -> tuple[dict[str, int], int]:
    """Read "word count tag" lines; jieba also wants every prefix of a word, counted 0."""
    frequency: dict[str, int] = {}
    total = 0
    for line in lines:
        word, count_text, _ = line.decode("utf-8").split(" ", 2)
        count = int(count_text)
        frequency[word] = count
        total += count
        for end in range(1, len(word)):
            frequency.setdefault(word[:end], 0)
    return frequency, total
