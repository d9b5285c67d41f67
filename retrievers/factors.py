"""Factors of a score: what a passage is, how new it is, which names of the question it has."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from core.fields.retrieval import FACTOR_AMOUNTS
from core.language.analysis import content_terms, query_terms, terms
from core.language.cues import cues
from core.language.detect import detect_language
from core.language.entities import entities
from core.language.identifiers import find_identifiers
from core.passages import PATH, newer_versions
from core.types import Evidence
from models.entity_tagger import entity_tagger
from retrievers.fusion import TEXT, VECTOR
from retrievers.types import Searched
from retrievers.versions import asked_versions, nearest_version

LINK_LINES = 8  # a list of links has at least this many lines: judged, not fitted
LINK_WIDTH = 60  # characters of such a line at most
LINK_SHARE = 0.8  # of such lines in a list of links

PAGE_PASSAGES = 3  # best passages of a document that count for it; docs/evals/techdocs.md

_SIGNS = re.compile(r"[\W_]+")
_FENCE = re.compile(r"\s*(?:```|~~~)")
# Only what prose does not look like: "public health" begins a line of prose too.
_CODE_LINE = re.compile(
    r"\s*(?:>>> |\.\.\. |\$ \S|#include\b|pip install |curl -|@[\w.]+(?:\(.*\))?$"
    r"|(?:from [\w.]+ )?import [\w.*]+(?: as \w+)?(?:, ?\w+)*;?$|(?:async )?def \w+\("
    r"|(?:export |pub |static )*(?:function|fn|func) \w+\(|class \w+.*[:{]$"
    r"|(?:const|let|var) \w+ ?[=:]|(?:public|private|protected) .*[({]$)"
    r"|\s*[\w.\[\]\"']+\s*(?:[-+*/|&]?=(?!=)|:=)\s*\S|\s*[\w.]+\([^)]*\)\s*[;{]?\s*$"
    r"|.*[{}]\s*$|.*\);\s*$|\s*[)\]]+[,;]?\s*$"
)
_SENTENCE = re.compile(r"[.!?…](?:[\"'”’»)\]]*)(?:\s|$)|[。！？]")
_FIELD = re.compile(r"\s*[^\W_][^\n:：]{0,40}[:：]\s*\S")
# "1.2." in front, and the page number and its leading dots behind.
_NUMBERING = re.compile(r"^[\d.)\s*+•-]+|[.…\s]{2,}\d*$")
_WIDE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uff00-\uff60]")


def code_share(item: Evidence) -> float:
    """Return the share of a chunk's lines that are code, 0..1."""
    if item.kind == "code":
        return 1.0
    lines = [line for line in item.text.splitlines() if line.strip()]
    inside, code = False, 0
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
            code += 1
        elif inside or _CODE_LINE.match(line):
            code += 1
    return code / len(lines) if lines else 0.0


def is_index_page(item: Evidence) -> bool:
    """Tell whether a chunk is a list of links or a table of contents.

    That is many short lines that are neither sentences, code nor "name: value" fields.
    """
    if item.kind != "text":
        return False
    lines = [line.strip() for line in item.text.splitlines() if line.strip()]
    if len(lines) < LINK_LINES:
        return False
    # A Chinese character is as wide as two others.
    listed = [
        line
        for line in lines
        if len(line) + len(_WIDE.findall(line)) <= LINK_WIDTH and not _FIELD.match(line)
    ]
    bare = [line for line in listed if not _SENTENCE.search(_NUMBERING.sub("", line))]
    code = code_share(item)
    return len(bare) * (1 - code) >= LINK_SHARE * len(lines)


FACTORS = "factors"
Factor = Callable[[Evidence], tuple[str, float]]


def factors(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Add to each score what its version, headings, code, shape and API names are worth.

    Every amount is in units of a score of 1, or of the best score where that is more
    (BM25 alone). Scores may leave 0..1; equal ones keep their order, and `scores["factors"]` is the
    sum of what was added.
    """
    amounts = searched.index.settings.selection.amounts
    chosen: list[Factor] = [
        *_by_version(searched, evidence, amounts),
        *_by_code(searched, amounts),
        *_by_api_name(searched, amounts["api_name"]),
        *_by_definition(searched, amounts["definition"]),
        *_by_heading(searched, evidence, amounts),
        *_by_page(evidence, amounts["page"]),
        lambda item: ("index page", amounts["index_page"] * is_index_page(item)),
    ]
    unit = max([1.0, *(item.score for item in evidence)])
    counts: Counter[str] = Counter()
    corrected = []
    for item in evidence:
        named = {name: unit * amount for name, amount in (f(item) for f in chosen) if amount}
        counts.update(named.keys())
        added = sum(named.values())
        each = {f"{FACTORS}: {name}": amount for name, amount in named.items()}
        scores = {**item.scores, FACTORS: added, **each}
        update = {"score": item.score + added, "scores": scores}
        corrected.append(item.model_copy(update=update) if added else item)
    corrected.sort(key=lambda item: -item.score)
    kept = _near_enough(searched, corrected, amounts["cut"])
    if len(kept) < len(corrected):
        counts["dropped as too far"] = len(corrected) - len(kept)
    return kept, ", ".join(f"{name}: {count}" for name, count in counts.items())


def _near_enough(searched: Searched, evidence: list[Evidence], cut: float) -> list[Evidence]:
    """Leave out what is farther than `cut` and has no word of the query, but for the best hit."""
    embedder, asked = searched.index.embedder, searched.query.language or ""
    if not cut or embedder is None or searched.vector is None:
        return evidence

    def is_near(item: Evidence) -> bool:
        if TEXT in item.scores or VECTOR not in item.scores:
            return True
        return 1.0 - embedder.similarity(item.scores[VECTOR], asked, item.language) <= cut

    return [item for place, item in enumerate(evidence) if not place or is_near(item)]


def _by_version(
    searched: Searched, evidence: list[Evidence], amounts: Mapping[str, float]
) -> Iterable[Factor]:
    asked = asked_versions(searched, evidence)
    if asked and not any(nearest_version(asked, one.version)[1] == "exact" for one in evidence):
        amounts = FACTOR_AMOUNTS  # none is the right one: a profile's own would lift other products

    def version(item: Evidence) -> tuple[str, float]:
        nearest, distance = nearest_version(asked, item.version) if item.version else ("", None)
        if not distance:
            return "", 0.0
        return f"version {nearest} {distance}", amounts[f"version_{distance}"]

    return [version if asked else _older(evidence, amounts["version_older"])]


def _older(evidence: Sequence[Evidence], amount: float) -> Factor:
    """Return the factor of what stands in a newer version too, where none is asked for."""
    old = newer_versions(evidence)
    return lambda item: ("older version", amount * (item.chunk_id in old))


def _by_code(searched: Searched, amounts: Mapping[str, float]) -> Iterable[Factor]:
    text = searched.query.text
    words = cues(searched.query.language or detect_language(text))
    asks = bool(find_identifiers(text)) or words.found("code", text)
    amount = amounts["code" if asks else "code_other"]
    yield lambda item: ("code", amount * code_share(item))


def _by_api_name(searched: Searched, amount: float) -> Iterable[Factor]:
    """Prefer what has an API name of the query, and twice what stands below it.

    A word with capitals inside ("PyTorch") may name what all pages are about: only as a whole query
    is it looked for above.
    """
    text = searched.query.text.strip()
    names = [name.removesuffix("()") for name in find_identifiers(text)]
    pattern = _any_of(names)
    above = _any_of([name for name in names if not name.isalnum() or name == text])

    def api_name(item: Evidence) -> tuple[str, float]:
        heading = f"{item.title}\n{item.section}"
        if above and above.search(heading):
            return "API name", 2 * amount
        match = pattern and pattern.search(f"{heading}\n{item.text}")
        return "API name", amount if match else 0.0

    return [api_name] if names else []


def _by_definition(searched: Searched, amount: float) -> Iterable[Factor]:
    """Prefer what defines a name of the query: the last heading is a dotted name that ends so."""
    text = searched.query.text.strip()
    names = find_identifiers(text) or ([text] if text.isidentifier() else [])
    ends = tuple(f".{name.removesuffix('()')}" for name in names)

    def definition(item: Evidence) -> tuple[str, float]:
        last = item.section.rpartition(PATH)[2].partition("(")[0].strip()
        dotted = last.replace(".", "").replace("_", "").isalnum() and f".{last}".endswith(ends)
        return "definition", amount if dotted and "." in last else 0.0

    return [definition] if names and amount else []


def _any_of(names: Sequence[str]) -> re.Pattern[str] | None:
    if not names:
        return None
    return re.compile("|".join(rf"(?<![\w.]){re.escape(name)}(?!\w)" for name in names))


def _by_page(evidence: Sequence[Evidence], amount: float) -> Iterable[Factor]:
    """Prefer documents of which more than one passage fits: a page about it, no passing mention.

    What counts is the mean of the document's best scores, as a share of the best of all.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    for item in evidence if amount else ():
        found[item.document_key].append(item.score)
    best = {key: sorted(scores)[-PAGE_PASSAGES:] for key, scores in found.items()}
    means = {key: sum(scores) / len(scores) for key, scores in best.items()}
    most = max([1.0, *(item.score for item in evidence)])
    return [lambda item: ("page", amount * means[item.document_key] / most)] if means else []


def _by_heading(
    searched: Searched, evidence: Sequence[Evidence], amounts: Mapping[str, float]
) -> Iterable[Factor]:
    """Prefer what is filed under words of the query: its whole title, or a whole keyword.

    The amount is for a heading that is the query; one that is a part of it counts as much of the
    query's words as it covers, each weighted by its rarity. A title counts apart for those of its
    words that the query has, and the beginning of a document where no code is named.
    """
    segments, collection = searched.index.search, searched.index.collection.id
    asked = query_terms(searched.query.text, segments.languages(collection))
    # The name of a framework is above its first page, and no sign of what is asked of it.
    own = {str(item.metadata.get("framework") or "") for item in evidence}
    framework = {term for name in own for term in content_terms(name)}
    asked = [word for word in asked if not word & framework] or asked
    rarity = segments.idf(collection, sorted({term for word in asked for term in word}))
    weights = {word: min(rarity[term] for term in word) or 1.0 for word in asked}

    def heading(item: Evidence) -> tuple[str, float]:
        keywords = item.metadata.get("keywords")
        filed = [item.title, *(keywords if isinstance(keywords, list) else [])]
        heads = (set(content_terms(str(text), item.language)) for text in filed if text)
        share = max((_covered(weights, words) for words in heads), default=0.0)
        return "heading", amounts["heading"] * share

    def title(item: Evidence) -> tuple[str, float]:
        words = set(content_terms(item.title, item.language)) if amounts["title"] else set()
        shared = sum(weight for word, weight in weights.items() if word & words)
        return "title", amounts["title"] * shared / sum(weights.values())

    def path(item: Evidence) -> tuple[str, float]:
        words = set(content_terms(_SIGNS.sub(" ", item.source))) if amounts["path"] else set()
        shared = sum(weight for word, weight in weights.items() if word & words)
        return "path", amounts["path"] * shared / sum(weights.values())

    def opening(item: Evidence) -> tuple[str, float]:
        return "opening", 0.0 if item.ordinal else amounts["opening"]

    named = bool(find_identifiers(searched.query.text))
    return [heading, title, path, *([] if named else [opening])] if asked else []


def _covered(asked: dict[frozenset[str], float], words: set[str]) -> float:
    """Return the share of the query that a heading covers, 0 unless all of it is in the query."""
    if not words or not words <= frozenset().union(*asked):
        return 0.0
    total = sum(asked.values())
    return sum(weight for word, weight in asked.items() if word & words) / total


ENTITIES_WEIGHT = 0.2  # added to evidence that names all entities of the question

ENTITIES = "entities"
Name = list[frozenset[str]]  # the words of a name, each with its possible index terms


def boost_entities(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Add ENTITIES_WEIGHT times the share of the question's entities that evidence names.

    Equal scores keep their order; `scores["entities"]` is the share.
    """
    shares = entity_shares(searched, evidence)
    boosted = []
    for item in evidence:
        share = shares.get(item.chunk_id, 0.0)
        scores = {**item.scores, ENTITIES: share}
        update = {"score": item.score + ENTITIES_WEIGHT * share, "scores": scores}
        boosted.append(item.model_copy(update=update) if share else item)
    boosted.sort(key=lambda item: -item.score)
    return boosted, f"{len(shares)} name entities of the question" if shares else ""


def entity_shares(searched: Searched, candidates: Sequence[Evidence]) -> dict[str, float]:
    """Return the share of the question's entities that candidates name, by chunk id, above 0.

    Each entity is weighted by the mean rarity of its words.
    """
    names = question_names(searched) if candidates else []
    weights = [_weight(searched, name) for name in names]
    shares = {}
    for item in candidates:
        present = frozenset(terms(f"{item.title}\n{item.section}\n{item.text}", item.language))
        named = [
            weight
            for name, weight in zip(names, weights, strict=True)
            if all(present & word for word in name)
        ]
        if named:
            shares[item.chunk_id] = sum(named) / sum(weights)
    return shares


def question_names(searched: Searched) -> list[Name]:
    """Return the entities of the question as index terms, each once, in its order."""
    index, query = searched.index, searched.query
    language = query.language or detect_language(query.text)
    tagger = entity_tagger(index.settings.retrieval.entity_model, language)
    languages = index.search.languages(index.collection.id)
    names: list[Name] = []
    for entity in entities(query.text, language, tagger):
        name = query_terms(entity.text, languages)
        if name and name not in names:
            names.append(name)
    return names


def _weight(searched: Searched, name: Name) -> float:
    """Weigh a name by the mean inverse frequency of its words, the commonest reading of each."""
    index = searched.index
    wanted = sorted(term for word in name for term in word)
    rarity = index.catalogue.inverse_frequencies(index.collection.id, wanted)
    return sum(min(rarity[term] for term in word) for word in name) / len(name)
