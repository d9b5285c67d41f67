"""Look at every passage of a collection once, in reading order, a document at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from core.language.sentences import sentence_spans
from core.settings import Settings
from ingest.loaders.records import is_annotation_line
from ingest.quality.lengths import Lengths
from ingest.quality.signs import (
    LOST,
    broken_words,
    garbled,
    new_part,
    other_signs,
    unended,
    words_of,
)

PROSE = {"text", "annotation"}
SENTENCES = 8  # of a text, below which shares say little
NOISE_CHARS = 80  # of a passage, below which shares say little
LINE = 100  # characters of a line that may be the header of a page
MOST_LINES = 50_000  # different lines of one text that are counted
MOST_WORDS = 100_000  # different words of one text that are known
BROKEN = 3  # broken words of a text that are no accident


class Found:
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

    def __init__(self, settings: Settings) -> None:
        """Take what is unusual from the settings."""
        self._settings = settings
        self.annotations = Lengths(100, 31)
        self.chunks = Lengths(100, 31)
        self.sentences = Lengths(20, 31)
        self.found = Found(settings.quality_examples)
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
                for length in current.read(row["text"], self._settings):
                    self.sentences.add(length)
            elif row["kind"] == "record" and is_annotation_line(row["text"]):
                current.annotated = True
        self._end(current)

    def _annotation(self, current: _Document, text: str) -> None:
        self.annotations.add(len(text))
        usual, spread = self._settings.annotation_chars, self._settings.annotation_spread
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
        for code, example in current.problems(self._settings):
            self.found.add(code, f"{current.name}{f' ({example})' if example else ''}")
        if current.language == "und":
            self.found.add("language", current.name)


class _Document:
    """Hold what is known of one document while its passages are read."""

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

    def read(self, text: str, settings: Settings) -> list[int]:
        """Look at one passage; return the lengths of its sentences."""
        fresh = new_part(self._before, text)
        self._before = text
        said = [fresh[start:end] for start, end in sentence_spans(fresh)]
        said = [sentence for sentence in said if any(map(str.isalpha, sentence))]
        self.sentences += len(said)
        self._lone += sum(len(sentence.split()) == 1 for sentence in said)
        run, self._open = unended(fresh, self._open)
        self._run = max(self._run, run)
        self._halves.update(broken_words(fresh))
        if len(self._words) < MOST_WORDS:
            self._words |= words_of(fresh)
        self._lost += fresh.count(LOST)
        self._garbled = self._garbled or garbled(fresh)
        if len(fresh) >= NOISE_CHARS and other_signs(fresh) >= settings.noise_share:
            self._noisy += 1
        for line in fresh.split("\n"):
            if 0 < len(line := line.strip()) <= LINE and any(map(str.isalpha, line)):
                if line in self._lines or len(self._lines) < MOST_LINES:
                    self._lines[line] += 1
        return list(map(len, said))

    def problems(self, settings: Settings) -> Iterable[tuple[str, str]]:
        """Yield the code of each problem with what is shown of it."""
        if self._run > settings.long_sentence:
            yield "long_sentence", f"{self._run} characters"
        spaced = self.language not in ("zh", "ja")
        if spaced and self.sentences >= SENTENCES:
            share = self._lone / self.sentences
            if share >= settings.lone_words:
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
        if times >= settings.header_repeats:
            yield "headers", f"{times} times “{line[:60]}”"
