"""The sentences that stand for passages: central ones that read alone, in the order of the text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from core.language.analysis import content_terms
from core.language.orders import gives_orders
from core.language.passages import CODE_KIND, Span, spans_of, standalone, states_topic
from core.language.scan import fold
from core.language.sentences import sentence_spans
from core.types import Evidence
from models.vectors import Vectors, central
from retrievers.types import Index

LEADING = 5  # sentences of a text that say what it is about, if any does; chosen, not measured
BESIDE = 0.3  # worth of a sentence that has no word of the subject; chosen, not measured
GOOD = 0.69  # worth of a sentence that may begin a summary; chosen, not measured
FEWEST = 4  # sentences that read alone; with fewer short ones are taken, too; chosen
FEW = 4  # words more that a sentence is taken to have; chosen, not measured
OPENING = " \t\"'“«*_`#("


class Extract(NamedTuple):
    """Point to a sentence of a passage: text[start:end]."""

    item: Evidence
    start: int
    end: int

    @property
    def text(self) -> str:
        """Return the sentence as it stands there."""
        return self.item.text[self.start : self.end]


def central_sentences(
    index: Index,
    items: Sequence[Evidence],
    most: int,
    subject: str | None = "",
    *,
    strict: bool = True,
    opens: bool = True,
    telling: Mapping[str, float] | None = None,
    within: Mapping[str, Sequence[Span]] | None = None,
) -> list[Extract]:
    """Return up to `most` sentences that stand for passages, in their order, none repeated.

    The leading one is among them: what says of a `subject` what it is, or what the text is about,
    else where one `opens` the first; of passages without order, whose subject is None, none leads.
    The more `telling` its words are, the better is a sentence. Without `strict` any text will do
    where none reads alone, but no order to a program that reads it. Where `within` names parts of
    the passages, by chunk id, only these are read.
    """
    first = items[0].chunk_id if items and subject is not None else ""
    found, worth = _readable(items, within, first, strict=strict)
    if strict and len(found) < min(most, FEWEST):  # short sentences say something, too
        found, worth = _readable(items, within, first, strict=strict, short=True)
    if not found:
        return []
    vectors = sentence_rows(index, found)
    weights = np.array(worth, dtype=np.float32)
    if terms := frozenset(content_terms(subject or "")):
        weights *= [1.0 if terms & _terms(one) else BESIDE for one in found]
    if telling:
        rows = [content_terms(one.text, one.item.language) for one in found]
        topicality = np.array(
            [_topicality(set(terms), telling) for terms in rows], dtype=np.float32
        )
        weights *= topicality / max(float(topicality.max()), 1e-9)
    texts = [(one.text, one.item.language) for one in found]
    leading = [] if subject is None else lead(texts, weights, subject, opens=opens)
    chosen = central(vectors, most, leading, weights)
    return [found[place] for place in sorted(chosen)]


def _topicality(terms: Collection[str], telling: Mapping[str, float]) -> float:
    """Return how telling the words of a sentence are on average, less where they are few."""
    return sum(telling.get(term, 0.0) for term in terms) / (len(terms) + FEW)


def _terms(one: Extract) -> frozenset[str]:
    text = f"{one.item.section}\n{one.text}"
    return frozenset(content_terms(text, one.item.language))


def _readable(
    items: Sequence[Evidence],
    within: Mapping[str, Sequence[Span]] | None,
    first: str,
    *,
    strict: bool,
    short: bool = False,
) -> tuple[list[Extract], list[float]]:
    """Return the sentences that read alone with their worth; no text twice.

    One that opens the `first` passage may be `short`, or any of them.
    """
    found: dict[str, tuple[Extract, float]] = {}
    for item in items:
        spans = spans_of(item.text, item.kind) if item.kind != CODE_KIND or not strict else ()
        parts = None if within is None else within[item.chunk_id]
        for start, end in spans:
            if parts is not None and not any(a <= start and end <= b for a, b in parts):
                continue
            text = item.text[start:end]
            opens = short or (item.chunk_id == first and start == spans[0][0])
            worth = standalone(text, item.language, opens=opens)
            ordered = gives_orders(item.text, start, end)
            if not ordered and (worth or not (strict or text.isspace())):
                found.setdefault(fold(text), (Extract(item, start, end), worth))
    best = [one for one in found.values() if one[1]] or [(one, 1.0) for one, _ in found.values()]
    return [one for one, _ in best], [worth for _, worth in best]


def lead(
    texts: Sequence[tuple[str, str]], weights: Vectors, subject: str = "", *, opens: bool = True
) -> list[int]:
    """Return the place of the sentence, of (text, language), that says what all of them are about.

    That is the first one that begins with the subject, else of the first ones the one that states a
    topic, else where one `opens` the first that may begin a summary.
    """
    named = fold(subject)
    good = [place for place, worth in enumerate(weights.tolist()) if worth >= GOOD]
    begins = (n for n in good if named and fold(texts[n][0].lstrip(OPENING)).startswith(named))
    stated = (n for n in good if n < LEADING and states_topic(*texts[n]))
    first = good[0] if good else int(weights.argmax())
    found = next(begins, next(stated, first if opens else -1))
    return [found] if found >= 0 else []


def sentence_rows(index: Index, found: Sequence[Extract]) -> Vectors:
    """Return the vectors of sentences, shape (n, dimension): stored ones, else embedded.

    Zeros without an embedder.
    """
    if index.embedder is None:
        return np.zeros((len(found), 1), "float32")
    keys = list(dict.fromkeys(one.item.chunk_id for one in found))
    stored = index.search.sentence_vectors(index.collection.id, keys)
    rows = np.zeros((len(found), index.embedder.dimension), "float32")
    lacking: list[int] = []
    for place, one in enumerate(found):
        spans = sentence_spans(one.item.text)
        known = stored.get(one.item.chunk_id)
        at = max((n for n, span in enumerate(spans) if span[0] <= one.start), default=0)
        if known is not None and len(known) == len(spans):
            rows[place] = known[at]
        else:
            lacking.append(place)
    if lacking:
        own = [found[n] for n in lacking]
        texts = [f"{one.item.title} {one.item.section}: {one.text}" for one in own]
        rows[lacking] = index.embedder.embed_documents(texts)
    return rows
