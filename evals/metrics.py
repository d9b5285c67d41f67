"""Ranking metrics of each query, by ir_measures (trec_eval's definitions).

Precision, recall and reciprocal rank count grades of 1 and more; nDCG's gains are the grades, its
discount log2(rank + 1) (Järvelin and Kekäläinen 2002). Full support is 1 for a query whose relevant
documents are all among the first ten, else 0: what a question that needs all of them depends on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evals.dataset import RELEVANT

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
