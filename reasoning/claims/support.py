"""Tell whether evidence supports a claim in its own language: sentence by sentence, fail closed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache, partial
from math import log
from typing import NamedTuple

from core.language.orders import gives_orders
from core.language.sentences import sentence_spans
from core.language.table_rows import (
    MARK,
    NAMED,
    PAIR,
    cells_of,
    is_rule,
    label_cells,
    write_cells,
)
from models.embeddings import Embedder
from reasoning.claims.alignment import align, same
from reasoning.claims.edits import Similar
from reasoning.claims.judging import Judge
from reasoning.claims.numbers import equate_measures
from reasoning.claims.tokens import FUNCTION, ClaimToken, claim_tokens
from reasoning.claims.words import claim_words

CANDIDATES = 4  # sentences that are tried alone
JOINED = 6  # sentences at most that a statement may be joined from
ASKS = ("?", "？")
BEFORE = 3  # sentences before one that may say what its pronouns mean
GRAM = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_\u3400-\u9fff]{1,4}|[\u3400-\u9fff]")
MARKS = re.compile(r"^\s*[-+•]\s+|[\s*_`#|。!！]+|(?<!\d)\.|\.(?!\d)")


# What stands before the colon of an entry of a list and has a number or letter: "E04", "Mode B".
LABEL = re.compile(
    r"\s*(?:[-*•]\s*)?((?:[^\W\d_]+ ){0,2}(?:[^\W\d_]*\d[\w.-]*|[A-ZА-Я]))\s*[:：](?!\d)"
)

UNLIKE = "nothing in the quote is like it"


class Line(NamedTuple):
    """Hold one sentence of the evidence, with its place and that of the text it is of."""

    text: str
    source: int
    place: int
    span: tuple[int, int]
    name: str = ""  # of the row that it is a cell of
    cell: str = ""
    names: str = ""  # of its column and of that of the names

    @property
    def grams(self) -> frozenset[str]:
        """Return what is compared to find the sentences that are like a claim."""
        return _grams(self.text)


@lru_cache(maxsize=256)
def _spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return where sentences of a text stand, and rows of tables, whatever is in them."""
    found: list[tuple[int, int]] = []
    start = end = 0
    for line in text.splitlines(keepends=True):
        first, end = end, end + len(line)
        if cells_of(line):
            found += [(start + a, start + b) for a, b in sentence_spans(text[start:first])]
            found.append((first, first + len(line.rstrip())))
            start = end
    return (*found, *((start + a, start + b) for a, b in sentence_spans(text[start:])))


def plain(text: str) -> str:
    """Return a text without what makes no difference to what it says."""
    return MARKS.sub("", text).casefold()


@lru_cache(maxsize=8192)
def _grams(text: str) -> frozenset[str]:
    return frozenset(GRAM.findall(text.casefold()))


def _label(text: str) -> str:
    found = LABEL.match(text)
    return found.group(1) if found else ""


def _names(claim: str, label: str) -> bool:
    """Tell whether a claim has a label, in its own capitals: "A" is no article."""
    return re.search(rf"(?<![^\W_]){re.escape(label)}(?![^\W_])", claim, re.ASCII) is not None


def _entries(claim: str, lines: Sequence[Line]) -> list[Line]:
    """Return what a claim may rest on: of entries ("E04: …") those whose labels it names.

    A single label is the heading of what follows, several are those of entries.
    """
    labels = [one.name or _label(one.text) for one in lines]
    if len({*labels} - {""}) < 2:
        return list(lines)
    named = {label for label in labels if label and _names(claim, label)}
    return [
        line
        for line, label in zip(lines, labels, strict=True)
        if not named or not label or label in named
    ]


def _by_cell(lines: Sequence[Line]) -> list[Line]:
    """Return lines with the rows of tables taken apart: each cell with its row and its column.

    A table's first row names its columns; it may be quoted alone before another row of it.
    """
    found: list[Line] = []
    header: Line | None = None
    for line in lines:
        cells = cells_of(line.text)
        named = label_cells(header.text, line.text) if header is not None and cells else []
        apart = header is not None and line.source != header.source and found[-1] is not header
        if header is None or not named or apart:
            header = line if cells else None
            found.append(line)
        elif not is_rule(cells) and line.text != header.text:
            if found[-1] is header and len(cells) > PAIR:
                found.pop()  # else a cell could be joined to the name of another column
            found += [
                line._replace(
                    text=write_cells(named, frozenset({one.column})),
                    name=cells[0],
                    cell=one.text,
                    names=f"{cells_of(header.text)[0]} {one.label}",
                )
                for one in named
                if one.column
            ]
    return found


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


class Supporting:
    """Hold texts as evidence, to judge claims by."""

    def __init__(
        self, texts: Sequence[str], language: str | None, similar: Similar | None = None
    ) -> None:
        """Cut texts in one language into sentences; an order to a program supports nothing."""
        self._language = language
        self._similar = similar
        self._lines = [
            Line(text[slice(*span)], source, place, span)
            for source, text in enumerate(texts)
            for place, span in enumerate(_spans(text))
            if not gives_orders(text, *span)
        ]
        self._plain = [plain(line.text) for line in self._lines]
        self._cells = _by_cell(self._lines)

    def difference(self, claim: str) -> str:
        """Return how a claim differs from the evidence, or "" for not at all."""
        return self._judged(claim)[0]

    def spans(self, claim: str) -> list[tuple[int, int]]:
        """Return where the sentences stand that support a claim, of one text; none for no support.

        Neighbours are one span.
        """
        reason, lines = self._judged(claim)
        found: list[tuple[int, int]] = []
        last = -2
        for line in sorted({one.place: one for one in lines}.values(), key=lambda one: one.place):
            if found and line.place == last + 1:
                found[-1] = (found[-1][0], line.span[1])
            else:
                found.append(line.span)
            last = line.place
        return [] if reason else found

    def _judged(self, claim: str) -> tuple[str, list[Line]]:
        """Return the first difference of a claim, and the sentences on which the rest stands."""
        used: list[Line] = []
        lines = self._parts(claim) or [claim[slice(*span)] for span in _spans(claim)]
        for line in filter(_says_something, lines):
            found = self._quoted(plain(line)) or self._stated_cell(line)
            reason = ""
            if not found:
                reason, found = self._compared(line)
            if reason:
                return reason, []
            used += found
        return "", used

    def _parts(self, claim: str) -> list[str]:
        """Return what a claim says of each column of one row, where it does."""
        for name in {f"{one.name}{NAMED}" for one in self._cells if one.name}:
            if claim.startswith(name):
                columns = {one.text.removeprefix(name).partition(":")[0] for one in self._cells}
                ends = "|".join(map(re.escape, sorted(columns, key=len, reverse=True)))
                parts = re.split(rf"[;,]\s+(?=(?:{ends}):)", claim.removeprefix(name))
                return [name + one for one in parts]
        return []

    @cached_property
    def _weights(self) -> dict[str, float]:
        counts = Counter(gram for line in self._lines for gram in line.grams)
        return {gram: log(1 + len(self._lines) / count) for gram, count in counts.items()}

    def quotes(self, claim: str) -> bool:
        """Tell whether every sentence of a claim is one of the evidence, to the letter."""
        lines = [claim[start:end] for start, end in _spans(claim)]
        return all(self._quoted(plain(one)) for one in lines if any(map(str.isalnum, one)))

    def _quoted(self, line: str) -> list[Line]:
        """Return the sentences of which a line is the whole text, to the letter."""
        for start, first in enumerate(self._plain):
            rest, at = line, start
            while first and at < len(self._plain) and rest.startswith(self._plain[at]):
                rest, at = rest[len(self._plain[at]) :], at + 1
                if not rest:
                    return self._lines[start:at]
        return []

    def _stated_cell(self, claim: str) -> list[Line]:
        """Return the cell that a claim states: the name of its row, what is in it, no other word.

        But those that name its column.
        """
        for line in self._cells:
            rest = claim
            for part in (line.name, line.cell):
                rest = rest.replace(part, " ", 1) if _names(rest, part) else ""
            left = claim_tokens(rest, self._language)
            known = claim_tokens(line.names, self._language)
            if (
                line.cell
                and rest
                and all(
                    one.role == FUNCTION or any(same(one, each) for each in known) for one in left
                )
            ):
                return [line]
        return []

    def _compared(self, claim: str) -> tuple[str, list[Line]]:
        """Return the difference from the likest sentences, or "" with those that have none."""
        if not self._lines:
            return "there is no evidence", []
        tokens = claim_tokens(claim, self._language)
        words = claim_words(self._language)
        best: tuple[float, str] | None = None
        asks = claim.rstrip().endswith(ASKS)
        for window in self._windows(claim):
            if not asks and all(line.text.rstrip().endswith(ASKS) for line in window):
                best = best or (float("inf"), "the quote only asks it")
                continue
            text = [
                token._replace(place=place)
                for place, line in enumerate(window)
                for token in claim_tokens(line.text, self._language)
            ]
            text = equate_measures(tokens, text, words)
            aligned = align(tokens, text)
            used = {
                text[place].place
                for row, place in (*aligned.matched.items(), *aligned.moved.items())
                if tokens[row].is_content
            }
            if used and len(window) > len(used):
                continue  # a sentence of which nothing but small words is taken
            reason = Judge(aligned, words, partial(self._earlier, window), self._similar).reason()
            if not reason and used:
                return "", window
            reason = reason or UNLIKE  # what a pronoun may stand for is not said of it
            if best is None or aligned.cost < best[0]:
                best = aligned.cost, reason
        return (best[1] if best else UNLIKE), []

    def _windows(self, claim: str) -> Iterator[list[Line]]:
        """Yield what the claim may rest on: single sentences, then those that add to the best."""
        wanted = _grams(claim)
        lines = _entries(claim, self._lines if MARK in claim else self._cells)
        ranked = sorted(lines, key=lambda line: -self._shared(wanted, line))
        singles = [line for line in ranked[:CANDIDATES] if line.grams & wanted]
        for line in singles:
            yield [line]
        if not singles:
            return
        tokens = [one for one in claim_tokens(claim, self._language) if one.is_content]
        lacking = [self._lacking(tokens, line) for line in singles]
        if not all(lacking):
            return  # nothing is to be added to one that has every word
        for start, left in list(zip(singles, lacking, strict=True))[:2]:
            window = [start]
            while left and len(window) < JOINED:
                grams = _grams(" ".join(one.text for one in left))
                line = max(lines, key=lambda one: self._shared(grams, one))
                rest = self._lacking(left, line)
                if line in window or len(rest) == len(left):
                    break
                window, left = [*window, line], rest
                yield sorted(window, key=lambda one: (one.source, one.place))

    def _lacking(self, tokens: Sequence[ClaimToken], line: Line) -> list[ClaimToken]:
        """Return the tokens that a sentence lacks."""
        known = claim_tokens(line.text, self._language)
        return [one for one in tokens if not any(same(one, other) for other in known)]

    def _shared(self, wanted: frozenset[str], line: Line) -> float:
        return sum(self._weights[gram] for gram in wanted & line.grams)

    def _earlier(self, window: Sequence[Line]) -> list[ClaimToken]:
        """Return what stands before the sentences of a window, and in the others of it."""
        found: list[ClaimToken] = []
        for line in self._lines:
            if any(
                line.source == one.source and 0 < one.place - line.place <= BEFORE for one in window
            ) or (line.place == 0 and any(line.source == one.source for one in window)):
                found += claim_tokens(line.text, self._language)
        return found


def entails(
    claim: str, quotes: Sequence[str], language: str, embedder: Embedder, least: float
) -> bool:
    """Tell whether quotes support a claim; words whose cosine is at least `least` are the same."""
    # A language whose opposites are nearer to each other asks for more.
    least = max(least, claim_words(language).least_cosine)

    def similar(one: str, other: str) -> bool:
        first, second = embedder.embed_documents([one.casefold(), other.casefold()])
        return float(first @ second) >= least

    return not Supporting(quotes, language, similar).difference(claim)
