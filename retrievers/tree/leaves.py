"""Leaves of a tree: about 100 tokens of whole sentences, with keywords and questions by rules."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from core.language.analysis import Token, analyze, content_terms
from core.language.entities import Entity, entities
from core.language.passages import points_back
from core.language.scan import CYRILLIC, estimate_tokens, fold
from core.language.sentences import sentence_spans
from languages.language import FALLBACK, find_language
from retrievers.tree.shape import KEYWORDS, LEAF_TOKENS, PATH
from stores.sqlite.tree import TreeChunk, TreeLeaf, TreeSource

REPEATED = 12  # sentences at a chunk's end that the next one may repeat; chosen, not measured
QUESTIONS = 4  # of a leaf; its node takes the best of several leaves; chosen, not measured
LEAST_LETTERS = 3  # of a keyword that is spelt with letters; chosen, not measured
TWICE = 2  # a name counts as much as a word that occurs twice; chosen, not measured
MOST_WORDS, MOST_CHARACTERS = 6, 60  # of a name that is asked about; chosen, not measured
RECORD = "record"  # the kind of a chunk that is a record
LABEL = re.compile(r"^\s*(?P<name>[^\W\d_][^\n:：]{0,38})[:：]\s*\S", re.MULTILINE)
HAN = re.compile(r"[\u3400-\u9fff]")
MARKS = re.compile(r"[`*_#|<>\[\]{}\\]+")


class LeafSpan(NamedTuple):
    """Hold a leaf to be, and which sentences of its chunk it has (first, after the last)."""

    chunk: TreeChunk
    start: int
    end: int
    sentences: tuple[int, int]

    @property
    def text(self) -> str:
        """Return its text."""
        return self.chunk.text[self.start : self.end]


def cut_leaves(chunks: Sequence[TreeChunk]) -> Iterator[LeafSpan]:
    """Yield the leaves of a document's chunks in reading order.

    Sentences that a chunk repeats of the one before are in its leaves once.
    """
    before: list[str] = []
    for chunk in chunks:
        spans = sentence_spans(chunk.text)
        texts = [" ".join(chunk.text[start:end].split()) for start, end in spans]
        place = 0
        while place < len(texts) and texts[place] in before:
            place += 1
        before = texts[-REPEATED:]
        while place < len(spans):
            last, tokens = place, estimate_tokens(texts[place])
            while last + 1 < len(spans):
                tokens += estimate_tokens(texts[last + 1])
                if tokens > LEAF_TOKENS:
                    break
                last += 1
            yield LeafSpan(chunk, spans[place][0], spans[last][1], (place, last + 1))
            place = last + 1


def described_leaf(span: LeafSpan, source: TreeSource) -> TreeLeaf:
    """Return a leaf with its keywords and questions."""
    text, language = span.text, source.language
    found = [one for one in entities(text, language) if _is_name(one.text)]
    keywords = find_keywords(text, language, found)
    asked = dict.fromkeys(_questions(span, source, found, keywords))
    return TreeLeaf(
        span.chunk.ordinal,
        span.start,
        span.end,
        estimate_tokens(text),
        span.chunk.section,
        tuple(keywords),
        tuple(asked)[:QUESTIONS],
    )


def find_keywords(
    text: str, language: str, found: Sequence[Entity] | None = None
) -> list[tuple[str, str]]:
    """Return the words, word pairs and names that occur most as (term, as it is written)."""
    names = entities(text, language) if found is None else found
    plain = _plain_terms(language)
    tokens = [one for one in analyze(text, language) if _is_keyword(text, one, plain)]
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for token in tokens:
        counts[token.term] += 1
        shown = text[token.start : token.end]
        shown = token.term if CYRILLIC.search(shown) else shown
        # Capitals inside make a word a name: GPU, torchTune.
        named = any(map(str.isupper, shown[1:]))
        written.setdefault(token.term, shown if named else shown.lower())
    pairs = Counter(_pairs(text, tokens))
    for (term, shown), count in pairs.items():
        if count > 1:
            counts[term] += TWICE * count
            written.setdefault(term, shown)
    for name in names:
        term = " ".join(one.term for one in analyze(name.text, language)) or fold(name.text)
        counts[term] += TWICE
        written[term] = " ".join(name.text.split())
    return [(term, written[term]) for term, _ in counts.most_common(KEYWORDS + 2)]


@lru_cache(maxsize=16)
def _plain_terms(language: str) -> frozenset[str]:
    """Return the terms that name no topic: numerals and what is done or there everywhere."""
    known = find_language(language)
    words = [*known.read("words").get("numeral", ()), *known.read("tree").get("plain", ())]
    return frozenset(term for word in words for term in content_terms(str(word), known.code))


def _is_keyword(text: str, token: Token, plain: frozenset[str]) -> bool:
    shown = text[token.start : token.end]
    if token.is_function or token.term in plain or not any(map(str.isalpha, shown)):
        return False
    return len(shown) >= (2 if HAN.search(shown) else LEAST_LETTERS)


def _pairs(text: str, tokens: Sequence[Token]) -> Iterator[tuple[str, str]]:
    """Yield words that stand beside each other with one space between."""
    for one, other in zip(tokens, tokens[1:], strict=False):
        if text[one.end : other.start] == " ":
            yield f"{one.term} {other.term}", text[one.start : other.end].lower()


def _is_name(name: str) -> bool:
    fits = len(name) <= MOST_CHARACTERS and len(name.split()) <= MOST_WORDS
    return fits and "\n" not in name and any(map(str.isalpha, name)) and not MARKS.search(name)


@lru_cache(maxsize=16)
def _forms(language: str) -> tuple[list[re.Pattern[str]], dict[str, Any]]:
    own = find_language(language).read("tree") or find_language(FALLBACK).read("tree")
    return [re.compile(one) for one in own["definitions"]], own


def _questions(
    span: LeafSpan, source: TreeSource, found: Sequence[Entity], keywords: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yield what a leaf may answer: a definition, its fields, its names, its heading."""
    text = span.text
    _, forms = _forms(source.language)
    for name in _defined(text, source.language):
        yield forms["definition"].format(name=name)
    if span.chunk.kind == RECORD and source.title:
        for label in LABEL.finditer(text):
            yield forms["field"].format(name=_plain(label["name"]), title=source.title)
    heading = _plain(span.chunk.section.split(PATH)[-1])
    if heading and source.title and fold(heading) != fold(source.title):
        yield forms["heading"].format(name=heading, title=source.title)
    elif source.title:
        yield forms["whole"].format(name=source.title)
    often = Counter(one.text for one in found)
    kinds = {one.text: one.kind for one in found}
    for name, _ in often.most_common(2):
        yield forms["person" if kinds[name] == "PERSON" else "name"].format(name=name)
    for _, shown in keywords[:2]:
        yield forms["name"].format(name=shown)


def _defined(text: str, language: str) -> Iterator[str]:
    patterns, _ = _forms(language)
    for start, end in sentence_spans(text):
        sentence = text[start:end]
        for pattern in patterns:
            match = pattern.match(sentence)
            if match and _is_name(match["name"]) and not points_back(sentence, language):
                yield _plain(match["name"])
                break


def _plain(name: str) -> str:
    return " ".join(MARKS.sub(" ", name).split())
