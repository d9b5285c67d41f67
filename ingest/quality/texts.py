"""Look at every passage of a collection once, in reading order, a document at a time."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, Literal

import numpy as np
from pydantic import Field

from core.language.sentences import sentence_spans
from core.types import FrozenModel
from ingest.clean import PROSE
from ingest.loaders.records.record_fields import is_annotation_line
from languages.language import is_spaced

# "left out": not found by searches, and why; "problem": likely wrong; "note": worth a look.
Level = Literal["left out", "problem", "note"]


class Spread(FrozenModel):
    """Say how a number spreads: the bars are (from, to, count), the last one has all above."""

    count: int = 0
    least: int = 0
    median: int = 0
    mean: float = 0.0
    most: int = 0
    bars: list[tuple[int, int, int]] = Field(default_factory=list)


class QualityFinding(FrozenModel):
    """Name one thing found: how many `of` what, examples by id, and what to do about it."""

    code: str
    level: Level
    count: int
    of: int
    what: str
    examples: list[str]
    advice: str

    @property
    def share(self) -> float:
        """Return the share of what was looked at, 0..1."""
        return self.count / self.of if self.of else 0.0


class QualityReport(FrozenModel):
    """Hold the findings on one collection; lengths are in characters."""

    tenant: str
    collection: str
    profile: str
    files: int
    records: int
    texts: int
    linked: int
    chunks: int
    kinds: dict[str, int]
    languages: dict[str, int]
    annotation_lengths: Spread
    chunk_lengths: Spread
    sentence_lengths: Spread
    findings: list[QualityFinding]
    seconds: float


# Characters that an annotation usually has: judged, as all limits here, not fitted.
ANNOTATION_CHARS = 900
ANNOTATION_SPREAD = 3.0  # one this many times shorter or longer is unusual
LONG_SENTENCE = 1000  # characters without the end of a sentence that are suspicious
LONE_WORDS = 0.5  # share of sentences of one word from which a text is suspicious
NOISE_SHARE = 0.5  # share of characters that are no letters from which a passage is noise
HEADER_REPEATS = 5  # times that a text repeats a line from which it may be a header of pages
EXAMPLES = 5  # that the report gives of each finding


class Lengths:
    """Count how often each length occurs."""

    def __init__(self, step: int, bars: int) -> None:
        """Draw `bars` bars, each `step` wide; the last one has all that is longer."""
        self._step, self._bars = step, bars
        self._counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        """Count one length."""
        self._counts[length] += 1

    def spread(self) -> Spread:
        """Return how the lengths spread."""
        total = self._counts.total()
        if not total:
            return Spread()
        bars = [0] * self._bars
        for length, count in self._counts.items():
            bars[min(length // self._step, self._bars - 1)] += count
        edges = [place * self._step for place in range(self._bars + 1)]
        longest = max(self._counts)
        lengths, times = list(self._counts), list(self._counts.values())
        edges[-1] = max(edges[-1], longest + 1)
        return Spread(
            count=total,
            least=min(self._counts),
            median=int(np.quantile(lengths, 0.5, weights=times, method="inverted_cdf")),
            mean=round(sum(k * n for k, n in self._counts.items()) / total, 1),
            most=longest,
            bars=list(zip(edges, edges[1:], bars, strict=False)),
        )


LOST = "\ufffd"
# Characters by which what two passages share is known, and found; chosen, not measured.
HEAD, REACH = 12, 2000
RUN = 3  # letters; single pairs occur in Ukrainian capitals; chosen, not measured
# The encodings that UTF-8 is read as by mistake, and the letters that it then held.
_WRONG = {"cp1252": "LATIN", "latin-1": "LATIN", "cp1251": "CYRILLIC", "cp866": "CYRILLIC"}
_BROKEN = re.compile(r"(?P<word>[^\W\d_]{2,})[-\u2010\u00ac][ \n]+(?P<rest>[^\W\d_]{2,})")
_WORD = re.compile(r"[^\W\d_]{4,}")
_END = re.compile(r"[.!?\u2026\u3002\uff01\uff1f\uff1b;:]|\n\s*\n")


def find_garbled(text: str) -> str:
    """Return the first stretch that is UTF-8 read as another encoding, "" for none."""
    if text.isascii():
        return ""
    for encoding, script in _WRONG.items():
        for match in _sequences(encoding).finditer(text):
            try:
                read = match.group().encode(encoding).decode("utf-8")
            except UnicodeError:
                continue
            # Ukrainian in capitals has single pairs that could be letters of another encoding.
            enough = script == "LATIN" or len(read) >= RUN or any(map(_is_sign, read))
            names = ("" if _is_sign(one) else unicodedata.name(one, "-") for one in read)
            if enough and all(not name or name.startswith(script) for name in names):
                return match.group()
    return ""


@cache
def _sequences(encoding: str) -> re.Pattern[str]:
    """Match what sequences of UTF-8 look like in an encoding of one byte a character."""
    lead = re.escape(bytes(range(0xC2, 0xF5)).decode(encoding, "ignore"))
    rest = re.escape(bytes(range(0x80, 0xC0)).decode(encoding, "ignore"))
    return re.compile(f"(?:[{lead}][{rest}]{{1,3}})+")


def _is_sign(character: str) -> bool:
    return "\u2010" <= character <= "\u2026"  # dashes and quotes


def broken_words(text: str) -> Iterator[str]:
    """Yield, in small letters, the two halves joined of what may be words broken by a hyphen.

    They are when the whole word stands in the text as well: "two- and more" has no "twoand".
    """
    for match in _BROKEN.finditer(text):
        if match.group("rest").islower():
            yield f"{match.group('word')}{match.group('rest')}".casefold()


def words_of(text: str) -> set[str]:
    """Return the words of a text in small letters."""
    return set(_WORD.findall(text.casefold()))


def other_signs(text: str) -> float:
    """Return the share of characters that are no letters, among those that are no spaces."""
    seen = "".join(text.split())
    if not seen:
        return 0.0
    letters = sum(map(str.isalpha, seen))
    if letters < len(seen) and not seen.isascii():
        letters += sum(unicodedata.category(character)[0] == "M" for character in seen)
    return 1 - letters / len(seen)


def measure_unended(text: str, before: int) -> tuple[int, int]:
    """Return the longest run of characters without the end of a sentence, and the one left open.

    `before` is what the text before has left open; a blank line ends a sentence too.
    """
    longest, start = 0, -before
    for match in _END.finditer(text):
        longest = max(longest, match.end() - start)
        start = match.end()
    return max(longest, len(text) - start), len(text) - start


def new_part(before: str, text: str) -> str:
    """Return a chunk's text without what it repeats of the chunk before."""
    head = text[:HEAD]
    place = before.rfind(head, -REACH) if len(head) == HEAD else -1
    if place < 0 or not text.startswith(before[place:]):
        return text
    return text[len(before) - place :]


# Chosen, not measured.
SENTENCES = 8  # of a text, below which shares say little
NOISE_CHARS = 80  # of a passage, below which shares say little
LINE = 100  # characters of a line that may be the header of a page
MOST_LINES = 50_000  # different lines of one text that are counted
MOST_WORDS = 100_000  # different words of one text that are known
BROKEN = 3  # broken words of a text that are no accident


class IssueCounts:
    """Count documents by what is found in them, with examples."""

    def __init__(self, examples: int) -> None:
        self._most = examples
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}

    def add(self, code: str, example: str) -> None:
        """Count one document."""
        self.counts[code] += 1
        kept = self.examples.setdefault(code, [])
        if len(kept) < self._most:
            kept.append(example)


class TextChecks:
    """Measure lengths and look for damage; memory does not grow with the number of documents."""

    def __init__(self) -> None:
        self.annotations = Lengths(100, 31)
        self.chunks = Lengths(100, 31)
        self.sentences = Lengths(20, 31)
        self.found = IssueCounts(EXAMPLES)
        self.annotated = self.prose = 0

    def look(self, passages: Iterable[Any]) -> None:
        """Look at passages, rows as stores.quality gives them."""
        current: _Document | None = None
        for row in passages:
            if current is None or current.row != row["document"]:
                self._end(current)
                current = _Document(row)
            self.chunks.add(len(row["text"]))
            if row["kind"] == "annotation":
                self._annotation(current, row["text"])
            if row["kind"] in PROSE:
                for length in current.read(row["text"]):
                    self.sentences.add(length)
            elif row["kind"] == "record" and is_annotation_line(row["text"]):
                current.annotated = True
        self._end(current)

    def _annotation(self, current: _Document, text: str) -> None:
        self.annotations.add(len(text))
        usual, spread = ANNOTATION_CHARS, ANNOTATION_SPREAD
        example = f"{current.name} ({len(text)} characters)"
        if len(text) * spread < usual:
            self.found.add("short_annotation", example)
        elif len(text) > usual * spread:
            self.found.add("long_annotation", example)
        current.annotated = True

    def _end(self, current: _Document | None) -> None:
        if current is None:
            return
        if current.is_record and not current.annotated:
            self.found.add("lacks_annotation", current.name)
        self.annotated += current.is_record and current.annotated
        self.prose += current.sentences > 0
        for code, example in current.problems():
            self.found.add(code, f"{current.name}{f' ({example})' if example else ''}")
        if current.language == "und":
            self.found.add("language", current.name)


class _Document:
    """Count the features of one document while its passages are read."""

    def __init__(self, row: Any) -> None:  # noqa: ANN401 - a row of the truth
        self.row: int = row["document"]
        self.name: str = row["document_id"]
        self.is_record = bool(row["is_record"])
        self.language: str = row["language"]
        self.annotated = False
        self.sentences = 0
        self._before = ""
        self._open = self._run = self._lone = self._lost = self._noisy = 0
        self._garbled = ""
        self._lines: Counter[str] = Counter()
        self._halves: Counter[str] = Counter()
        self._words: set[str] = set()

    def read(self, text: str) -> list[int]:
        """Look at one passage; return the lengths of its sentences."""
        fresh = new_part(self._before, text)
        self._before = text
        sentences = [fresh[start:end] for start, end in sentence_spans(fresh)]
        sentences = [sentence for sentence in sentences if any(map(str.isalpha, sentence))]
        self.sentences += len(sentences)
        self._lone += sum(len(sentence.split()) == 1 for sentence in sentences)
        run, self._open = measure_unended(fresh, self._open)
        self._run = max(self._run, run)
        self._halves.update(broken_words(fresh))
        if len(self._words) < MOST_WORDS:
            self._words |= words_of(fresh)
        self._lost += fresh.count(LOST)
        self._garbled = self._garbled or find_garbled(fresh)
        if len(fresh) >= NOISE_CHARS and other_signs(fresh) >= NOISE_SHARE:
            self._noisy += 1
        for line in fresh.split("\n"):
            if 0 < len(line := line.strip()) <= LINE and any(map(str.isalpha, line)):
                if line in self._lines or len(self._lines) < MOST_LINES:
                    self._lines[line] += 1
        return list(map(len, sentences))

    def problems(self) -> Iterable[tuple[str, str]]:
        if self._run > LONG_SENTENCE:
            yield "long_sentence", f"{self._run} characters"
        spaced = is_spaced(self.language) and self.language != "ja"
        if spaced and self.sentences >= SENTENCES:
            share = self._lone / self.sentences
            if share >= LONE_WORDS:
                yield "lone_words", f"{share:.0%} of {self.sentences} sentences"
        broken = sum(n for word, n in self._halves.items() if word in self._words)
        if broken >= BROKEN:
            yield "broken_words", f"{broken} words"
        if self._noisy:
            yield "noise", f"{self._noisy} passages"
        if self._lost:
            yield "lost_characters", f"{self._lost} characters"
        if self._garbled:
            yield "garbled", self._garbled[:20]
        line, times = max(self._lines.items(), key=lambda item: item[1], default=("", 0))
        if times >= HEADER_REPEATS:
            yield "headers", f"{times} times “{line[:60]}”"
