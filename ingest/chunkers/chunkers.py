"""Chunkers that cut by length, sentences, headings or meaning, and the choice of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from core.language.sentences import paragraph_spans, sentence_spans
from core.settings import Settings
from ingest.chunkers.packing import (
    SECTION,
    BlockRun,
    BlockSpan,
    Chunker,
    ChunkSpan,
    Span,
    first_boundary,
    fitting,
    last_boundary,
    line_spans,
    pack,
    trim_span,
)
from ingest.types import Block
from models.embeddings import Embedder, Vectors

_DEFINITION = re.compile(
    r"(?:@|def |class |async |function |func |fn |pub |public |export |impl |struct |interface )"
)
# Lines that go on with the statement before them: closing brackets and further branches.
_GOES_ON = re.compile(r"[)\]}]|(?:else|elif|except|finally|catch|case|end)\b")
# Lines that belong to what follows them directly: decorators and comments.
_ANNOUNCES = re.compile(r"@|#|//|/\*|\*|--")
# Real code is nested less deeply; what is deeper is cut between lines (chosen, not measured).
_LEVELS = 8


def paragraph_units(text: str, limit: int) -> list[Span]:
    """Locate the paragraphs and top-level definitions of code; lines where one is too long."""
    groups: list[list[Span]] = []
    for line in line_spans(text):
        after_blank = bool(groups) and text.count("\n", groups[-1][-1][1], line[0]) > 1
        definition = _DEFINITION.match(text, line[0]) is not None
        decorated = bool(groups) and text.startswith("@", groups[-1][-1][0])
        if not groups or after_blank or (definition and not decorated):
            groups.append([])
        groups[-1].append(line)
    spans: list[Span] = []
    for group in groups:
        start, end = group[0][0], group[-1][1]
        spans.extend([(start, end)] if end - start <= limit else fitting(text, group, limit))
    return spans


def statement_units(text: str, start: int, end: int, limit: int) -> list[Span]:
    """Locate the outermost statements of text[start:end] that fit the limit, by indentation.

    A function or class that fits is one unit. One that is too long gives its head and the units of
    its body, and so on inwards; a statement that still does not fit is cut between lines.
    """
    return list(_units(text, line_spans(text, start, end), limit, _LEVELS))


def _units(text: str, lines: list[Span], limit: int, levels: int) -> Iterator[Span]:
    for group in _statements(text, lines):
        start, end = group[0][0], group[-1][1]
        if end - start <= limit:
            yield start, end
        elif levels == 0:
            yield from fitting(text, group, limit)
        else:
            yield from _split_statement(text, group, limit, levels)


def _split_statement(text: str, group: list[Span], limit: int, levels: int) -> Iterator[Span]:
    """Yield the outermost lines of a statement, and the units of what stands between them."""
    outermost = min(_depth(text, line) for line in group)
    inner: list[Span] = []
    for line in group:
        if _depth(text, line) > outermost:
            inner.append(line)
            continue
        yield from _units(text, inner, limit, levels - 1)
        yield from fitting(text, [line], limit)
        inner = []
    yield from _units(text, inner, limit, levels - 1)


def _statements(text: str, lines: list[Span]) -> Iterator[list[Span]]:
    """Group the lines into the statements of the outermost level."""
    if not lines:
        return
    outermost = min(_depth(text, line) for line in lines)
    group: list[Span] = []
    for line in lines:
        depth = _depth(text, line)
        if group and depth == outermost and _begins(text, group, line):
            yield group
            group = []
        group.append(line)
    yield group


def _begins(text: str, group: list[Span], line: Span) -> bool:
    """Tell whether an outermost line begins a statement of its own."""
    first = line[0] + _depth(text, line)
    if _GOES_ON.match(text, first):
        return False
    last = group[-1]
    announced = _ANNOUNCES.match(text, last[0] + _depth(text, last)) is not None
    return not announced or text.count("\n", last[1], line[0]) > 1


def _depth(text: str, line: Span) -> int:
    """Count the characters a line is indented by."""
    shown = text[line[0] : line[1]]
    return len(shown) - len(shown.lstrip())


# Records and annotations stay whole up to so many times the chunk size (chosen, not measured).
UNSPLIT_FACTOR = 4


class SentenceChunker(Chunker):
    """Fill chunks of at most `chunk_size` characters with whole sentences.

    Each chunk of prose repeats up to `overlap` characters of whole sentences of the one before.
    """

    def __init__(self, chunk_size: int, overlap: int) -> None:
        self._size = chunk_size
        self._overlap = overlap

    def spans(self, run: BlockRun) -> Iterable[Span]:
        """Locate the chunks of one run."""
        kind = run.parts[0].kind
        if is_unsplit(run, self._size):
            return [trim_span(run.text)]
        if kind == "code":
            return pack(paragraph_units(run.text, self._size), self._size)
        if kind == "table":
            return pack(fitting(run.text, line_spans(run.text), self._size), self._size)
        sentences = fitting(run.text, sentence_spans(run.text), self._size)
        return pack(sentences, self._size, self._overlap)


def is_unsplit(run: BlockRun, chunk_size: int) -> bool:
    """Tell whether a run is an annotation or a record that is not split."""
    kind = run.parts[0].kind
    return kind in ("annotation", "record") and len(run.text.strip()) <= UNSPLIT_FACTOR * chunk_size


class FixedChunker(Chunker):
    """Cut windows of at most `chunk_size` characters that share at most `overlap` with the last."""

    def __init__(self, chunk_size: int, overlap: int) -> None:
        self._size = chunk_size
        self._overlap = overlap

    def spans(self, run: BlockRun) -> Iterable[Span]:
        """Locate the windows of one run."""
        return [trim_span(run.text)] if is_unsplit(run, self._size) else self._windows(run.text)

    def _windows(self, text: str) -> Iterator[Span]:
        """Locate the windows of a text, each without the white space around it."""
        start, stop = trim_span(text)
        fresh = start  # what no window holds yet
        while start < stop:
            end = min(last_boundary(text, fresh, start + self._size), stop)
            yield start, start + len(text[start:end].rstrip())
            if end >= stop:
                return
            fresh = _skip_white_space(text, end)
            again = first_boundary(text, max(end - self._overlap, start + 1), end)
            start = _skip_white_space(text, again)
            if start + self._size <= fresh:
                start = fresh


def _skip_white_space(text: str, place: int) -> int:
    while text[place].isspace():
        place += 1
    return place


class StructuralChunker(Chunker):
    """Make one chunk of each section: its prose, code and tables up to `most` characters.

    Code that stays whole stands between fences, so that an answer can show it as a block. A longer
    section is cut between paragraphs, code samples and rows, and a code sample keeps the
    paragraph that introduces it. A sample of more than `most` characters is cut between functions
    and classes, then between methods, then between lines.
    """

    together = SECTION

    def __init__(self, most: int, others: SentenceChunker) -> None:
        """Keep up to `most` characters whole; records and annotations are left to `others`."""
        self._most = most
        self._others = others

    def cut(self, blocks: Sequence[Block]) -> Iterator[ChunkSpan]:
        """Yield the chunks of a document, those that hold something."""
        yield from super().cut([_fenced(one, self._most) for one in blocks])

    def spans(self, run: BlockRun) -> Iterable[Span]:
        """Locate the chunks of one run."""
        kinds = {part.kind for part in run.parts}
        if kinds & {"annotation", "record"}:
            return self._others.spans(run)
        if len(run.text.strip()) <= self._most:
            return [_locate_content(run.text, run.parts[0], len(run.text))]
        return pack(list(self._with_introductions(run)), self._most)

    def _with_introductions(self, run: BlockRun) -> Iterator[Span]:
        """Yield the units of a section, the first of a code sample with the paragraph before it."""
        units = [(part, self._units(run.text, part)) for part in run.parts]
        samples = {unit for part, found in units if part.kind == "code" for unit in found[:1]}

        def is_introduced(before: Span, unit: Span) -> bool:
            return unit in samples and unit[1] - before[0] <= self._most

        return _join_spans((unit for _, found in units for unit in found), is_introduced)

    def _units(self, text: str, part: BlockSpan) -> list[Span]:
        """Locate the units of a block that are never cut."""
        if part.kind == "code" and part.end - part.start > self._most:
            return statement_units(text, part.start, part.end, self._most)
        if part.kind == "code":
            return [_locate_content(text, part, part.end)]
        if part.kind == "table":
            return fitting(text, line_spans(text, part.start, part.end), self._most)
        shown = text[part.start : part.end]
        units: list[Span] = []
        for start, end in paragraph_spans(shown):
            if end - start <= self._most:
                units.append((part.start + start, part.start + end))
                continue
            sentences = fitting(shown[start:end], sentence_spans(shown[start:end]), self._most)
            offset = part.start + start
            units += [(offset + first, offset + last) for first, last in sentences]
        return units


def _fenced(block: Block, most: int) -> Block:
    """Put code between fences where it fits with them; no line of it ends them."""
    if block.kind != "code" or not block.text.strip():
        return block
    ticks = max(2, *map(len, re.findall("`+", block.text)), 0) + 1
    text = f"{'`' * ticks}\n{block.text.rstrip()}\n{'`' * ticks}"
    return block.model_copy(update={"text": text}) if len(text) <= most else block


def _locate_content(text: str, part: BlockSpan, end: int) -> Span:
    """Locate the text of a part and those after it; code keeps its first line's indentation."""
    if part.kind == "text":
        first, last = trim_span(text[part.start : end])
        return part.start + first, part.start + last
    lines = line_spans(text, part.start, end)
    return lines[0][0], lines[-1][1]


Embed = Callable[[Sequence[str]], Vectors]
# Sentences that are embedded in one call: bounds memory for a document of any length.
_SLAB = 256  # chosen, not measured


class SemanticChunker(Chunker):
    """Let a sentence join the chunk before it while the chunk is short or the two are similar.

    A chunk takes the next sentence below `least` characters always, below `most` characters when
    the cosine between the sentence and the mean of the chunk's sentences is at least `similarity`.
    Whatever is not prose is cut by `others`.
    """

    def __init__(
        self, embed: Embed, others: SentenceChunker, *, similarity: float, least: int, most: int
    ) -> None:
        """Compare sentences by the unit vectors that `embed` gives."""
        self._embed = embed
        self._others = others
        self._similarity = similarity
        self._least = least
        self._most = most

    def spans(self, run: BlockRun) -> Iterable[Span]:
        """Locate the chunks of one run."""
        if run.parts[0].kind != "text":
            return self._others.spans(run)
        sentences = fitting(run.text, sentence_spans(run.text), self._most)
        if len(sentences) < 2 or sentences[-1][1] - sentences[0][0] <= self._least:
            return [(sentences[0][0], sentences[-1][1])] if sentences else []
        return self._without_scraps(self._merge_similar(run.text, sentences))

    def _merge_similar(self, text: str, sentences: list[Span]) -> Iterator[Span]:
        vectors = self._vectors(text, sentences)
        start, end = sentences[0]
        total = next(vectors).copy()
        for (following, last), vector in zip(sentences[1:], vectors, strict=True):
            fits = last - start <= self._most
            if fits and (end - start < self._least or self._alike(total, vector)):
                total += vector
            else:
                yield start, end
                start, total = following, vector.copy()
            end = last
        yield start, end

    def _alike(self, total: Vectors, vector: Vectors) -> bool:
        """Compare a sentence with the mean of those before it."""
        length = float((total @ total) ** 0.5)
        return length > 0 and float(total @ vector) / length >= self._similarity

    def _vectors(self, text: str, sentences: list[Span]) -> Iterator[Vectors]:
        """Yield the vector of each sentence, embedding a slab at a time."""
        waiting = iter(sentences)
        while slab := list(islice(waiting, _SLAB)):
            yield from self._embed([text[start:end] for start, end in slab])

    def _without_scraps(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Give a chunk that stayed too short to the one before it where that has room."""

        def is_scrap(before: Span, span: Span) -> bool:
            return span[1] - span[0] < self._least and span[1] - before[0] <= self._most

        return _join_spans(spans, is_scrap)


def _join_spans(spans: Iterable[Span], belongs: Callable[[Span, Span], bool]) -> Iterator[Span]:
    """Join each span to the one before it where the two belong together."""
    pending: Span | None = None
    for span in spans:
        if pending is not None and belongs(pending, span):
            span = pending[0], span[1]
        elif pending is not None:
            yield pending
        pending = span
    if pending is not None:
        yield pending


class Chunkers:
    """Give each document its chunker, and remember where another one had to do."""

    def __init__(
        self, settings: Settings, embedder: Embedder | None = None, embed: Embed | None = None
    ) -> None:
        """Build what `settings.ingest.chunker` names; `embed` is the embedder's way to be called.

        Without an embedder, or in a language it does not serve, semantic chunks are cut by
        sentences.
        """
        self._name = settings.ingest.chunker
        self._embedder = embedder
        self._unserved: set[str] = set()
        self._sentences = SentenceChunker(settings.ingest.chunk_size, settings.ingest.chunk_overlap)
        self._chosen = self._build(settings, embed)
        self.key = _key(settings, embedder)

    def _build(self, settings: Settings, embed: Embed | None) -> Chunker:
        given = settings.ingest
        if self._name == "fixed":
            return FixedChunker(given.chunk_size, given.chunk_overlap)
        if self._name == "structural":
            return StructuralChunker(given.structural_max, others=self._sentences)
        if self._name == "semantic" and self._embedder is not None:
            return SemanticChunker(
                embed or self._embedder.embed_documents,
                self._sentences,
                similarity=given.semantic_similarity,
                least=given.semantic_min,
                most=given.semantic_max,
            )
        return self._sentences

    def choose(self, language: str) -> Chunker:
        """Return the chunker of a document in this language."""
        served = self._embedder.languages if self._embedder is not None else ()
        if self._name == "semantic" and served is not None and language not in served:
            self._unserved.add(language)
            return self._sentences
        return self._chosen

    @property
    def notes(self) -> list[str]:
        """Say which documents were cut by another chunker than the settings name."""
        if not self._unserved:
            return []
        names = ", ".join(sorted(self._unserved))
        return [
            f"documents in {names} were cut by sentences: the embedder does not serve these"
            " languages, which the semantic chunker needs"
        ]


def _key(settings: Settings, embedder: Embedder | None) -> tuple[Any, ...]:
    """Return every setting that decides where the chosen chunker cuts, and what it merges."""
    given = settings.ingest
    key: list[Any] = [given.chunker, given.chunk_size, given.chunk_overlap]
    if given.chunker == "semantic":
        key += [given.semantic_similarity, given.semantic_min, given.semantic_max]
        served = embedder.languages if embedder else frozenset()
        key += [embedder.model_id if embedder else "", sorted(served) if served else served is None]
    if given.chunker == "structural":
        key.append(given.structural_max)
    if given.merge_short:
        key += ["merged", given.merge_short_chars, given.merge_max]
    return tuple(key)
