"""Study the documents of a collection that a caller may see, and what they advise for settings.

The advice is measured in docs/evals/techdocs.md.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from core.auth import AuthContext
from core.errors import CallerError
from core.language import chinese
from core.language.detect import detect_language
from core.language.identifiers import is_identifier
from core.language.passages import FENCED
from core.language.scan import TOKEN, fold
from core.language.sentences import sentence_spans
from core.profile import Profile
from core.settings import Settings
from core.types import FrozenModel
from ingest.quality.texts import Spread, new_part
from languages.language import known_languages

if TYPE_CHECKING:
    from app.session import Session
    from stores.sqlite.catalogue import Collection

SEGMENT = 1000  # words of a stretch whose vocabulary is counted, so that sizes compare
LONGEST_NAME = 8  # words of a title that is looked for in other documents
MODULES = 15  # that the figure names
THIN = 2  # documents, up to which a module is thinly covered
WHOLE = 0.95  # share of the sections of a type that its length of sections covers
SAMPLE = 1500  # characters of prose that its language is told from
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


Rows = Callable[[], Iterable[Mapping[str, Any]]]
Names = dict[tuple[str, ...], int]  # rows of documents, by the words of what they are called


class _DocumentCounts(NamedTuple):
    """Hold what is counted of one document; `named` are dotted names and what they are in."""

    language: str
    type: str
    passages: int
    size: int
    code: int
    sections: list[int]
    words: list[str]
    sentences: list[int]
    readability: tuple[float, float] | None
    references: int
    declared: set[str]
    imported: set[str]
    named: set[str]


def study(collection: str, profile: str, rows: Rows) -> Study:
    """Return the figures; `rows` gives what `visible_passages` does, each time it is called."""
    names = _names(rows())
    found = [
        _counted(list(passages), names) for _, passages in groupby(rows(), itemgetter("document"))
    ]
    kinds = [kind for kind, _ in Counter(one.type for one in found).most_common()]
    words = [word for one in found for word in one.words]
    ends = range(SEGMENT, len(words) + 1, SEGMENT)
    stretches = [words[end - SEGMENT : end] for end in ends]
    readable = [one.readability for one in found if one.readability]
    return Study(
        collection=collection,
        profile=profile,
        documents=len(found),
        passages=sum(one.passages for one in found),
        languages=dict(Counter(one.language for one in found).most_common()),
        types={kind: _type_study([one for one in found if one.type == kind]) for kind in kinds},
        sizes=_spread([one.size for one in found], "sizes"),
        words=len(words),
        richness=round(len(set(words)) / max(1, len(words)), 4),
        richness_1000=_mean([len(set(part)) / SEGMENT for part in stretches], 4),
        references=_spread([one.references for one in found], "references"),
        code_share=_code_share(found),
        readable=len(readable),
        flesch=_mean([ease for ease, _ in readable], 1),
        fog=_mean([fog for _, fog in readable], 1),
        sentences=_spread([length for one in found for length in one.sentences], "sentences"),
        **_modules(found),
    )


def _names(rows: Iterable[Mapping[str, Any]]) -> Names:
    """Return what documents are called: titles of several words, identifiers that they explain."""
    found: Names = {}
    for row_id, passages in groupby(rows, itemgetter("document")):
        row = next(passages)
        entries = [str(one.get("name")) for one in _entries(json.loads(row["metadata"]))]
        for called in [row["title"], *filter(is_identifier, entries)]:
            name = tuple(words_of(called))
            if 1 < len(name) <= LONGEST_NAME or (name and is_identifier(called)):
                found.setdefault(name, row_id)
    return found


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a passage, and whether each is code, which stands between fences."""
    last = 0
    for match in FENCED.finditer(text):
        yield text[last : match.start()], False
        yield match["code"], True
        last = match.end()
    yield text[last:], False


def _counted(passages: Sequence[Mapping[str, Any]], names: Names) -> _DocumentCounts:
    """Count one document; what a passage repeats of the one before is left out."""
    row, metadata = passages[0], json.loads(passages[0]["metadata"])
    parts: tuple[list[str], list[str]] = [], []
    sections: Counter[str] = Counter()
    for before, passage in zip([{"text": ""}, *passages], passages, strict=False):
        fresh = new_part(before["text"], passage["text"])
        sections[passage["section"]] += len(fresh)
        for part, is_code in _pieces(fresh):
            parts[is_code or passage["kind"] == "code"].append(part)
    prose, code = ("\n\n".join(filter(str.strip, part)) for part in parts)
    size, density = len(prose) + len(code), metadata.get("code_density")
    counted = isinstance(density, int | float) and 0 <= density <= 1  # by ingest, exactly
    words, module = words_of(prose), metadata.get("module")
    spans = sentence_spans(prose)
    sentences = [n for start, end in spans if (n := len(words_of(prose[start:end])))]
    declared = {module.casefold()} if isinstance(module, str) and module else set()
    imported = {name.casefold() for name in _IMPORT.findall(code)}
    everything = [*words, *words_of(code)]
    dotted = declared | imported | {word for word in everything if "." in word}
    known = known_languages().get(row["language"])
    return _DocumentCounts(
        language=row["language"],
        type=_type(metadata) or ("record" if row["is_record"] else row["format"]),
        passages=len(passages),
        size=size,
        code=round(density * size) if counted else len(code),
        sections=list(sections.values()),
        words=[word for word in words if known is None or word not in known.stopwords],
        sentences=sentences,
        readability=_readability(prose, words, len(sentences)),
        references=len(_referred(everything, names) - {row["document"]}),
        declared=declared,
        imported=imported,
        named={name.rsplit(".", n)[0] for name in dotted for n in range(name.count(".") + 1)},
    )


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


def _readability(prose: str, words: list[str], sentences: int) -> tuple[float, float] | None:
    known = known_languages().get(detect_language(prose[:SAMPLE]))  # which may be declared wrongly
    if known is None or known.readability is None or len(words) < ENOUGH_WORDS:
        return None
    return known.readability.measure(words, sentences)


def _referred(words: list[str], names: Names) -> set[int]:
    """Return the documents that a text names."""
    return {
        names[name]
        for start in range(len(words))
        for length in range(1, LONGEST_NAME + 1)
        if (name := tuple(words[start : start + length])) in names
    }


def _modules(found: Sequence[_DocumentCounts]) -> dict[str, Any]:
    """Return how deep modules are, which ones most documents name, and which hardly any does."""
    declared = {name for one in found for name in one.declared}
    modules = declared.union(*(one.imported for one in found))
    named = Counter(name for one in found for name in one.named & modules)
    covered = sorted(named, key=lambda name: (-named[name], name))
    roots = {name.partition(".")[0] for name in declared or covered[:1]}
    thin = [name for name in covered if named[name] <= THIN and name.partition(".")[0] in roots]
    return {
        "module_depth": dict(sorted(Counter(name.count(".") for name in modules).items())),
        "modules": {name: named[name] for name in covered[:MODULES]},
        "thin_modules": sorted(thin),
    }


def _spread(values: list[int], name: str) -> Spread:
    if not values:
        return Spread()
    most = max(values)
    edges = [*BARS[name], max(BARS[name][-1], most) + 1]
    bars = [(a, b, sum(a <= value < b for value in values)) for a, b in pairwise(edges)]
    median, mean = round(statistics.median(values)), round(statistics.fmean(values), 1)
    count, least = len(values), min(values)
    return Spread(count=count, least=least, median=median, mean=mean, most=most, bars=bars)


def _type_study(group: Sequence[_DocumentCounts]) -> TypeStudy:
    sections = sorted(length for one in group for length in one.sections)
    return TypeStudy(
        documents=len(group),
        median=round(statistics.median(one.size for one in group)),
        section=sections[round(WHOLE * (len(sections) - 1))],
        code=_code_share(group),
    )


def _code_share(group: Sequence[_DocumentCounts]) -> float:
    return round(sum(one.code for one in group) / max(1, sum(one.size for one in group)), 4)


def _mean(values: Sequence[float], digits: int) -> float | None:
    return round(statistics.fmean(values), digits) if values else None


CODE_SHARE = 0.05  # of the characters, from which documents count as technical; chosen
SMALLEST, LARGEST = 4000, 200_000  # characters up to which sections stay whole: 1,000 find less
OVERLAP = 10  # hundredths of a chunk that the next one repeats: 30 find nothing more
# Of the profile `techdocs`.
WEIGHTS = {"title": 0.1, "opening": 0.15, "page": 0.4, "headings": 0.1, "order": 0.6, "retry": 0.2}


def advised_study(session: Session, auth: AuthContext, collection: Collection) -> Study:
    """Return the figures of what a caller sees, with the advice; raises CallerError for nothing."""
    found = study(
        collection.name,
        collection.profile.name,
        lambda: session.catalogue.visible_passages(auth, collection),
    )
    if not found.documents:
        rule, hint = "there are no documents in it that you may see", "`carrel ingest` adds some"
        raise CallerError(rule, value=collection.name, hint=hint)
    return found.model_copy(update={"advice": advise(found, session.index(collection).settings)})


def advise(study: Study, settings: Settings) -> list[Advice]:
    """Return what is advised and not set yet; nothing where nothing was measured to help."""
    now = settings.ingest
    technical = _of_technical(study, settings) if study.code_share >= CODE_SHARE else ()
    overlap = Advice(
        setting="ingest.chunk_overlap",
        now=now.chunk_overlap,
        advised=min(now.chunk_overlap, now.chunk_size * OVERLAP // 100),
        why=f"more than {OVERLAP} % of a chunk finds no page more",
    )
    return [one for one in (*technical, overlap) if one.now != one.advised]


def advised_profile(profile: Profile, advice: Sequence[Advice]) -> Profile:
    """Return the profile of a collection with the advice in its settings."""
    given = {one.setting: one.advised for one in advice}
    return profile.model_copy(update={"settings": {**profile.settings, **given}})


def _of_technical(study: Study, settings: Settings) -> Iterator[Advice]:
    """Keep sections whole with their code, and prefer titles and beginnings of pages.

    The size of a chunk then follows the sections of its type; what is set is the longest.
    """
    now, given = settings.ingest, settings.selection.factor_amounts
    code = f"{study.code_share:.0%} of the characters are code"
    why = f"{code}: a sample stays with the text around it, and nothing is repeated"
    yield Advice(setting="ingest.chunker", now=now.chunker, advised="structural", why=why)
    longest = max(one.section for one in study.types.values())
    needed = min(LARGEST, max(now.structural_max, SMALLEST, -(-longest // 1000) * 1000))
    by_type = ", ".join(f"{kind} {one.section:,}" for kind, one in study.types.items())
    why = f"{WHOLE:.0%} of the sections have at most so many characters: {by_type}"
    yield Advice(setting="ingest.structural_max", now=now.structural_max, advised=needed, why=why)
    named = {one.partition("=")[0] for one in given}
    more = [f"{name}={amount}" for name, amount in WEIGHTS.items() if name not in named]
    why = f"{code}: a page says what it is about in its title, its beginning and all over it"
    yield Advice(setting="selection.factor_amounts", now=given, advised=[*given, *more], why=why)
