"""Study the documents of a collection: what they are, how they are written, what follows from it.

The ten figures are those of the corpus study of a documentation assistant: documents by type, their
sizes, lengths by type, vocabulary, depth of modules, references, code and text, readability,
modules, sentences. All is counted from the passages that a caller may see.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from pydantic import Field

from core.language import chinese
from core.language.detect import detect_language
from core.language.identifiers import is_identifier
from core.language.scan import TOKEN, fold
from core.language.sentences import sentence_spans
from core.types import FrozenModel
from ingest.quality.texts import Spread, new_part, other_signs
from languages.language import known_languages

SEGMENT = 1000  # words of a stretch whose vocabulary is counted, so that sizes compare
LONGEST_NAME = 8  # words of a title that is looked for in other documents
MODULES = 15  # that the figure names
THIN = 2  # documents, up to which a module is thinly covered
WHOLE = 0.95  # share of the sections of a type that its length of sections covers
SAMPLE = 1500  # characters of prose that its language is told from
# Share of signs but letters from which a paragraph is code where a chunk may be a whole section: so
# are three quarters of the code in the documentation of JAX (n = 918,542 characters).
CODE_SIGNS = 0.2
ENOUGH_WORDS = 30  # of a document in prose, below which its readability says little
# Where the bars of a figure begin; the last one has all that is larger.
BARS = {
    "sizes": (0, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000),
    "references": (0, 1, 2, 3, 5, 10, 20, 50),
    "sentences": (0, 5, 10, 15, 20, 25, 30, 40, 60),
}

_IMPORT = re.compile(r"^\s*(?:>>> )?(?:from|import)\s+([A-Za-z_]\w*(?:\.\w+)*)", re.MULTILINE)


class TypeStudy(FrozenModel):
    """Count the documents of one type; lengths are in characters.

    `section` is the length up to which WHOLE of their sections are, `code` the share that is code.
    """

    documents: int
    median: int
    section: int
    code: float


class Advice(FrozenModel):
    """Name a setting whose value the figures speak against, what they advise, and why."""

    setting: str
    now: Any
    advised: Any
    why: str


class Study(FrozenModel):
    """Hold the figures of one collection; `modules` are those that most documents name.

    Function words are no `words`. `richness` is the share of different ones, `richness_1000` its
    mean over stretches of SEGMENT. `flesch` and `fog` are means over the `readable` documents,
    those in a language with such formulas.
    """

    collection: str
    profile: str
    documents: int
    passages: int
    languages: dict[str, int]
    types: dict[str, TypeStudy]
    sizes: Spread
    words: int
    richness: float
    richness_1000: float | None
    module_depth: dict[int, int]
    references: Spread
    code_share: float
    readable: int
    flesch: float | None
    fog: float | None
    modules: dict[str, int]
    thin_modules: list[str]
    sentences: Spread
    advice: list[Advice] = Field(default_factory=list)


Name = tuple[str, ...]
_Sizes = tuple[int, int, list[int]]
Rows = Callable[[], Iterable[Mapping[str, Any]]]


class _Text(NamedTuple):
    """Hold one document: its type, its prose and its code, the characters of each section."""

    row: int
    language: str
    type: str
    metadata: dict[str, Any]
    prose: str
    code: str
    passages: int
    sections: list[int]

    @property
    def sizes(self) -> _Sizes:
        """Return the characters in all, of code (by ingest where it counted), of each section."""
        size = len(self.prose) + len(self.code)
        share = self.metadata.get("code_density")
        if isinstance(share, int | float) and 0 <= share <= 1:
            return size, round(share * size), self.sections
        return size, len(self.code), self.sections


def study(collection: str, profile: str, rows: Rows, *, mixed: bool = False) -> Study:
    """Return the figures; `rows` gives what `visible_passages` does, each time it is called.

    `mixed` says that chunks are whole sections, whose code has to be told from their text.
    """
    counted = _Counts(_names(rows()))
    for document in _documents(rows(), mixed=mixed):
        counted.add(document)
    return counted.study(collection, profile)


def _names(rows: Iterable[Mapping[str, Any]]) -> dict[Name, int]:
    """Return what documents are called: titles of several words, identifiers that they explain."""
    found: dict[Name, int] = {}
    for row_id, passages in groupby(rows, itemgetter("document")):
        row = next(passages)
        entries = [str(one.get("name")) for one in _entries(json.loads(row["metadata"]))]
        for called in [row["title"], *filter(is_identifier, entries)]:
            name = tuple(words_of(called))
            if 1 < len(name) <= LONGEST_NAME or (name and is_identifier(called)):
                found.setdefault(name, row_id)
    return found


def _documents(rows: Iterable[Mapping[str, Any]], *, mixed: bool) -> Iterator[_Text]:
    """Yield the documents; what a passage repeats of the one before is left out."""
    for row_id, passages in groupby(rows, itemgetter("document")):
        parts: tuple[list[str], list[str]] = [], []
        before, count = "", 0
        sections: Counter[str] = Counter()
        for row in passages:
            fresh = new_part(before, row["text"])
            before, count = row["text"], count + 1
            sections[row["section"]] += len(fresh)
            for part in fresh.split("\n\n") if mixed else [fresh]:
                parts[_is_code(row["kind"], part, mixed=mixed)].append(part)
        metadata = json.loads(row["metadata"])
        prose, code = ("\n\n".join(filter(str.strip, part)) for part in parts)
        kind = _type(metadata) or ("record" if row["is_record"] else row["format"])
        lengths = list(sections.values())
        yield _Text(row_id, row["language"], kind, metadata, prose, code, count, lengths)


def _is_code(kind: str, text: str, *, mixed: bool) -> bool:
    return kind == "code" or (mixed and kind == "text" and other_signs(text) > CODE_SIGNS)


def _entries(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what an index lists of a page; the metadata of other files may hold anything."""
    listed = metadata.get("entries")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _type(metadata: Mapping[str, Any]) -> str:
    """Return what an index calls a whole page, or else most of what is on it."""
    kinds = metadata.get("type")
    whole = (one.get("type") for one in _entries(metadata) if not one.get("anchor"))
    return str(next(filter(None, [*whole, *(kinds if isinstance(kinds, list) else [kinds])]), ""))


def words_of(text: str) -> list[str]:
    """Return the words of a text in its order, folded; Chinese is cut by its dictionary."""
    found: list[str] = []
    for match in TOKEN.finditer(text):
        if match.lastgroup == "han":
            found += [word for word, _, _ in chinese.segment(match.group(), "default")]
        else:
            found.append(fold(match.group()))
    return found


class _Counts:
    """Count over documents; `names` are those by which they refer to one another."""

    def __init__(self, names: Mapping[Name, int]) -> None:
        self._names = names
        self._lengths: defaultdict[str, set[int]] = defaultdict(set)  # of names, by first word
        for name in names:
            self._lengths[name[0]].add(len(name))
        self._passages = 0
        self._languages: Counter[str] = Counter()
        self._types: defaultdict[str, list[_Sizes]] = defaultdict(list)
        self._values: dict[str, Counter[int]] = {name: Counter() for name in BARS}
        self._words: Counter[str] = Counter()
        self._stretch: list[str] = []  # words that are no whole stretch yet
        self._stretches: list[float] = []
        self._readable: list[tuple[float, float]] = []
        self._declared: set[str] = set()
        self._imported: set[str] = set()
        self._named: Counter[str] = Counter()  # documents by dotted names, and beginnings of such

    def add(self, document: _Text) -> None:
        """Count one document."""
        self._passages += document.passages
        self._languages[document.language] += 1
        self._types[document.type].append(document.sizes)
        self._values["sizes"][document.sizes[0]] += 1
        prose = words_of(document.prose)
        self._count_words(document.language, prose)
        self._count_sentences(document, prose)
        everything = [*prose, *words_of(document.code)]
        self._values["references"][len(self._referred(everything) - {document.row})] += 1
        self._count_modules(document, everything)

    def _count_words(self, language: str, prose: Sequence[str]) -> None:
        known = known_languages().get(language)
        functional = known.stopwords if known else frozenset()
        words = [word for word in prose if word not in functional]
        self._words.update(words)
        self._stretch += words
        while len(self._stretch) >= SEGMENT:
            self._stretches.append(len(set(self._stretch[:SEGMENT])) / SEGMENT)
            del self._stretch[:SEGMENT]

    def _count_sentences(self, document: _Text, prose: Sequence[str]) -> None:
        spans = sentence_spans(document.prose)
        lengths = [n for start, end in spans if (n := len(words_of(document.prose[start:end])))]
        self._values["sentences"].update(lengths)
        known = known_languages().get(detect_language(document.prose[:SAMPLE]))  # not as declared
        if known and known.readability and len(prose) >= ENOUGH_WORDS:
            self._readable.append(known.readability.measure(prose, len(lengths)))

    def _referred(self, words: Sequence[str]) -> set[int]:
        """Return the documents that a text names."""
        return {
            self._names[name]
            for start, word in enumerate(words)
            if word in self._lengths
            for length in self._lengths[word]
            if (name := tuple(words[start : start + length])) in self._names
        }

    def _count_modules(self, document: _Text, words: Iterable[str]) -> None:
        declared = document.metadata.get("module")
        own = {declared.casefold()} if isinstance(declared, str) and declared else set()
        imported = {name.casefold() for name in _IMPORT.findall(document.code)}
        self._declared |= own
        self._imported |= imported
        dotted = own | imported | {word for word in words if "." in word}
        self._named.update({part for name in dotted for part in _beginnings(name)})

    def study(self, collection: str, profile: str) -> Study:
        """Return the figures."""
        words, known = self._words.total(), self._declared | self._imported
        covered = sorted(((self._named[name], name) for name in known), key=_most_first)
        roots = {name.partition(".")[0] for name in self._declared or [n for _, n in covered[:1]]}
        thin = [name for n, name in covered if n <= THIN and name.partition(".")[0] in roots]
        types = sorted(self._types.items(), key=lambda item: (-len(item[1]), item[0]))
        everything = [sizes for _, group in types for sizes in group]
        return Study(
            collection=collection,
            profile=profile,
            documents=len(everything),
            passages=self._passages,
            languages=dict(self._languages.most_common()),
            types={kind: _type_study(group) for kind, group in types},
            words=words,
            richness=round(len(self._words) / max(1, words), 4),
            richness_1000=_mean(self._stretches, 4),
            module_depth=dict(sorted(Counter(name.count(".") for name in known).items())),
            code_share=_code_share(everything),
            readable=len(self._readable),
            flesch=_mean([ease for ease, _ in self._readable], 1),
            fog=_mean([fog for _, fog in self._readable], 1),
            modules={name: count for count, name in covered[:MODULES]},
            thin_modules=sorted(thin),
            **{name: _spread(counts, BARS[name]) for name, counts in self._values.items()},
        )


def _spread(counts: Counter[int], edges: Sequence[int]) -> Spread:
    values = sorted(counts.elements())
    if not values:
        return Spread()
    ends = [*edges[1:], max(edges[-1], values[-1]) + 1]
    bars = [
        (start, end, sum(n for value, n in counts.items() if start <= value < end))
        for start, end in zip(edges, ends, strict=True)
    ]
    median, mean = round(statistics.median(values)), round(statistics.fmean(values), 1)
    return Spread(
        count=len(values), least=values[0], median=median, mean=mean, most=values[-1], bars=bars
    )


def _type_study(group: Sequence[_Sizes]) -> TypeStudy:
    lengths = [size for size, _, _ in group]
    sections = sorted(length for _, _, found in group for length in found)
    return TypeStudy(
        documents=len(group),
        median=round(statistics.median(lengths)),
        section=sections[round(WHOLE * (len(sections) - 1))],
        code=_code_share(group),
    )


def _code_share(group: Sequence[_Sizes]) -> float:
    return round(sum(code for _, code, _ in group) / max(1, sum(size for size, _, _ in group)), 4)


def _beginnings(name: str) -> Iterator[str]:
    """Yield a dotted name and what it is in: a.b.c, a.b and a."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _most_first(counted: tuple[int, str]) -> tuple[int, str]:
    return -counted[0], counted[1]


def _mean(values: Sequence[float], digits: int) -> float | None:
    return round(statistics.fmean(values), digits) if values else None
