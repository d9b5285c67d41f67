"""What tells whether a sentence answers a question: numbers between 0 and 1 for each sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log1p
from typing import NamedTuple

import numpy as np

from core.language.analysis import content_terms, terms
from core.language.passages import CODE_KIND, TABLE, spans_of
from core.types import AnswerKind, Evidence
from languages.language import find_language
from models.embeddings import Vectors
from reasoning.rules.answering.blocks import (
    COLONS,
    MOST_CHARACTERS,
    QUESTION_ENDS,
    announced,
    code_spans,
    follows,
    listed,
    reports,
    shows_code,
)
from reasoning.rules.answering.headings import dated, heading_of, leads
from reasoning.rules.answering.wanted import QueryTerms
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.values.forms import NUMBER, counts, has_kind, without_numbers
from reasoning.rules.values.nameless import names_agent, names_place, names_time

FEATURES = (
    # Words of the question: the share of their weight that stands in the sentence, and what the
    # sentences around it, the headings above it and the rest of its chunk add.
    *("here", "near", "heading", "chunk"),
    *("rarest_missing", "names_missing", "numbers_missing", "subject"),
    # Meaning: of the sentence, against the best sentence of all, and of its chunk.
    *("similarity", "behind", "passage", "rank"),
    # Echo: how much of the sentence the question says itself, how much it adds.
    *("echo", "news"),
    # Form.
    *("asks", "announces", "unfinished", "short", "first"),
    # The kind of answer.
    *("valued", "lacking", "number", "date", "person", "place", "negation", "defines"),
    *("valued_near", "absent", "focus_absent", "foreign", "foreign_similarity"),
    # What several things or a way to do something are asked for: a list, code.
    *("listed", "coded", "code"),
    # A value of a certain form, as a version is of numbers; a cause, where one is asked for.
    *("formed", "caused"),
)
_PLACES = {name: place for place, name in enumerate(FEATURES)}
# Chosen, not measured:
NEAR_BEFORE, NEAR_AFTER = 2, 1  # sentences around one that may say what it leaves out
LEAST_LEXICAL = 0.5  # of the question's words, by rarity; chosen, not measured
SHORT = 4  # terms; a heading or a greeting has fewer; chosen, not measured
MOST_NEWS = 30  # content words beyond which a sentence adds no more; chosen, not measured
KINDS: tuple[AnswerKind, ...] = ("number", "date", "person", "place")
CLOSING = "\"'”’»)]）】」』*_`"
DEFINED = re.compile(r"(?<=\w)[*_`]*(?: [—–-] |: )")
ENDS = (".", "!", "…", "。", "！", "?", "？", ";", "；")


class Candidate(NamedTuple):
    """Hold one sentence of evidence; `matched` are the question's own words that it holds.

    `heads` tells that it is nothing but a heading of others.
    """

    evidence: Evidence
    start: int
    end: int
    matched: frozenset[int]
    row: list[float]
    heads: bool

    def value(self, name: str) -> float:
        """Return the value of one of the features."""
        return self.row[_PLACES[name]]


@lru_cache(maxsize=16384)
def terms_of(text: str, language: str) -> frozenset[str]:
    """Return the terms of a text."""
    return frozenset(terms(text, language))


@lru_cache(maxsize=16384)
def content_of(text: str, language: str) -> frozenset[str]:
    """Return the terms of a text without function words."""
    return frozenset(content_terms(text, language))


@lru_cache(maxsize=16384)
def spoken_in(text: str, language: str, asked: str) -> str:
    """Return the language of a sentence: that of its document, or that asked in by its script.

    A record may hold fields of several languages.
    """
    shows = find_language(asked).shows
    return asked if shows and re.search(shows, text) else language


def features(
    wanted: QueryTerms, evidence: Sequence[Evidence], similarities: Sequence[Vectors]
) -> tuple[list[Candidate], Vectors]:
    """Return the sentences of evidence and their features, shape (sentences, len(FEATURES)).

    `similarities` holds, for each piece of evidence, how like the question its sentences are and,
    last, how like it is as a whole; 0 for unrelated, 1 for the same.
    """
    best: dict[str, float] = {}  # across languages similarities are higher or lower throughout
    for item, likeness in zip(evidence, similarities, strict=True):
        top = float(likeness[:-1].max(initial=0.0))
        best[item.language] = max(best.get(item.language, 0.0), top)
    found: list[Candidate] = []
    for rank, (item, likeness) in enumerate(zip(evidence, similarities, strict=True)):
        beside = "\n".join(one.text for one in evidence if one.document_key == item.document_key)
        passage = _Passage(wanted, item, follows(item, evidence), beside)
        found += passage.candidates(likeness, best[item.language], rank)
    rows = [one.row for one in found]
    return found, np.array(rows, dtype=np.float32).reshape(len(rows), len(FEATURES))


class _Passage:
    """Look at the sentences of one piece of evidence, each in what stands around it."""

    def __init__(
        self, wanted: QueryTerms, item: Evidence, following: Evidence | None, beside: str
    ) -> None:
        """Look at a piece of evidence in its document, whose pieces `beside` holds."""
        self.wanted, self.item, self.following = wanted, item, following
        self.words, self.asking = lexicon(item.language), lexicon(wanted.language)
        self.spans = spans_of(item.text, item.kind)
        self.texts = [item.text[start:end] for start, end in self.spans]
        self.spoken = [spoken_in(one, item.language, wanted.language) for one in self.texts]
        self.terms = list(map(terms_of, self.texts, self.spoken))
        title = terms_of(heading_of(item), item.language)
        self.above = leads(item.text, self.spans, item.kind, item.language)
        self.headings = [title | terms_of(one.text, item.language) for one in self.above]
        # "Its lead is …" speaks of what the sentence before it says.
        self.refers = [
            bool(place) and self.words.starts("reference", text)
            for place, text in enumerate(self.texts)
        ]
        for place in range(1, len(self.texts)):
            if self.refers[place]:
                self.headings[place] |= self.terms[place - 1]
        # What leads a sentence is not said beside it, too.
        self.beside = [
            frozenset() if one.leads else words
            for one, words in zip(self.above, self.terms, strict=True)
        ]
        self.chunk = terms_of(item.text, item.language)
        self.numbers = frozenset(NUMBER.findall(wanted.text))
        self.dated = dated(item) if wanted.wants == "date" else ""
        self.code = (
            range(len(self.spans)) if item.kind == CODE_KIND else code_spans(item.text, self.spans)
        )
        self.missing = self._missing(self.chunk | title, terms_of(beside, item.language) | title)

    def _missing(self, everywhere: frozenset[str], document: frozenset[str]) -> list[float]:
        """Return whether the rarest word is nowhere, and the shares of names and numbers so.

        What a document is about it names once.
        """
        own = self.wanted.groups[: self.wanted.own]
        rarest = max((weight for _, _, weight in own), default=0.0)
        missing = any(
            weight >= rarest and not (group | near) & everywhere for group, near, weight in own
        )
        named = [bool(name & document) for name in self.wanted.entity_terms]
        names = 1 - sum(named) / len(named) if named else 0.0
        present = set(NUMBER.findall(f"{self.item.text} {heading_of(self.item)}"))
        numbers = len(self.numbers - present) / len(self.numbers) if self.numbers else 0.0
        # Words of two languages cannot be compared, so what they would say is left out.
        if self.item.language != self.wanted.language:
            return [0.0, 0.0, numbers]
        return [float(missing), names, numbers]

    def candidates(self, likeness: Vectors, best: float, rank: int) -> list[Candidate]:
        """Return the sentences with their features, in the order of FEATURES."""
        found = []
        for place in range(len(self.spans)):
            shares, matched = self._shares(place)
            foreign = self.spoken[place] != self.wanted.language
            about = self.wanted.subject if not foreign else frozenset()
            covered = self.terms[place] | self.headings[place]
            similarity = float(likeness[place])
            # Names and codes are the same in any language: what says them is compared by them.
            across = float(foreign and shares[0] < LEAST_LEXICAL)
            unit, prose = self._unit(place)
            valued = self._valued(place, prose)
            row = [
                *shares,
                *self.missing,
                len(about & covered) / len(about) if about else 1.0,
                similarity,
                best - similarity,
                float(likeness[-1]),
                1 / (1 + rank),
                *self._echo(place, unit),
                *self._form(place),
                *self._kind(place, shares[0] + shares[1], matched, valued=valued),
                0.0 if foreign else self.wanted.absent,
                float(self.wanted.focus_absent and not foreign),
                across,
                across * similarity,
                *self._asked_form(place, unit, prose, valued=valued),
            ]
            heads = self.above[place].heads
            found.append(Candidate(self.item, *self.spans[place], matched, row, heads))
        return found

    def _shares(self, place: int) -> tuple[list[float], frozenset[int]]:
        """Return the shares of the question in a sentence, around, above and in its chunk."""
        own = self.wanted.groups[: self.wanted.own]
        total = sum(weight for _, _, weight in own) or 1.0
        around = frozenset().union(
            *self.beside[max(0, place - NEAR_BEFORE) : place],
            *self.beside[place + 1 : place + 1 + NEAR_AFTER],
        )
        shares, matched = [0.0, 0.0, 0.0, 0.0], set()
        for number, (group, synonyms, weight) in enumerate(own):
            either = group | synonyms
            steps = [
                (0, self.terms[place]),
                (1, around),
                (2, self.headings[place]),
                (3, self.chunk),
            ]
            if self.refers[place]:
                steps[1], steps[2] = steps[2], steps[1]
            for step, where in steps:
                if either & where:
                    shares[step] += weight / total
                    matched |= {number} if step in (0, 2) else set()
                    break
        return shares, frozenset(matched)

    def _at_end(self, place: int) -> bool:
        """Tell whether a sentence announces the next chunk."""
        last = place == len(self.spans) - 1 and self.texts[place].endswith(COLONS)
        return last and self.following is not None

    def _unit(self, place: int) -> tuple[str, str]:
        """Return a sentence with what it announces, and that without code of another chunk.

        A number within code is no answer to a question for a number.
        """
        text, last = self.texts[place], announced(self.item.text, self.spans, place)
        unit = self.item.text[self.spans[place][0] : self.spans[last][1]]
        if self.following is None or not self._at_end(place):
            return unit, unit
        joined = f"{unit}\n{self.following.text[:MOST_CHARACTERS]}"
        return joined, text if self.following.kind == CODE_KIND else joined

    def _echo(self, place: int, unit: str) -> list[float]:
        content = content_of(self.texts[place], self.spoken[place])
        new = content_of(unit, self.item.language) - self.wanted.terms
        return [
            len(content & self.wanted.terms) / len(content) if content else 1.0,
            min(1.0, log1p(len(new)) / log1p(MOST_NEWS)),
        ]

    def _form(self, place: int) -> list[float]:
        bare = self.texts[place].rstrip().rstrip(CLOSING)
        row = self.item.kind == TABLE and place > 0
        alone = announced(self.item.text, self.spans, place) == place and not self._at_end(place)
        return [
            float(bare.endswith(QUESTION_ENDS) or reports(self.texts[place], self.words)),
            float(bare.endswith(COLONS) and alone),
            float(not row and not bare.endswith((*ENDS, *COLONS))),
            float(not row and len(self.terms[place]) < SHORT),
            float(place == 0),
        ]

    def _checked(self) -> bool:
        return self.wanted.wants in KINDS or bool(self.wanted.form)

    def _valued(self, place: int, text: str) -> bool:
        """Tell whether a text holds a value of the kind asked for, a number of what is counted."""
        kind, form, counted = self.wanted.wants, self.wanted.form, self.wanted.counted
        bare = without_numbers(f"{text} {self.dated}", self.numbers)
        asked = self.wanted.terms
        if not self._checked() or not (
            has_kind(kind, bare, self.words, asked, form)
            or names_agent(bare, self.wanted.act, asked, self.words)
            or (kind == "place" and names_place(bare, asked, self.words))
            or (kind == "date" and not form and names_time(bare, asked, self.words))
        ):
            return False
        # What a cell counts stands above it.
        uncountable = self.spoken[place] != self.wanted.language or self.item.kind == TABLE
        return uncountable or not counted or counts(bare, counted, self.asking)

    def _kind(
        self, place: int, near: float, matched: frozenset[int], *, valued: bool
    ) -> list[float]:
        text = self.texts[place]
        off_topic = self.wanted.wants == "topic" and len(matched) < self.wanted.own
        negated = self.asking.found("negation", self.wanted.text)
        return [
            float(valued),
            float((self._checked() and not valued) or off_topic),
            *(float(self.wanted.wants == one) for one in KINDS),
            float(negated != self.words.found("negation", text)),
            float(self.wanted.defines and _defines(self.wanted, text, self.words)),
            float(valued) * near,
        ]

    def _asked_form(self, place: int, unit: str, prose: str, *, valued: bool) -> list[float]:
        """Return whether it is a list, a way to do something, a value of a form or a cause."""
        text, last = self.item.text, announced(self.item.text, self.spans, place)
        shown = place in self.code or prose != unit or shows_code(text, self.spans, last, unit)
        why = self.asking.found("asks_why", self.wanted.text)
        return [
            listed(unit) if self.wanted.enumerates else 0.0,
            float(self.wanted.howto and shown),
            float(place in self.code and not self.wanted.howto),
            float(valued and bool(self.wanted.form)),
            float(why and self.words.found("cause", self.texts[place])),
        ]


def _defines(wanted: QueryTerms, text: str, words: Lexicon) -> bool:
    """Tell whether a sentence begins with what is asked about and goes on "… is a", or ": "."""
    defining = DEFINED.search(text) or (
        words.search("copula", text) if words.any_of("copula") else None
    )
    if defining is None or defining.end() > len(text) / 2:
        return False
    return bool(wanted.subject) and wanted.subject <= terms_of(
        text[: defining.start()], words.language
    )
