"""Ask a collection questions whose right pages are known: ranks before and after re-ranking."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError
from core.language.detect import detect_language
from core.metadata import parse_filters
from core.question import checked_question
from core.types import Evidence
from evals.corpus import Progress
from evals.dataset import read_objects
from evals.runner import WARMUP
from evals.summary import percentile
from retrievers.pipelines import run_pipeline
from retrievers.types import Index, Query
from retrievers.versions import version_distance

SHAPE = '{"question": "…", "pages": ["guide.html"], "framework": "…", "version": "…"}'
RERANKING = ("stage_rerank", "stage_factors")
# Ends of the groups in which charts count: ranks, and distances of the best hit (SPEC T4, T6).
RANKS = (1, 2, 3, 5, 10)
DISTANCES = (0.2, 0.35, 0.55, 0.75, 1.0)
TOP = 3  # hits among which pages of a wrong version are counted
DIGITS = 4


@dataclass(frozen=True)
class PageQuestion:
    """Hold a question with the ids of its right pages, and what is expected of the best hit."""

    text: str
    pages: frozenset[str]
    framework: str = ""
    version: str = ""


@dataclass(frozen=True)
class AskedPages:
    """Hold what one question found: the ranks, from 1, of its first right page, None for none.

    `distance` is 1 − the similarity of the best hit, None without vectors; `framework` is what the
    best hit declares, `versions` what the first TOP pages do.
    """

    question: PageQuestion
    rank: int | None
    rank_before: int | None
    ms: float
    found: list[str] = field(default_factory=list)
    distance: float | None = None
    framework: str = ""
    versions: list[str] = field(default_factory=list)


def read_page_questions(path: Path, pages: Iterable[Mapping[str, Any]]) -> list[PageQuestion]:
    """Read questions (JSON Lines) about a collection with these documents.

    A page is named by its document id, or by its path in the collection's source, of which the
    end is enough where one document alone has it. Raises CallerError for a row that names no page.
    """
    if not path.is_file():
        rule = "the questions must be a file of JSON Lines"
        raise CallerError(rule, value=str(path), hint=f"a line is {SHAPE}")
    ends: defaultdict[str, set[str]] = defaultdict(set)
    ids = set()
    for page in pages:
        name = str(page["document_id"])
        ids.add(name)
        for called in {name, str(page["source"])}:
            parts = called.split("/")
            for start in range(len(parts)):
                ends["/".join(parts[start:])].add(name)
    found = [_question(place, row, ids, ends) for place, row in read_objects(path, SHAPE)]
    if not found:
        raise CallerError(
            "the file must hold questions", value=str(path), hint=f"a line is {SHAPE}"
        )
    return found


def _question(
    place: str, row: dict[str, Any], ids: set[str], ends: Mapping[str, set[str]]
) -> PageQuestion:
    text, pages = row.get("question"), row.get("pages")
    pages = [pages] if isinstance(pages, str) else pages
    expected = {key: row.get(key) or "" for key in ("framework", "version")}
    wrong = next((key for key, value in expected.items() if not isinstance(value, str)), "")
    if not isinstance(text, str) or not text.strip():
        raise CallerError(f"{place}: 'question' must be a text", value=text, hint=f"as {SHAPE}")
    if not isinstance(pages, list) or not pages or not all(isinstance(p, str) for p in pages):
        rule = f"{place}: 'pages' must be a list of document ids"
        raise CallerError(rule, value=pages, hint=f"as {SHAPE}")
    if wrong:
        raise CallerError(
            f"{place}: '{wrong}' must be a text", value=row[wrong], hint=f"as {SHAPE}"
        )
    named = frozenset(_page(place, page, ids, ends) for page in pages)
    return PageQuestion(text.strip(), named, **expected)


def _page(place: str, page: str, ids: set[str], ends: Mapping[str, set[str]]) -> str:
    if page in ids:
        return page
    found = sorted(ends.get(page.strip("/"), ()))
    if len(found) == 1:
        return found[0]
    if found:
        rule = f"{place}: {len(found)} pages of the collection end in this path"
        raise CallerError(rule, value=page, hint=f"name it in full, such as {found[0]}")
    hint = "`carrel documents` lists the document ids"
    raise CallerError(f"{place}: the page is not in the collection", value=page, hint=hint)


def ask_pages(
    session: Session,
    auth: AuthContext,
    collection: str,
    questions: Sequence[PageQuestion],
    pipeline: str,
    progress: Progress,
    *,
    in_framework: bool = False,
) -> list[AskedPages]:
    """Search for each question, as a user would; that is what is timed.

    With `in_framework` a question is searched in the documents of the framework that its row names,
    where any document names it, as by a reader who chooses it.

    Its ranks are those of whole rankings, with and without the stages that re-rank. A version that
    a row expects and its question does not name is asked for as the caller's, where just one of
    the collection is the same.
    """
    for question in questions:
        checked_question(question.text, session.settings)
    found = session.catalogue.visible_collection(auth, collection)
    index = session.index(found)
    plain = index.settings.model_copy(update={f"selection.{name}": False for name in RERANKING})
    versions = {one.version for one in session.catalogue.document_names(auth, found.id)} - {""}
    within = {
        name: auth.narrowed(parse_filters([f"framework={name}"]))
        for name in {one.framework for one in questions if one.framework and in_framework}
    }
    named = {k: v for k, v in within.items() if session.catalogue.document_names(v, found.id)}
    for question in questions[:WARMUP]:  # its words in other order: no vector of it is kept
        _search(index, auth, " ".join(reversed(question.text.split())), pipeline, choose=True)
    asked = []
    for done, question in enumerate(questions, start=1):
        caller = _asking_for(named.get(question.framework, auth), question, versions)
        began = time.perf_counter()
        _search(index, caller, question.text, pipeline, choose=True)
        ms = 1000 * (time.perf_counter() - began)
        after = _search(index, caller, question.text, pipeline, choose=False)
        before = _search(
            replace(index, settings=plain), caller, question.text, pipeline, choose=False
        )
        asked.append(_judged(index, question, ms, after, before))
        progress(pipeline, done, len(questions))
    return asked


def _asking_for(auth: AuthContext, question: PageQuestion, versions: set[str]) -> AuthContext:
    if not question.version or question.version in question.text:
        return auth
    same = [one for one in versions if version_distance(question.version, one) == "exact"]
    return auth.model_copy(update={"version_policy": same[0]}) if len(same) == 1 else auth


def _search(
    index: Index, auth: AuthContext, text: str, pipeline: str, *, choose: bool
) -> list[Evidence]:
    query = Query(text, auth, language=detect_language(text))
    depth = index.settings.retrieval.top_k if choose else index.settings.evaluation.depth
    hits: dict[str, Evidence] = {}
    for hit in run_pipeline(index, query, pipeline, depth, choose=choose).evidence:
        hits.setdefault(hit.document_id, hit)
    return list(hits.values())


def _judged(
    index: Index,
    question: PageQuestion,
    ms: float,
    after: list[Evidence],
    before: list[Evidence],
) -> AskedPages:
    best = after[0] if after else None
    return AskedPages(
        question,
        _rank(question, after),
        _rank(question, before),
        ms,
        [hit.document_id for hit in after[: RANKS[-1]]],
        None if best is None else _distance(index, question.text, best),
        "" if best is None else str(best.metadata.get("framework", "")),
        [hit.version for hit in after[:TOP]],
    )


def _distance(index: Index, text: str, hit: Evidence) -> float | None:
    language = detect_language(text)
    embedder = index.embedder
    if embedder is None or (embedder.languages is not None and language not in embedder.languages):
        return None
    cosine = float(embedder.embed_query(text) @ index.vectors([hit.chunk_id])[0])
    return 1.0 - embedder.similarity(cosine, language)


def _rank(question: PageQuestion, hits: Sequence[Evidence]) -> int | None:
    ranks = (rank for rank, hit in enumerate(hits, 1) if hit.document_id in question.pages)
    return next(ranks, None)


def summarise_pages(asked: Sequence[AskedPages]) -> dict[str, Any]:
    """Return the figures of all questions and of each framework; ranks of none count as 0."""
    groups: defaultdict[str, list[AskedPages]] = defaultdict(list)
    for one in asked:
        groups[one.question.framework].append(one)
    times = [one.ms for one in asked]
    expected = [one for one in asked if one.question.framework and one.framework]
    versioned = [one for one in asked if one.question.version]
    right = [one.framework.casefold() == one.question.framework.casefold() for one in expected]
    return {
        "n": len(asked),
        **_figures([one.rank for one in asked]),
        "p50_ms": round(percentile(times, 0.5), 1),
        "p95_ms": round(percentile(times, 0.95), 1),
        "before_rerank": _figures([one.rank_before for one in asked]),
        "places_gained": _gain(asked),
        "framework_top1": round(statistics.fmean(right), DIGITS) if right else None,
        f"wrong_version_top{TOP}": sum(map(_wrong_versions, versioned)) if versioned else None,
        "ranks": _counts(RANKS, [one.rank for one in asked]),
        "ranks_before": _counts(RANKS, [one.rank_before for one in asked]),
        "distances": {
            name: _counts(DISTANCES, [one.distance for one in asked if (one.rank == 1) == is_right])
            for name, is_right in (("right", True), ("wrong", False))
        },
        "by_framework": {
            name or "unknown": {"n": len(group), **_figures([one.rank for one in group])}
            for name, group in sorted(groups.items())
        },
        "questions": [_row(one) for one in asked],
    }


def _figures(ranks: Sequence[int | None]) -> dict[str, float]:
    top1 = statistics.fmean(rank == 1 for rank in ranks)
    mrr = statistics.fmean(1 / rank if rank else 0.0 for rank in ranks)
    return {"top1": round(top1, DIGITS), "mrr": round(mrr, DIGITS)}


def _gain(asked: Sequence[AskedPages]) -> float | None:
    """Return by how many places re-ranking lifts the right page, where both rankings have it."""
    gains = [one.rank_before - one.rank for one in asked if one.rank and one.rank_before]
    return round(statistics.fmean(gains), DIGITS) if gains else None


def _wrong_versions(one: AskedPages) -> int:
    asked = one.question.version
    return sum(bool(v) and version_distance(asked, v) != "exact" for v in one.versions)


def _counts(ends: Sequence[float], values: Iterable[float | None]) -> dict[str, int]:
    """Count values up to each end; "none" are missing or larger."""
    counts = {f"≤{end:g}": 0 for end in ends} | {"none": 0}
    for value in values:
        end = next((end for end in ends if value is not None and value <= end), None)
        counts["none" if end is None else f"≤{end:g}"] += 1
    return counts


def _row(one: AskedPages) -> dict[str, Any]:
    return {
        "question": one.question.text,
        "pages": sorted(one.question.pages),
        "framework": one.question.framework,
        "version": one.question.version,
        "rank": one.rank,
        "rank_before": one.rank_before,
        "found": one.found,
        "distance": None if one.distance is None else round(one.distance, DIGITS),
        "ms": round(one.ms, 1),
    }
