"""Run the stages over ranked evidence, each switched by its setting, and trace each."""

from __future__ import annotations

import math
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from core.errors import ModelError
from core.language.cues import negations
from core.language.detect import UNDETERMINED, detect_language
from core.language.scan import TOKEN, estimate_tokens
from core.settings import Settings
from core.trace import StageStep
from core.types import Evidence
from models.reranker import Reranker
from retrievers.factors import boost_entities, factors
from retrievers.fusion import VECTOR
from retrievers.types import Index, Query, Searched, Stage, Vector

LEAST_MS = 500  # with less time left than this, re-ranking is skipped

RERANK = "rerank"
NOT_RERANKED = "not re-ranked: "
UNSERVED = "the re-ranking model does not serve this language"


def rerank(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Score the first `rerank_pool` hits again, drop those below `rerank_threshold` (SPEC M4).

    The hits behind the pool stay behind it, their scores scaled to lie below. Without a model for
    the language, without time or when the model fails, the ranking stays and the note says why.
    """
    selection, reranker = searched.index.settings.selection, searched.index.reranker
    if not evidence:
        return evidence, ""
    if reranker is None:
        return evidence, f"{NOT_RERANKED}there is no re-ranking model"
    if reason := _why_not(reranker, searched.query):
        return evidence, NOT_RERANKED + reason
    pool, rest = evidence[: selection.rerank_pool], evidence[selection.rerank_pool :]
    try:
        scores = reranker.score(searched.query.text, [passage(item) for item in pool])
    except ModelError as error:
        return evidence, f"{NOT_RERANKED}{error}"
    if not all(math.isfinite(score) for score in scores):
        return evidence, f"{NOT_RERANKED}the re-ranking model gave no numbers"
    judged = [
        item.model_copy(update={"score": score, "scores": {**item.scores, RERANK: score}})
        for item, score in zip(pool, scores, strict=True)
    ]
    judged.sort(key=lambda item: -item.score)
    kept = [item for item in judged if item.score >= selection.rerank_threshold]
    note = f"{len(pool)} re-ranked"
    if len(kept) < len(judged):
        note += f", {len(judged) - len(kept)} below {selection.rerank_threshold:g} dropped"
    return kept + _behind(judged[-1].score, rest), note


def _why_not(reranker: Reranker, query: Query) -> str:
    """Say why the model cannot be asked; "" when nothing stands against it."""
    if reranker.languages is not None:
        language = query.language or detect_language(query.text)
        if language not in reranker.languages | {UNDETERMINED}:
            return UNSERVED
    if query.deadline is not None:
        left = 1000 * (query.deadline - time.monotonic())
        if left < LEAST_MS:
            return f"only {max(0, round(left))} ms were left"
    return ""


def passage(item: Evidence) -> str:
    """Return a chunk under its title and heading path, as it was embedded."""
    inside = not item.title or item.section.startswith(item.title)
    heading = item.section if inside else f"{item.title} › {item.section}"
    heading = heading.strip(" ›")
    starts = not heading or item.text.startswith(heading)
    return item.text if starts else f"{heading}\n{item.text}"


def _behind(lowest: float, rest: list[Evidence]) -> list[Evidence]:
    """Scale the scores of hits that were not read to lie between 0 and `lowest`."""
    highest = max((item.score for item in rest), default=0.0)
    if highest <= lowest or highest <= 0:
        return rest
    scale = max(lowest, 0.0) / highest
    return [item.model_copy(update={"score": item.score * scale}) for item in rest]


ALPHA = 0.5  # weight of the mean of the chosen against the best of them
LEAST_GAIN = 0.005  # coverage that another piece of evidence must add
CHOSEN = 10  # pieces of evidence chosen at most


def token_budget(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep the longest beginning of the ranking that fits the budget, at least the first."""
    budget = context_budget(searched.index.settings)
    used = 0
    for place, item in enumerate(evidence):
        used += estimate_tokens(item.text)
        if place and used > budget:
            return evidence[:place], f"{len(evidence) - place} beyond {budget} tokens dropped"
    return evidence, ""


def context_budget(settings: Settings) -> int:
    """Return the tokens evidence may fill: `context_tokens`, within a share of the window."""
    if not settings.selection.context_window:
        return settings.selection.context_tokens
    share = int(settings.selection.context_share * settings.selection.context_window)
    return min(settings.selection.context_tokens, share)


COVERAGE = "coverage"
_ROUNDING = 1e-9  # two ways of adding up one gain may differ by less


def coverage(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep what adds to the coverage of the question, in the order of the ranking.

    Bounded by `coverage_k` and the token budget; without vectors all is kept.
    """
    if searched.vector is None or not evidence:
        return evidence, "" if not evidence else "not chosen by coverage: there are no vectors"
    chosen = choose(
        searched.vector,
        searched.index.vectors([item.chunk_id for item in evidence]),
        [estimate_tokens(item.text) for item in evidence],
        alpha=ALPHA,
        min_gain=LEAST_GAIN,
        most=CHOSEN,
        budget=context_budget(searched.index.settings),
    )
    kept = [
        item.model_copy(update={"scores": {**item.scores, COVERAGE: chosen[place]}})
        for place, item in enumerate(evidence)
        if place in chosen
    ]
    return kept, f"{len(kept)} of {len(evidence)} cover the question ({sum(chosen.values()):.2f})"


def choose(
    question: Vector,
    vectors: Vector,
    tokens: Sequence[int],
    *,
    alpha: float,
    min_gain: float,
    most: int,
    budget: int,
) -> dict[int, float]:
    """Pick rows greedily for α·cos(q, mean(C)) + (1−α)·max cos(q, c); return row → its gain.

    The first row is always picked; ties go to the earlier row. Rows whose tokens do not fit the
    rest of the budget are passed over.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    target = np.asarray(question, dtype=np.float64)
    cosines = rows @ target
    total = np.zeros(rows.shape[1])
    best, covered, used = -1.0, 0.0, 0
    chosen: dict[int, float] = {}
    while len(chosen) < min(most, len(rows)):
        sums = total + rows
        lengths = np.linalg.norm(sums, axis=1)
        # The cosine of a mean is that of the sum.
        means = np.divide(sums @ target, lengths, out=np.zeros(len(rows)), where=lengths > 0)
        values = alpha * means + (1 - alpha) * np.maximum(cosines, best)
        most_tokens = budget - used if used else max(tokens)  # the first is taken whatever it is
        free = [r for r in range(len(rows)) if r not in chosen and tokens[r] <= most_tokens]
        if not free:
            break
        top = max(values[row] for row in free)
        row = next(row for row in free if values[row] >= top - _ROUNDING)
        gain = float(values[row]) - covered
        if chosen and gain < min_gain:
            break
        chosen[row], covered, used = gain, float(values[row]), used + tokens[row]
        total, best = sums[row], max(best, float(cosines[row]))
    return chosen


COMPARED = 50  # best hits among which repeats are looked for
SHINGLE_WORDS = 3  # words in a row that are compared at a time

SPACED = 12  # a text with fewer spaces than one in so many characters has none between words

_WORD = re.compile(r"\w+")
_DIGIT = re.compile(r"\d")


def near_duplicates(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep the first of texts whose shingles have a Jaccard similarity of `near_duplicate`.

    Texts that differ in a number or a denial are never the same, however long they are. Shingles
    are made only of texts whose words agree, which few do. Hits behind `COMPARED` stay.
    """
    least = searched.index.settings.selection.near_duplicate
    kept: list[Evidence] = []
    dropped: list[str] = []
    for item in evidence[:COMPARED]:
        twins = (other for other in kept if _repeats(item.text, other.text, least))
        better = next(twins, None)
        if better is None:
            kept.append(item)
        else:
            where = "" if item.document_key == better.document_key else f" of {item.source}"
            dropped.append(f"{item.chunk_id}{where} (as {better.chunk_id})")
    kept += evidence[COMPARED:]
    return kept, f"dropped {', '.join(dropped)}" if dropped else ""


def _repeats(one: str, other: str, least: float) -> bool:
    # A changed word spoils several shingles, so sets of words differ by less than theirs.
    if not _alike(_words(one), _words(other), 2 * least - 1):
        return False
    (shingles, facts), (others, other_facts) = _fingerprint(one), _fingerprint(other)
    return facts == other_facts and _alike(shingles, others, least)


def _alike(one: frozenset[Any], other: frozenset[Any], least: float) -> bool:
    small, large = sorted((len(one), len(other)))
    if small < least * large:  # quicker than to compare them
        return False
    shared = len(one & other)
    return shared >= least * (small + large - shared)


@lru_cache(maxsize=1024)
def _words(text: str) -> frozenset[str]:
    found = _WORD.findall(text.casefold())
    # Without spaces between words, characters stand in for them.
    spaced = len(text) < SPACED * len(found)
    return frozenset(found if spaced else "".join(found))


@lru_cache(maxsize=1024)
def _fingerprint(text: str) -> tuple[frozenset[tuple[str, ...]], Counter[str]]:
    """Return a text's runs of SHINGLE_WORDS folded words, and the words that change a fact.

    A Chinese character is a word.
    """
    tokens: list[str] = []
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    for match in TOKEN.finditer(folded):
        token = match.group()
        tokens.extend(token if match.lastgroup in ("han", "unspaced") else [token])
    tokens = tokens or [text.strip()]  # nothing but signs
    runs = max(1, len(tokens) - SHINGLE_WORDS + 1)
    shingles = frozenset(tuple(tokens[at : at + SHINGLE_WORDS]) for at in range(runs))
    deny = negations()
    facts = Counter(t for t in tokens if t in deny or _DIGIT.search(t))
    return shingles, facts


# SPEC T4: how many hits are kept where the best is nearer than the first distance, no farther than
# the second, or farther; beyond it one that is farther than the third is left out as well.
NEAR, FAR, TOO_FAR = 0.35, 0.55, 0.7
FEW, USUAL, MANY = 3, 5, 8


def adapt_count(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Keep few hits where the best is near, more where it is far; all without vectors."""
    embedder, asked = searched.index.embedder, searched.query.language or ""
    if embedder is None or searched.vector is None or not evidence:
        return evidence, ""
    distances = [
        1.0 - embedder.similarity(item.scores[VECTOR], asked, item.language)
        if VECTOR in item.scores
        else None
        for item in evidence
    ]
    best = min((one for one in distances if one is not None), default=1.0)
    most = FEW if best < NEAR else USUAL if best <= FAR else MANY
    kept = [
        item
        for item, distance in zip(evidence, distances, strict=True)
        if most < MANY or distance is None or distance <= TOO_FAR
    ][:most] or evidence[:1]
    return kept, f"{len(kept)} of {len(evidence)}: the best distance is {best:.2f}"


NEIGHBOUR = "neighbour"


def neighbours(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Put permitted neighbours of the best hits right behind them, in reading order.

    A neighbour's score lies halfway to the next hit, so the ranking stays a ranking;
    `scores["neighbour"]` is its distance in chunks, after the hit positive.
    """
    selection = searched.index.settings.selection
    reach = selection.neighbours_reach
    last = [min(0.0, item.score) for item in evidence[-1:]]
    following = [*[item.score for item in evidence[1:]], *last]
    hits = list(zip(evidence, following, strict=True))[: selection.neighbours_best]
    halfway = {hit.chunk_id: (hit.score + score) / 2 for hit, score in hits}
    widened = _widened(searched, evidence, halfway, range(-reach, reach + 1))
    added = len(widened) - len(evidence)
    return widened, f"{added} neighbours added" if added else ""


def add_announced(searched: Searched, evidence: list[Evidence]) -> tuple[list[Evidence], str]:
    """Put the chunk that a hit announces by a colon at its end (a list, code) right behind it."""
    hits = [hit for hit in evidence if hit.text.rstrip().endswith((":", "："))]
    widened = _widened(searched, evidence, {hit.chunk_id: hit.score for hit in hits}, range(1, 2))
    added = len(widened) - len(evidence)
    return widened, f"{added} announced chunks added" if added else ""


def _widened(
    searched: Searched, evidence: list[Evidence], scores: Mapping[str, float], places: range
) -> list[Evidence]:
    """Add the chunks at these places, counted from them, to the hits that have scores."""
    index, auth = searched.index, searched.query.auth
    known = {item.chunk_id for item in evidence}
    widened: list[Evidence] = []
    for hit in evidence:
        widened.append(hit)
        if hit.chunk_id not in scores:
            continue
        around = index.catalogue.neighbours(
            auth, index.collection.id, hit.chunk_id, places.stop - 1
        )
        for item in around:
            away = item.ordinal - hit.ordinal
            if item.chunk_id not in known and away in places:
                known.add(item.chunk_id)
                origin = {"scores": {NEIGHBOUR: float(away)}, "query": hit.query, "tool": hit.tool}
                update = {"score": scores[hit.chunk_id], **origin}
                widened.append(item.model_copy(update=update))
    return widened


# Re-ranking stages keep the evidence, choosing stages cut it to what an answer should read.
RANKING: tuple[tuple[str, Stage], ...] = (
    ("retrieval.channel_entities", boost_entities),
    ("selection.stage_rerank", rerank),
    ("selection.stage_factors", factors),
    ("selection.stage_near_duplicates", near_duplicates),
)
CHOOSING: tuple[tuple[str, Stage], ...] = (
    ("selection.stage_coverage", coverage),
    ("selection.stage_adaptive_count", adapt_count),
    ("selection.stage_neighbours", neighbours),
    ("selection.stage_announced", add_announced),
    ("selection.stage_token_budget", token_budget),
)


def run_stages(
    searched: Searched,
    evidence: list[Evidence],
    stages: tuple[tuple[str, Stage], ...],
    trace: list[StageStep],
) -> list[Evidence]:
    """Return what the switched-on stages make of the evidence; each leaves a step in the trace."""
    for switch, stage in stages:
        if not evidence or not is_switched_on(searched.index, switch):
            continue
        name = switch.rpartition(".")[2].removeprefix("stage_").removeprefix("channel_")
        with trace_stage(trace, name, len(evidence)) as step:
            evidence, note = stage(searched, evidence)
            step |= {"after": len(evidence), "note": note}
    return evidence


@contextmanager
def trace_stage(trace: list[StageStep], name: str, before: int = 0) -> Iterator[dict[str, Any]]:
    """Time one stage and add its step to the trace, with what it says of itself."""
    figures: dict[str, Any] = {"before": before, "after": before}
    started = time.perf_counter()
    yield figures
    spent = round(1000 * (time.perf_counter() - started), 3)
    trace.append(StageStep(name=name, ms=spent, **figures))


def is_switched_on(index: Index, switch: str) -> bool:
    """Tell whether a stage is on; without a model that re-ranks there is nothing to switch."""
    if switch == "selection.stage_rerank" and index.reranker is None:
        return False
    return bool(index.settings.value(switch))
