"""What tells whether a sentence answers a question: numbers between 0 and 1 for each sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log1p
from typing import TYPE_CHECKING, Any, NamedTuple

from core.language.analysis import content_terms, terms
from core.language.sentences import record_spans, sentence_spans
from core.types import AnswerKind, Evidence
from reasoning.rules.lexicon import Lexicon, lexicon
from reasoning.rules.values import has_kind
from reasoning.rules.wanted import Wanted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
else:
    Floats = Any

Span = tuple[int, int]
FEATURES = (
    # Words of the question: the share of their weight that stands in the sentence, and what the
    # sentences around it, the headings above it and the rest of its chunk add.
    "here",
    "near",
    "heading",
    "chunk",
    "rarest_missing",
    "names_missing",
    "numbers_missing",
    "subject",
    # Meaning: of the sentence, against the best sentence of all, and of its chunk.
    "similarity",
    "behind",
    "passage",
    "rank",
    # Echo: how much of the sentence the question says itself, how much it adds.
    "echo",
    "news",
    # Form.
    "asks",
    "announces",
    "unfinished",
    "short",
    "first",
    # The kind of answer.
    "valued",
    "lacking",
    "number",
    "date",
    "person",
    "place",
    "negation",
    "defines",
    "valued_near",
    "absent",
    "focus_absent",
    "foreign",
    "foreign_similarity",
)
NEAR_BEFORE, NEAR_AFTER = 2, 1  # sentences around one that may say what it leaves out
SAID_ALIKE = 0.5  # of the question's words, by rarity
SHORT = 4  # terms; a heading or a greeting has fewer
MOST_NEWS = 30  # content words beyond which a sentence adds no more
KINDS: tuple[AnswerKind, ...] = ("number", "date", "person", "place")
LEAST_SENTENCE = 12  # characters
RECORD_LABEL = re.compile(r"[^\W\d_][\w ]{0,40}: (?=\S)")
CLOSING = "\"'”’»)]）】」』*_`"
ENDS = (".", "!", "…", "。", "！", "?", "？", ";", "；")
COLONS = (":", "：")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Candidate(NamedTuple):
    """Hold one sentence of evidence; `matched` are the question's own words that it holds."""

    evidence: Evidence
    start: int
    end: int
    matched: frozenset[int]
    row: list[float]


@lru_cache(maxsize=2048)
def spans_of(text: str, kind: str) -> tuple[Span, ...]:
    """Return where the sentences of a chunk stand.

    Of a record each field is one, without its label where its value is a sentence by itself.
    """
    if kind != "record":
        return tuple(sentence_spans(text))
    spans = record_spans(text)
    return tuple((start + _label_length(text[start:end]), end) for start, end in spans)


def _label_length(line: str) -> int:
    match = RECORD_LABEL.match(line)
    return match.end() if match is not None and reads_as_sentence(line[match.end() :]) else 0


def reads_as_sentence(value: str) -> bool:
    """Tell whether what stands behind a label is a sentence, and no "240 p." or "Smith, J."."""
    shown = value.rstrip()
    return len(shown) >= LEAST_SENTENCE and shown.endswith((".", "!", "?", "。", "！", "？", "…"))


@lru_cache(maxsize=16384)
def terms_of(text: str, language: str) -> frozenset[str]:
    """Return the terms of a text."""
    return frozenset(terms(text, language))


@lru_cache(maxsize=16384)
def content_of(text: str, language: str) -> frozenset[str]:
    """Return the terms of a text without function words."""
    return frozenset(content_terms(text, language))


def heading_of(item: Evidence) -> str:
    """Return what names a chunk: title, heading path, and of a record its keywords and its id."""
    keywords = item.metadata.get("keywords")
    listed = " ".join(str(word) for word in keywords) if isinstance(keywords, list) else ""
    named = item.source.partition("#")[2]
    return f"{item.title} {item.section} {listed} {named}".strip()


def features(
    wanted: Wanted, evidence: Sequence[Evidence], similarities: Sequence[Floats]
) -> tuple[list[Candidate], Floats]:
    """Return the sentences of evidence and their features, shape (sentences, len(FEATURES)).

    `similarities` holds, for each piece of evidence, how like the question its sentences are and,
    last, how like it is as a whole; 0 for unrelated, 1 for the same.
    """
    import numpy as np

    found: list[Candidate] = []
    best = max((float(one[:-1].max()) for one in similarities if len(one) > 1), default=0.0)
    for rank, (item, likeness) in enumerate(zip(evidence, similarities, strict=True)):
        found += _candidates(wanted, item, likeness, best, rank)
    rows = [one.row for one in found]
    return found, np.array(rows, dtype=np.float32).reshape(len(rows), len(FEATURES))


def _candidates(
    wanted: Wanted, item: Evidence, likeness: Floats, best: float, rank: int
) -> list[Candidate]:
    spans = spans_of(item.text, item.kind)
    language = item.language
    words = lexicon(language)
    texts = [item.text[start:end] for start, end in spans]
    said = [terms_of(text, language) for text in texts]
    heading = terms_of(heading_of(item), language)
    chunk = terms_of(item.text, language)
    own = wanted.groups[: wanted.own]
    total = sum(weight for _, _, weight in own) or 1.0
    rarest = max((weight for _, _, weight in own), default=0.0)
    everywhere = chunk | heading
    missing = any(
        weight >= rarest and not (group | near) & everywhere for group, near, weight in own
    )
    named = [bool(name & everywhere) for name in wanted.entity_terms]
    names_missing = 1 - sum(named) / len(named) if named else 0.0
    numbers = set(NUMBER.findall(wanted.text))
    held = set(NUMBER.findall(f"{item.text} {heading_of(item)}"))
    numbers_missing = len(numbers - held) / len(numbers) if numbers else 0.0
    # Words of two languages cannot be compared, so what they would say is left out.
    foreign = language != wanted.language
    if foreign:
        missing, names_missing = False, 0.0
    negated = lexicon(wanted.language).found("negation", wanted.text)
    found = []
    for place, text in enumerate(texts):
        here = said[place]
        around = frozenset().union(
            *said[max(0, place - NEAR_BEFORE) : place], *said[place + 1 : place + 1 + NEAR_AFTER]
        )
        shares = [0.0, 0.0, 0.0, 0.0]
        matched = set()
        for number, (group, synonyms, weight) in enumerate(own):
            either = group | synonyms
            for step, where in enumerate((here, around, heading, chunk)):
                if either & where:
                    shares[step] += weight / total
                    matched |= {number} if step in (0, 2) else set()
                    break
        content = content_of(text, language)
        echoed = len(content & wanted.said) / len(content) if content else 1.0
        bare = text.rstrip().rstrip(CLOSING)
        asks = bare.endswith(("?", "？"))
        announces = bare.endswith(COLONS)
        kind = wanted.wants
        valued = kind in KINDS and has_kind(kind, _without(text, numbers), words, wanted.said)
        about = wanted.subject if not foreign else frozenset()
        subject = len(about & (here | heading)) / len(about) if about else 1.0
        # Names and codes are the same in any language: what says them is compared by them.
        across = float(foreign and shares[0] < SAID_ALIKE)
        similarity = float(likeness[place])
        row = [
            *shares,
            float(missing),
            names_missing,
            numbers_missing,
            subject,
            similarity,
            best - similarity,
            float(likeness[-1]),
            1 / (1 + rank),
            echoed,
            min(1.0, log1p(len(content - wanted.said)) / log1p(MOST_NEWS)),
            float(asks),
            float(announces),
            float(not bare.endswith(ENDS) and not announces),
            float(len(here) < SHORT),
            float(place == 0),
            float(valued),
            float(kind in KINDS and not valued),
            *(float(kind == one) for one in KINDS),
            float(negated != words.found("negation", text)),
            float(wanted.defines and _defines(wanted, text, here, words)),
            float(valued) * (shares[0] + shares[1]),
            0.0 if foreign else wanted.absent,
            float(wanted.focus_absent and not foreign),
            across,
            across * similarity,
        ]
        found.append(Candidate(item, *spans[place], frozenset(matched), row))
    return found


def _defines(wanted: Wanted, text: str, here: frozenset[str], words: Lexicon) -> bool:
    """Tell whether a sentence begins with what is asked about and goes on "… is a"."""
    said = words.search("copula", text) if words.any_of("copula") else None
    if said is None or said.end() > len(text) / 2:
        return False
    return bool(wanted.subject) and wanted.subject <= terms_of(text[: said.start()], words.language)


def _without(text: str, numbers: set[str]) -> str:
    """Return a text without the numbers that the question says itself: they are no answer."""
    return NUMBER.sub(lambda match: "" if match.group() in numbers else match.group(), text)
