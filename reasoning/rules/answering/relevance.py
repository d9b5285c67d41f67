"""How likely each sentence of evidence answers a question: a linear model of its features.

The odds of a sentence are against the null option "nothing here answers" (a conditional logit:
McFadden 1974). `scripts/train_scorer.py` fits the numbers by leaving whole data sets out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp
from pathlib import Path
from typing import NamedTuple

import numpy as np

from core.budget import current_limit
from core.errors import OperatorError
from core.language.analysis import terms
from core.language.orders import gives_orders
from core.language.passages import CODE_KIND, TABLE, spans_of
from core.language.sentences import sentence_spans
from core.language.table_rows import PAIR, cells_of
from core.types import Evidence, SubQuestion, TermWeights
from languages.language import find_language, read_yaml
from models.embeddings import Embedder, Reads, SpanPassage, Vectors
from reasoning.claims.alignment import same
from reasoning.claims.tokens import MONTH, NUMBER, ClaimToken, claim_tokens
from reasoning.claims.words import OPPOSITES
from reasoning.rules.answering.features import FEATURES, Candidate, features, spoken_in
from reasoning.rules.answering.headings import heading_of
from reasoning.rules.answering.wanted import QueryTerms, analyse
from reasoning.rules.lexicon import STEERING, lexicon
from reasoning.rules.records.fields import RECORD_KINDS
from reasoning.rules.values.versions import frameworks_named, without_edition

# The likeliest sentences that are looked at, and the passages around them that are read, as many as
# the time for an answer allows (by hand). Of gold sentences .01 to .05 are not among them.
LIKELIEST, PASSAGES = 8, 4
BYTES = 700  # of a passage; some 150 pieces in every script, as the reader was trained on
# Log odds of sentences that were not read, about what most that do not answer get; and what the
# reader's own are cut at, so that one feature never outweighs all others (both by hand).
UNREAD, MOST = -8.0, 12.0
UNREADABLE = frozenset({*RECORD_KINDS, CODE_KIND})  # it was trained on prose


OTHER_DAY = 10.0  # log odds that a sentence of another day loses, which leaves none (by hand)


def is_of_day(wanted: QueryTerms, text: str, language: str) -> bool | None:
    """Tell whether a text names a day, season or time of day that a question does, or another.

    None where one of them names none, or they are in two languages.
    """
    asked = _days(wanted.text, wanted.language)
    days = _days(text, language) if asked and language == wanted.language else ()
    return all(_covers(days, one) for one in asked) if days else None


def _is_of_other_day(wanted: QueryTerms, one: Candidate) -> bool:
    if wanted.wants == "yesno":  # "Open on Sunday?" is answered by "from Monday to Friday"
        return False
    text = one.evidence.text[one.start : one.end]
    other = is_of_day(wanted, text, one.evidence.language) is False
    return other and not lexicon(wanted.language).found("exclusive", text)


def _covers(days: Sequence[ClaimToken], asked: ClaimToken) -> bool:
    """Tell whether days are, or lead from one to another over, one asked for.

    Those of no common group, as "weekday" and "Monday", may cover each other.
    """
    if any(same(asked, one) for one in days):
        return True
    groups = {one.group: int(one.side) for one in asked.senses if one.group.startswith(OPPOSITES)}
    sides = [
        (sense.group, int(sense.side))
        for one in days
        for sense in one.senses
        if sense.group in groups
    ]
    if not sides:
        return bool(days)
    (group, first), (_, last) = sides[0], sides[-1]
    inside = first <= groups[group] <= last
    return inside if first <= last else not last < groups[group] < first


@lru_cache(maxsize=4096)
def _days(text: str, language: str) -> tuple[ClaimToken, ...]:
    """Return the words of a text that name a day, a season or a time of day."""
    # Each alone: "周六十点" would be cut into a week and sixty.
    names = (one.group() for one in lexicon(language).all_of("day_name", text))
    return tuple(token for name in names for token in claim_tokens(name, language))


WHOLE_ROW = 1.5  # least odds of a row that says all that is asked, which no reader reads; by hand


def _is_row_of_all(wanted: QueryTerms, one: Candidate) -> bool:
    """Tell whether a row of a table has every word of a question, half of them in its own cells."""
    item = one.evidence
    if item.kind != TABLE or wanted.own < PAIR or item.language != wanted.language:
        return False
    if wanted.wants == "date":  # hours in a row answer no "when did he become"
        return False
    names = item.text.partition("\n")[0]
    own = frozenset(terms(item.text[one.start : one.end], item.language))
    every = wanted.matched(own | frozenset(terms(names, item.language)))
    return len(every) == wanted.own and len(wanted.matched(own)) * 2 >= wanted.own


class ReaderScore(NamedTuple):
    """The reader model's log odds that a sentence answers, and where in it the answer is."""

    odds: float = UNREAD
    value: tuple[int, int] | None = None


def read_sentences(
    reader: Reads,
    question: str,
    found: Sequence[Candidate],
    odds: Sequence[float],
) -> list[ReaderScore]:
    """Return what the reader says of each sentence, its odds against "none answers" first.

    `odds` are those of all without the reader; around the likeliest passages are made.
    """
    read = [ReaderScore()] * len(found)
    passages = _passages(found, odds)
    for places in passages:
        rows = [] if current_limit().is_up() else reader.read(question, [_passage(found, places)])
        if not rows:
            break
        row = rows[0]
        shift = found[places[0]].start
        for place, (one, start, end) in zip(places, row.tolist(), strict=True):
            value = (shift + int(start), shift + int(end)) if end else None
            new = ReaderScore(min(MOST, max(UNREAD, one)), value)
            if read[place].value is None or new.odds > read[place].odds:
                read[place] = new
    return read


def _passages(found: Sequence[Candidate], odds: Sequence[float]) -> list[range]:
    """Return the places of consecutive sentences around the likeliest, all of one chunk each."""
    made: list[range] = []
    likeliest = sorted(
        (place for place, one in enumerate(found) if one.evidence.kind not in UNREADABLE),
        key=lambda place: -odds[place],
    )
    for place in likeliest[:LIKELIEST]:
        if len(made) < PASSAGES and not any(place in one for one in made):
            made.append(_around(found, place))
    return made


def _around(found: Sequence[Candidate], place: int) -> range:
    first, last = place, place + 1
    while True:
        if _fits(found, first, last + 1):
            last += 1
        elif not _fits(found, first - 1, last):
            return range(first, last)
        if _fits(found, first - 1, last):
            first -= 1


def _fits(found: Sequence[Candidate], first: int, last: int) -> bool:
    if first < 0 or last > len(found):
        return False
    one, other = found[first], found[last - 1]
    together = one.evidence.chunk_id == other.evidence.chunk_id
    return together and len(_text(one, other).encode("utf-8", "replace")) <= BYTES


def _passage(found: Sequence[Candidate], places: range) -> SpanPassage:
    first, last = found[places[0]], found[places[-1]]
    spans = tuple(
        (found[place].start - first.start, found[place].end - first.start) for place in places
    )
    return SpanPassage(heading_of(first.evidence), _text(first, last), spans)


def _text(first: Candidate, last: Candidate) -> str:
    return first.evidence.text[first.start : last.end]


FILE = Path(__file__).with_name("scorer.yaml")
# The rows: with similarities, which are calibrated by embedder, with the reader's odds as well,
# and for what no embedder serves.
MEANING, READING, WORDS = "meaning", "reading", "words"
READER = "reader"
BIAS = "bias"
MOST_ODDS = 30.0  # beyond it exp() adds nothing


class Scorer:
    """Score the features of sentences; immutable."""

    def __init__(self, weights: dict[str, float], names: Sequence[str] = FEATURES) -> None:
        """Take a weight for each of the named features and the bias."""
        if set(weights) != {*names, BIAS}:
            odd = sorted({*names, BIAS} ^ set(weights))
            raise OperatorError(
                f"{FILE.name} must have one weight for each feature",
                value=", ".join(odd),
                hint="install Carrel again, or run scripts/train_scorer.py",
            )
        self._weights = np.array([weights[name] for name in names], dtype=np.float32)
        self._bias = weights[BIAS]

    def odds(self, rows: Vectors) -> Vectors:
        """Return the log odds of each sentence against "nothing answers", shape (n,)."""
        return np.asarray(np.clip(rows @ self._weights + self._bias, -MOST_ODDS, MOST_ODDS))


@lru_cache(maxsize=3)
def scorer(kind: str) -> Scorer:
    """Return the scorer of MEANING, of READING, whose last feature is the reader's, or of WORDS."""
    rows = read_yaml(FILE)
    return Scorer(rows[kind], (*FEATURES, READER) if kind == READING else FEATURES)


WRITTEN = 0.5  # of its characters are letters or digits; a diagram has fewer; chosen, not measured


@dataclass(frozen=True)
class Sentence:
    """Hold one scored sentence of a piece of evidence; `start` and `end` are in its text.

    `odds` are log odds against "nothing answers", `score` the same as 0..1; `lexical` is the share
    of the question's words in it, `coverage` in it or its heading, `semantic` its similarity.
    `matched` are the question's own words that it or its heading says, `has_kind` that it holds a
    value of the kind asked for, `is_answer` that it is more than a heading, `names_missing` that
    its passage has no name that the question says. What answers in it stands at `value` in the
    text of the evidence, where the reader has read it, whose own odds are `read`.
    """

    evidence: Evidence
    start: int
    end: int
    odds: float
    score: float
    lexical: float
    coverage: float
    semantic: float | None
    matched: frozenset[int]
    has_kind: bool
    is_answer: bool = True
    names_missing: bool = False
    value: tuple[int, int] | None = None
    read: float | None = None

    @classmethod
    def of(
        cls,
        one: Candidate,
        odds: float,
        reading: ReaderScore,
        *,
        meaning: bool,
        form: str = "",
    ) -> Sentence:
        """Put a candidate beside its odds."""
        return cls(
            one.evidence,
            one.start,
            one.end,
            odds,
            1 / (1 + exp(-odds)),
            one.value("here"),
            one.value("here") + one.value("heading"),
            one.value("similarity") if meaning else None,
            one.matched,
            not one.value("lacking") or _reads_value(one, odds, reading.value, form),
            _is_answer(one, read=reading.value is not None and reading.odds > 0),
            one.value("names_missing") >= 1,
            reading.value,
            reading.odds if reading.value is not None else None,
        )

    @property
    def chunk_id(self) -> str:
        """Return the id of its chunk."""
        return self.evidence.chunk_id

    @property
    def text(self) -> str:
        """Return the sentence as written."""
        return self.evidence.text[self.start : self.end]


# Log odds from which a number that was read is of the kind asked for, however it is put ("7 in the
# morning", "aged 14 or over"); and forms that only a sign or a word tells from other numbers. Both
# by hand.
READ_ODDS = 0.0
SIGNED = ("money", "phone", "version", "share")


def _reads_value(one: Candidate, odds: float, value: tuple[int, int] | None, form: str) -> bool:
    if value is None or odds < READ_ODDS or form in SIGNED:
        return False
    tokens = claim_tokens(one.evidence.text[slice(*value)], one.evidence.language)
    return any(token.role in (NUMBER, MONTH) for token in tokens)


def _is_answer(one: Candidate, *, read: bool) -> bool:
    """Tell whether a sentence is more than a heading, code, a drawing or an order.

    What was `read` in it is no heading, however short it is.
    """
    if gives_orders(one.evidence.text, one.start, one.end):
        return False
    if one.evidence.kind == "record":
        return one.evidence.ordinal == 0  # not what a document says at its head about itself
    text = one.evidence.text[one.start : one.end]
    if one.heads and one.evidence.kind == TABLE and len(cells_of(text)) > PAIR:
        return False
    shown = "".join(text.split())
    drawn = sum(character.isalnum() for character in shown) < WRITTEN * len(shown)
    short = one.heads or (one.value("unfinished") and one.value("short"))
    # Capitals are in any heading, and what a heading is above says more.
    shows = not one.heads or one.value("number") or one.value("date")
    valued = one.value("valued") and shows
    return not (drawn or (short and not (valued or read)) or one.value("code"))


# The vectors of the sentences of chunks, by chunk id, as the search index keeps them.
SentenceVectors = Callable[[Sequence[str]], dict[str, Vectors]]
VECTOR_SCORE = "vector"
# Of sentences about as likely, one in the language of the question is read more easily.
FOREIGN_ODDS = 2.5  # by hand
BEFORE_ODDS = 1.5  # what was so "the week before" is seldom what is asked (by hand)
POINTS_ODDS = 2.0  # a pointer answers nothing itself (by hand)
# As Sphinx writes it in documentation in English, and the loaders of its sources do.
VERSION_NOTE = re.compile(r"(?:(?:New|Added|Changed) in|Deprecated since) (?:version )?\d")
HALF = 0.5  # of 20 questions how to do something 15 were answered with it, 14 without (by hand)
TOGETHER = 16  # sentences embedded between two looks at the time, about .1 s
SPOKEN = 0.25  # of the sentences of a passage in a language; fewer only quote it (by hand)


class Relevance:
    """Score sentences against sub-questions."""

    def __init__(
        self,
        embedder: Embedder | None,
        weights: TermWeights,
        vectors: SentenceVectors | None = None,
        *,
        reads: bool = True,
        order: float = 0.0,
    ) -> None:
        """Weigh words by `weights`; without an embedder only words count.

        Sentences whose `vectors` are not stored are embedded. With `reads` the embedder's reader
        looks at the likeliest, where it has one. `order` is what a sentence loses for each tenth of
        score by which its passage lies behind the best of the same search.
        """
        self._order = order
        self._reader = embedder if reads and isinstance(embedder, Reads) else None
        self._embedder = embedder
        self._weights = weights
        self._vectors = vectors

    def wanted(self, question: SubQuestion, evidence: Sequence[Evidence]) -> QueryTerms:
        """Analyse a sub-question under the languages of the evidence."""
        languages = frozenset(item.language for item in evidence)
        embedder = None if current_limit().is_up() else self._embedder  # words alone are quick
        written, words = question.text, lexicon(question.language)
        bare = without_edition(written, question.language, evidence)
        if bare != written and words.names_something(words.remove(bare, *STEERING)):
            question = question.model_copy(update={"text": bare})
        wanted = analyse(question, languages, self._weights, embedder)
        named = frameworks_named(written, evidence)
        return replace(wanted, written=written, frameworks=named)

    def ranked(self, question: SubQuestion, evidence: Sequence[Evidence]) -> list[Sentence]:
        """Return the sentences of evidence, the likeliest answer to a sub-question first."""
        return self.sentences(self.wanted(question, evidence), evidence) if evidence else []

    def sentences(self, wanted: QueryTerms, evidence: Sequence[Evidence]) -> list[Sentence]:
        """Return every sentence of the evidence, the most likely answer first."""
        likeness = self.likeness(wanted, evidence)
        meaning = wanted.vector is not None and self._embedder is not None
        if current_limit().is_up():  # its sentences are graded by words alone
            meaning, likeness = False, [np.zeros_like(one) for one in likeness]
        found, rows = features(wanted, evidence, likeness)
        if not found:
            return []
        odds = scorer(MEANING if meaning else WORDS).odds(rows).tolist()
        read = [ReaderScore()] * len(found)
        if meaning and self._reader is not None and self._reader.reads:
            read = read_sentences(self._reader, wanted.text, found, odds)
            column = np.array([[one.odds] for one in read], dtype=np.float32)
            joint = scorer(READING).odds(np.hstack([rows, column])).tolist()
            learnt = wanted.is_readable and find_language(wanted.language).reader
            share = 1.0 if learnt else HALF
            odds = [
                alone if one.evidence.kind in UNREADABLE else share * both + (1 - share) * alone
                for one, alone, both in zip(found, odds, joint, strict=True)
            ]
        odds = [
            alone - OTHER_DAY * (_is_of_other_day(wanted, one) or _only_notes(one))
            for one, alone in zip(found, odds, strict=True)
        ]
        odds = [
            max(alone, WHOLE_ROW) if _is_row_of_all(wanted, one) else alone
            for one, alone in zip(found, odds, strict=True)
        ]
        made = [
            Sentence.of(candidate, one, reading, meaning=meaning, form=wanted.form)
            for candidate, one, reading in zip(found, odds, read, strict=True)
        ]
        behind = _behind_best(evidence)
        return sorted(
            made,
            key=lambda one: (
                _order(wanted, one)
                + 10 * self._order * behind[one.evidence.evidence_id]
                + POINTS_ODDS * (self._order > 0 and _points_elsewhere(one))
            ),
        )

    def rows(self, evidence: Sequence[Evidence], *, own: bool = False) -> list[Vectors]:
        """Return the vectors of the sentences of each piece of evidence, as `spans_of` has them.

        What is not stored is embedded while there is time; zeros without an embedder. With `own`
        none are given of a single sentence whose score by meaning is known.
        """
        stored = self._vectors([one.chunk_id for one in evidence]) if self._vectors else {}
        size = self._embedder.dimension if self._embedder is not None else 1
        found: list[Vectors] = []
        texts: list[str] = []
        lacking: list[tuple[int, int, int]] = []
        for item in evidence:
            spans, kept = spans_of(item.text, item.kind), sentence_spans(item.text)
            rows = stored.get(item.chunk_id)
            if rows is not None and len(rows) == len(kept) and spans:
                starts = [start for start, _ in kept]
                rows = rows[[max(0, bisect_right(starts, start) - 1) for start, _ in spans]]
            elif own and len(spans) == 1 and VECTOR_SCORE in item.scores:
                rows = np.zeros((0, size), "float32")
            else:
                rows = np.zeros((len(spans), size), "float32")
                heading = heading_of(item)
                lacking.append((len(found), len(texts), len(texts) + len(spans)))
                texts += [f"{heading}: {item.text[start:end]}" for start, end in spans]
            found.append(rows)
        if self._embedder is not None and texts:
            made = np.zeros((len(texts), size), "float32")
            for first in range(0, len(texts), TOGETHER):
                if current_limit().is_up():
                    break
                some = texts[first : first + TOGETHER]
                made[first : first + TOGETHER] = self._embedder.embed_documents(some)
            for place, first, last in lacking:
                found[place] = made[first:last]
        return found

    def likeness(self, wanted: QueryTerms, evidence: Sequence[Evidence]) -> list[Vectors]:
        """Return how like a question the sentences of each piece of evidence are, 0..1.

        The likeness of the whole comes last.
        """
        embedder = self._embedder
        if embedder is None or wanted.vector is None:
            return [np.zeros(len(spans_of(one.text, one.kind)) + 1, "float32") for one in evidence]
        found = []
        for item, rows in zip(evidence, self.rows(evidence, own=True), strict=True):
            spans = spans_of(item.text, item.kind)
            # Of a record in several languages all vectors lean towards that of the question.
            texts = [item.text[start:end] for start, end in spans]
            own = sum(
                spoken_in(one, item.language, wanted.language) == wanted.language for one in texts
            )
            language = wanted.language if own >= SPOKEN * len(spans) else item.language
            best = item.scores.get(VECTOR_SCORE, 0.0)
            cosines = rows @ wanted.vector if len(rows) else np.full(len(spans), best)
            passage = item.scores.get(VECTOR_SCORE, float(cosines.max(initial=0.0)))
            likeness = [
                embedder.similarity(cosine, wanted.language, language)
                for cosine in (*cosines.tolist(), passage)
            ]
            found.append(np.array(likeness, dtype=np.float32))
        return found


def _only_notes(one: Candidate) -> bool:
    """Tell whether a sentence notes in which version a thing came or goes, in no word asked for."""
    noted = VERSION_NOTE.match(one.evidence.text, one.start, one.end)
    return noted is not None and not one.value("here")


def _points_elsewhere(one: Sentence) -> bool:
    """Tell whether a sentence only says where a reader learns it: "you have already seen how"."""
    return lexicon(one.evidence.language).found("points_elsewhere", one.text)


def _behind_best(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return by how much the score of each piece lies behind the best of the same search."""
    best: dict[tuple[str, str], float] = {}
    for item in evidence:
        search = (item.tool, item.query)
        best[search] = max(best.get(search, item.score), item.score)
    return {one.evidence_id: best[one.tool, one.query] - one.score for one in evidence}


def _order(wanted: QueryTerms, sentence: Sentence) -> float:
    shows = find_language(wanted.language).shows  # a record may have fields of several languages
    other = sentence.evidence.language != wanted.language
    foreign = re.search(shows, sentence.text) is None if shows else other
    words = lexicon(sentence.evidence.language)
    before = words.found("time_before", sentence.text) and not lexicon(wanted.language).found(
        "time_before", wanted.text
    )
    return FOREIGN_ODDS * foreign + BEFORE_ODDS * before - sentence.odds
