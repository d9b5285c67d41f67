"""How often an answer is wrong among the surest, beside two baselines on the same questions.

python -m benchmarks.risk_coverage OUT [--sets SET …] [--limit 80] draws questions of each set, also
such as its corpus cannot answer, and answers them three ways: by Carrel, with the confidence of the
answer; by the sentence of the same search's hits that is likest to the question (top-1 sentence);
and by the best sentence of its first hit, as sure as the hit's score (score threshold). A question
that a way refuses comes last in its order and counts as wrong, which favours the baselines.
Writes OUT/risk-coverage.svg and prints the table.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.answer_judge import confidence, printed
from benchmarks.answer_sets import ANSWERABLE, FOREIGNERS, Question, read_set
from benchmarks.answer_tables import risk_curve, table
from benchmarks.answers import BESIDE
from core.language.analysis import content_terms
from core.language.sentences import sentence_spans
from core.settings import load_settings
from evals.answers import ask_one, contains_answer, judged_answers
from evals.corpus import AUTH, COLLECTION, open_corpus
from retrievers.pipelines import run_pipeline
from retrievers.types import Query

SETS = ("squad2", "xquad_ru", "xquad_zh", "cmrc2018_zh", "mtrag_un")
WAYS = ("carrel", "top-1 sentence", "score threshold")
COVERAGES = (0.3, 0.5, 0.7)
# A gold answer that is a paraphrase cannot be found in an answer: half of its content words must
# be said, and its passage cited. Chosen, not measured; the same for the three ways.
LONG_GOLD, SAID = 40, 0.5
HITS = 5  # whose sentences are compared with the question


def main() -> None:
    """Measure, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--limit", type=int, default=80, help="questions of each kind")
    parser.add_argument("--seed", type=int, default=19)
    parser.add_argument("--data", type=Path, default=BESIDE)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    rows = {name: measured(name, given) for name in given.sets}
    (given.out / "risk-coverage.json").write_text(json.dumps(rows), encoding="utf-8")
    (given.out / "risk-coverage.svg").write_text(drawn(rows), encoding="utf-8")
    sys.stdout.write(risk_rows(rows) + "\n")


def measured(name: str, given: argparse.Namespace) -> list[dict[str, tuple[float, bool]]]:
    """Return for each question and way how sure it was, and whether it was wrong."""
    settings, _ = load_settings({"reasoner": "rules"})
    limit = given.limit * (1 if name in FOREIGNERS else 2)  # of one kind alone twice as many
    found = read_set(name, given.data, settings.cache.expanduser(), limit, given.seed)
    corpus = found.build(settings)
    rows = []
    with open_corpus(corpus.settings) as session:
        index = session.index(session.catalogue.collection(AUTH.tenant, COLLECTION))
        for question in found.questions:
            asked = ask_one(session, question.query, "auto")
            sure = -math.inf if asked.refused else confidence(asked)
            row = {WAYS[0]: (sure, is_wrong(question, printed(asked), asked.cited))}
            query = Query(question.query.text, AUTH, language=question.language)
            hits = run_pipeline(index, query, "hybrid", HITS).evidence
            for way, read in ((WAYS[1], hits), (WAYS[2], hits[:1])):
                told = [
                    (likeness(question, hit.text[a:b]), hit.score, hit.text[a:b], hit.document_id)
                    for hit in read
                    for a, b in sentence_spans(hit.text)
                ]
                like, score, text, document = max(told, default=(-1.0, -math.inf, "", ""))
                sure = like if way == WAYS[1] else score
                row[way] = (sure, is_wrong(question, text, {document}))
            rows.append(row)
    return rows


def likeness(question: Question, sentence: str) -> float:
    """Return the share of the question's content words that a sentence has."""
    wanted = set(content_terms(question.query.text, question.language))
    return len(wanted & set(content_terms(sentence, question.language))) / max(1, len(wanted))


def is_wrong(question: Question, text: str, cited: Iterable[str]) -> bool:
    """Tell whether a text is no right answer: any is wrong where the corpus has none."""
    if question.kind != ANSWERABLE or not text:
        return True
    gold = judged_answers(question.query.answers)
    if gold and max(map(len, gold)) <= LONG_GOLD:
        return not contains_answer(gold, [text])
    said = set(content_terms(text, question.language))
    wanted = [set(content_terms(one, question.language)) for one in gold]
    told = any(len(one & said) >= SAID * len(one) for one in wanted)
    return not told or not question.query.relevant & set(cited)


def risk_rows(rows: dict[str, list[dict[str, Any]]]) -> str:
    """Return risk at each coverage and the area under the curve as a Markdown table."""
    head = ["set", "n", "way", *(f"risk at {one:.0%}" for one in COVERAGES), "area"]
    lines = []
    for name, found in rows.items():
        for way in WAYS:
            curve = risk_curve([row[way] for row in found])
            at = [curve[math.ceil(one * len(curve)) - 1] for one in COVERAGES]
            area = sum(curve) / len(curve)
            lines.append([name, str(len(found)), way, *(f"{one:.2f}" for one in (*at, area))])
    return table(head, lines)


def drawn(rows: dict[str, list[dict[str, Any]]]) -> str:
    """Draw the curves, a panel for each set."""
    import io

    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * len(rows), 3.2), layout="constrained")
    panels = figure.subplots(1, len(rows), sharey=True, squeeze=False)[0]
    for panel, (name, found) in zip(panels, rows.items(), strict=True):
        for way, style in zip(WAYS, ("-", "--", ":"), strict=True):
            curve = risk_curve([row[way] for row in found])
            panel.plot([(at + 1) / len(curve) for at in range(len(curve))], curve, style, label=way)
        panel.set(title=f"{name} (n = {len(found)})", xlabel="coverage", ylim=(0, 1))
    panels[0].set_ylabel("risk: share of wrong answers")
    panels[0].legend(fontsize="small")
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


if __name__ == "__main__":
    main()
