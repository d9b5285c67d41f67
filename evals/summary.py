"""Put the runs of one pipeline into figures: means, intervals, latency, and the same per group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from core.settings import Settings
from evals.dataset import RELEVANT, JudgedQuery
from evals.runner import PipelineRun, QueryRun

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
else:
    Floats = Any

CONFIDENCE = 0.95  # of the intervals that are given: the usual one

CELLS = 4_000_000  # numbers of one block of resamples, to bound the memory
EQUAL = 1e-12  # a smaller difference is a tie: the metrics are sums of rounded fractions

Interval = tuple[float, float] | None


@dataclass(frozen=True)
class Difference:
    """Compare two pipelines over the same queries; `wins` are queries where the first is higher.

    `p` is two-sided; `interval` is None for a single query, which tells nothing of the spread.
    """

    mean: float
    interval: Interval
    p: float
    wins: int
    ties: int
    losses: int


def intervals(columns: Sequence[Sequence[float]], settings: Settings) -> list[Interval]:
    """Return the percentile bootstrap interval of the mean of each column (Efron 1979).

    Every column holds one value for each of the same queries.
    """
    values = np.array(columns, dtype=np.float64).T
    if len(values) < 2:
        return [None] * len(columns)
    random = np.random.default_rng(settings.evaluation.seed)
    even = np.full(len(values), 1 / len(values))
    # How often each query is drawn says all about a resample, and makes its means one product.
    means = [
        random.multinomial(len(values), even, size=size) @ values / len(values)
        for size in _blocks(settings.evaluation.resamples, len(values))
    ]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail], axis=0)
    return [(float(a), float(b)) for a, b in zip(low, high, strict=True)]


def differences(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], settings: Settings
) -> list[Difference]:
    """Compare each column of `first` with the same of `second`, query by query."""
    gaps = np.array(first, dtype=np.float64) - np.array(second, dtype=np.float64)
    gaps[np.abs(gaps) < EQUAL] = 0.0
    bounds = intervals([list(gap) for gap in gaps], settings)
    found = []
    for gap, bound, p in zip(gaps, bounds, _p_values(gaps.T, settings), strict=True):
        wins, losses = int((gap > 0).sum()), int((gap < 0).sum())
        mean = float(gap.mean())
        found.append(Difference(mean, bound, p, wins, len(gap) - wins - losses, losses))
    return found


def _p_values(gaps: Floats, settings: Settings) -> list[float]:
    """Return two-sided p of the paired randomisation test (Smucker et al. 2007), rows = queries.

    Were the pipelines equal, every difference could as well have the other sign. The observed
    signs count as one of the resamples, so p is never 0.
    """
    random = np.random.default_rng(settings.evaluation.seed)
    observed = np.abs(gaps.sum(axis=0)) - EQUAL * len(gaps)
    as_large = np.zeros(gaps.shape[1])
    for size in _blocks(settings.evaluation.resamples, len(gaps)):
        signs = random.integers(0, 2, size=(size, len(gaps)), dtype=np.int8) * 2.0 - 1.0
        as_large += (np.abs(signs @ gaps) >= observed).sum(axis=0)
    return [float(p) for p in (as_large + 1) / (settings.evaluation.resamples + 1)]


def _blocks(total: int, width: int) -> list[int]:
    size = max(1, CELLS // width)
    return [min(size, total - start) for start in range(0, total, size)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0..1) of the values lie, interpolated."""
    return float(np.quantile(np.array(values, dtype=np.float64), share))


MEASURES = {
    "precision@3": f"P(rel={RELEVANT})@3",
    "precision@5": f"P(rel={RELEVANT})@5",
    "precision@10": f"P(rel={RELEVANT})@10",
    "recall@5": f"R(rel={RELEVANT})@5",
    "recall@10": f"R(rel={RELEVANT})@10",
    "recall@100": f"R(rel={RELEVANT})@100",
    "mrr": f"RR(rel={RELEVANT})",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
}
FULL_SUPPORT, SUPPORT_DEPTH = "full_support@10", 10
METRICS = (*MEASURES, FULL_SUPPORT)

Row = dict[str, float]


def query_metrics(
    grades: Sequence[Mapping[str, int]], rankings: Sequence[Sequence[str]]
) -> list[Row]:
    """Return the metrics of each query, from its grades by document and its ranked documents.

    A ranking lists each document once, best first; an empty one gives 0 for everything.
    """
    import ir_measures

    names = [str(number) for number in range(len(grades))]
    judged = {
        name: {document: max(grade, 0) for document, grade in given.items()}
        for name, given in zip(names, grades, strict=True)
    }
    # trec_eval breaks ties by document id; falling whole numbers keep the order that was found.
    scored = {
        name: {document: float(-place) for place, document in enumerate(ranking)}
        for name, ranking in zip(names, rankings, strict=True)
        if ranking
    }
    measures = {ir_measures.parse_measure(text): metric for metric, text in MEASURES.items()}
    rows: dict[str, Row] = {name: dict.fromkeys(METRICS, 0.0) for name in names}
    for result in ir_measures.iter_calc(list(measures), judged, scored):
        rows[result.query_id][measures[result.measure]] = float(result.value)
    for name, given, ranking in zip(names, grades, rankings, strict=True):
        rows[name][FULL_SUPPORT] = _full_support(given, ranking)
    return [rows[name] for name in names]


def _full_support(grades: Mapping[str, int], ranking: Sequence[str]) -> float:
    relevant = {document for document, grade in grades.items() if grade >= RELEVANT}
    return float(bool(relevant) and relevant.issubset(ranking[:SUPPORT_DEPTH]))


DIGITS = 6  # of a figure in JSON
NO_TYPE = "(no type)"
# Upper ends of the groups in which the rank of the first relevant document is counted.
RANK_ENDS = (1, 2, 3, 5, 10, 100)
NOT_FOUND = "not found"
LATENCY = "latency_ms"


class QueryOutcome(Protocol):
    """One query's outcome, whether its documents or its answer are measured."""

    @property
    def query(self) -> JudgedQuery:
        """Return the query with its judgments."""

    @property
    def language(self) -> str:
        """Return the language of the query."""

    @property
    def ms(self) -> float | None:
        """Return how long it took, None when it was not accepted."""


Keep = Callable[[QueryOutcome], bool]


@dataclass(frozen=True)
class Measured:
    """Hold the runs of one pipeline with the metrics of each."""

    pipeline: str
    runs: list[QueryRun]
    rows: list[Row]

    def mean(self, metric: str) -> float:
        """Return the mean over the queries."""
        return sum(row[metric] for row in self.rows) / len(self.rows)

    def column(self, metric: str) -> list[float]:
        """Return the metric of each query."""
        return [row[metric] for row in self.rows]

    def intervals(self, settings: Settings) -> dict[str, Interval]:
        """Return the interval of each metric's mean."""
        columns = [self.column(metric) for metric in METRICS]
        return dict(zip(METRICS, intervals(columns, settings), strict=True))

    def part(self, keep: Keep) -> Measured:
        """Return the same for some of the queries."""
        chosen = [place for place, run in enumerate(self.runs) if keep(run)]
        return Measured(
            self.pipeline, [self.runs[i] for i in chosen], [self.rows[i] for i in chosen]
        )


def measured(run: PipelineRun) -> Measured:
    """Return the metrics of every query of a run."""
    rows = query_metrics(
        [item.query.grades for item in run.runs],
        [[document for document, _ in item.ranking] for item in run.runs],
    )
    return Measured(run.pipeline, run.runs, rows)


def type_of(run: QueryOutcome) -> str:
    """Return the type of a query as groups are named."""
    return run.query.type or NO_TYPE


def language_of(run: QueryOutcome) -> str:
    """Return the language of a query."""
    return run.language


def types(runs: Sequence[QueryOutcome]) -> list[str]:
    """Return the types of queries, the most frequent first; none when no query has one."""
    return _frequent(runs, type_of) if any(run.query.type for run in runs) else []


def languages(runs: Sequence[QueryOutcome]) -> list[str]:
    """Return the languages of queries, the most frequent first; none when all have the same."""
    found = _frequent(runs, language_of)
    return found if len(found) > 1 else []


def _frequent(runs: Sequence[QueryOutcome], of: Callable[[QueryOutcome], str]) -> list[str]:
    counts = Counter(of(run) for run in runs)
    return sorted(counts, key=lambda name: (-counts[name], name))


def in_group(of: Callable[[QueryOutcome], str], name: str) -> Keep:
    """Return a test of whether a run belongs to a group."""
    return lambda run: of(run) == name


def latency(runs: Sequence[QueryOutcome]) -> dict[str, float | None]:
    """Return the median and the 95th percentile in milliseconds."""
    times = [run.ms for run in runs if run.ms is not None]
    shares = {"p50": 0.5, "p95": 0.95}
    if not times:
        return dict.fromkeys(shares)
    return {name: round(percentile(times, share), 3) for name, share in shares.items()}


def figures(of: Measured, bounds: Mapping[str, Interval]) -> dict[str, Any]:
    """Return n, means and intervals as JSON has them."""
    return {
        "n": len(of.rows),
        "metrics": {metric: round(of.mean(metric), DIGITS) for metric in METRICS},
        "ci": {metric: round_interval(bounds[metric]) for metric in METRICS},
    }


def round_interval(interval: Interval) -> list[float] | None:
    """Return an interval as JSON has it."""
    return None if interval is None else [round(end, DIGITS) for end in interval]


def group_figures(
    runs: Sequence[QueryOutcome], figures_of: Callable[[Keep], dict[str, Any]]
) -> dict[str, Any]:
    """Return the figures per query type and per language, where there are such."""
    groups: dict[str, Any] = {}
    for key, names, kind in (
        ("by_type", types(runs), type_of),
        ("by_language", languages(runs), language_of),
    ):
        if names:
            groups[key] = {name: figures_of(in_group(kind, name)) for name in names}
    return groups


def compared(first: Measured, second: Measured, settings: Settings) -> dict[str, Difference]:
    """Return first − second per metric, and of the latency where both have one."""
    found = differences(
        [first.column(metric) for metric in METRICS],
        [second.column(metric) for metric in METRICS],
        settings,
    )
    named = dict(zip(METRICS, found, strict=True))
    times = [(a.ms, b.ms) for a, b in zip(first.runs, second.runs, strict=True)]
    if (slower := compare_pairs(times, settings)) is not None:
        named[LATENCY] = slower
    return named


def compare_pairs(
    pairs: Iterable[tuple[float | None, float | None]], settings: Settings
) -> Difference | None:
    """Return first − second over the queries that have both, None where none has."""
    both = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not both:
        return None
    mine, theirs = zip(*both, strict=True)
    return differences([mine], [theirs], settings)[0]


def difference_json(found: Mapping[str, Difference]) -> dict[str, Any]:
    """Return paired comparisons as JSON has them."""
    return {
        metric: {
            "difference": round(one.mean, DIGITS),
            "ci": round_interval(one.interval),
            "p": round(one.p, DIGITS),
            "wins": one.wins,
            "ties": one.ties,
            "losses": one.losses,
        }
        for metric, one in found.items()
    }


def rank_groups(runs: list[QueryRun]) -> dict[str, int]:
    """Count the queries by the rank of their first relevant document."""
    names = rank_names()
    counts = dict.fromkeys(names, 0)
    for run in runs:
        rank = run.first_relevant
        place = next((i for i, end in enumerate(RANK_ENDS) if rank and rank <= end), len(RANK_ENDS))
        counts[NOT_FOUND if rank is None else names[place]] += 1
    return counts


def rank_names() -> list[str]:
    """Return the names of the groups of ranks: 1, 2, 3, 4–5, … and not found."""
    names, start = [], 1
    for end in RANK_ENDS:
        names.append(str(end) if start == end else f"{start}–{end}")
        start = end + 1
    return [*names, f"{start}+", NOT_FOUND]


def distances(runs: list[QueryRun]) -> tuple[list[float], list[float]]:
    """Return the distances of the best hits that are relevant, and of those that are not."""
    relevant: list[float] = []
    other: list[float] = []
    for run in runs:
        if run.distance is not None:
            (relevant if run.first_relevant == 1 else other).append(run.distance)
    return relevant, other
