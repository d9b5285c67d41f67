"""Ask what dialogues tell: from memory, by plain retrieval over their turns, and without either."""

from __future__ import annotations

import re
import string
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

from app.session import Session
from core.recall import NOTE
from core.settings import Settings
from core.types import Claim, Evidence
from evals.corpus import COLLECTION, Progress, open_corpus
from evals.dialogues import (
    MemoryQuestion,
    build_memory,
    read_questions,
    read_turns,
    user_of,
)
from evals.runner import checked_name
from evals.summary import (
    CONFIDENCE,
    DIGITS,
    compare_pairs,
    difference_json,
    intervals,
    percentile,
    round_interval,
)
from graph.asking import ActiveRun
from reasoning.rules.answering.headings import LED
from reasoning.rules.recall import AT_ONCE, questions_of, short_claim
from tools.note_tools import note_evidence

NOT_MENTIONED = "Not mentioned"
REFUSING = ("not mentioned", "no information available")
# Those of LoCoMo (Maharana et al. 2024, task_eval/evaluation.py): F1 over Porter stems, of the best
# part for each part of a multi-hop answer; of adversarial questions, whether nothing is mentioned.
# BLEU-1 and ROUGE are those of nltk and rouge-score, as A-MEM has them (Xu et al. 2025).
METRICS = ("em", "f1", "bleu1", "rouge2", "rougeL")
MULTI_HOP, OPEN_DOMAIN = "multi-hop", "open-domain"
ARTICLES = re.compile(r"\b(a|an|the|and)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def scores(answer: str, gold: str, category: str) -> dict[str, float]:
    """Return the metrics of one answer, 0..1; a `gold` of "" is that nothing is mentioned."""
    if not gold:
        refused = float(any(one in answer.casefold() for one in REFUSING))
        return dict.fromkeys(METRICS, refused)
    gold = gold.partition(";")[0].strip() if category == OPEN_DOMAIN else gold
    found = _rouge().score(gold, answer)
    return {
        "em": float(set(normalised(answer).split()) == set(normalised(gold).split())),
        "f1": _parts_f1(answer, gold) if category == MULTI_HOP else word_f1(answer, gold),
        "bleu1": _bleu1(answer, gold),
        "rouge2": float(found["rouge2"].fmeasure),
        "rougeL": float(found["rougeL"].fmeasure),
    }


def normalised(text: str) -> str:
    """Return a text in small letters without punctuation and articles."""
    bare = text.replace(",", "").lower().translate(PUNCTUATION)
    return " ".join(ARTICLES.sub(" ", bare).split())


def word_f1(answer: str, gold: str) -> float:
    """Return the F1 of the stems that two texts share."""
    ours, theirs = (Counter(map(_stem, normalised(one).split())) for one in (answer, gold))
    shared = (ours & theirs).total()
    return 2 * shared / (ours.total() + theirs.total()) if shared else 0.0


def _parts_f1(answer: str, gold: str) -> float:
    """Return the mean over the parts of a gold answer of the best F1 of a part of the answer."""
    ours, theirs = answer.split(","), gold.split(",")
    return sum(max(word_f1(one, part) for one in ours) for part in theirs) / len(theirs)


def _bleu1(answer: str, gold: str) -> float:
    tools = import_module("nltk.translate.bleu_score")
    ours, theirs = answer.lower().split(), gold.lower().split()
    smooth = tools.SmoothingFunction().method1
    given = {"weights": (1, 0, 0, 0), "smoothing_function": smooth}
    return float(tools.sentence_bleu([theirs], ours, **given)) if ours else 0.0


@cache
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


@cache
def _stemmer() -> Any:  # noqa: ANN401 - nltk's own
    return import_module("nltk.stem.porter").PorterStemmer()


@cache
def _rouge() -> Any:  # noqa: ANN401 - rouge-score's own
    scorer = import_module("rouge_score.rouge_scorer")
    return scorer.RougeScorer(["rouge2", "rougeL"], use_stemmer=True)


MemoryPipeline = Literal["memory", "retrieval", "none"]
PIPELINES: tuple[MemoryPipeline, ...] = get_args(MemoryPipeline)
ENOUGH = 2  # the grade from which evidence answers


@dataclass(frozen=True)
class MemoryOutcome:
    """Hold the short answer to a question with its scores, and the run that gave it."""

    question: MemoryQuestion
    answer: str
    metrics: dict[str, float]
    ms: float
    trail: list[dict[str, Any]] = field(default_factory=list)


def short_answer(claims: Sequence[Claim], evidence: Sequence[Evidence]) -> str:
    """Return the values that claims say, or that nothing is mentioned."""
    sections = {one.evidence_id: one.section for one in evidence if one.kind == NOTE}
    texts: list[str] = []
    for claim in claims:
        lead, mark, _ = claim.text.partition(LED)
        own = sections.get(claim.citations[0].evidence_id)
        texts.append(lead if mark and lead == own else claim.text)
    return ", ".join(dict.fromkeys(texts)) or NOT_MENTIONED


def retrieve_turns(session: Session, question: MemoryQuestion) -> str:
    """Answer from the turns that one search finds, whoever said them and whenever."""
    auth = user_of(question.dialogue)
    reasoner = session.context(auth, COLLECTION).reasoner
    found = session.memory(auth).search(auth, question.text, AT_ONCE)
    evidence = [
        note_evidence(one.note, "search", question.text, one.score).model_copy(
            update={"text": one.note.content, "title": "", "section": "", "kind": "text"}
        )
        for one in found
    ]
    query = reasoner.understand(question.text, [])
    asked = questions_of(query, question.text)
    sub = asked.questions[0]
    graded = {one.evidence_id: one.grade for one in reasoner.grade(sub, evidence)}
    good = [
        one.model_copy(update={"grades": {sub.id: graded[one.evidence_id]}})
        for one in evidence
        if graded.get(one.evidence_id, 0) >= ENOUGH
    ]
    if not good:
        return NOT_MENTIONED
    draft, values = reasoner.answer(query, asked, good), reasoner.extract(sub, good)
    by_id = {one.evidence_id: one for one in good}
    claims = [
        short_claim(one, sub, by_id[one.citations[0].evidence_id], values) for one in draft.claims
    ]
    return short_answer(claims, good)


def run_memory(
    opened: Settings,
    questions: Sequence[MemoryQuestion],
    pipeline: MemoryPipeline,
    progress: Progress,
) -> list[MemoryOutcome]:
    """Ask all questions of one pipeline and score the answers."""
    outcomes: list[MemoryOutcome] = []
    with open_corpus(opened) as session:
        for done, question in enumerate(questions, start=1):
            began, trail = time.perf_counter(), []
            if pipeline == "retrieval":
                answer = retrieve_turns(session, question)
            else:
                auth = user_of(question.dialogue)
                context = session.context(auth, COLLECTION, recalls=pipeline == "memory")
                run = session.asking.alone(ActiveRun(question.text, COLLECTION, context), [])
                answer = short_answer(run.answer.claims, run.evidence)
                trail = [step.model_dump(mode="json") for step in run.trail]
            ms = round((time.perf_counter() - began) * 1000, 1)
            metrics = scores(answer, question.gold, question.category)
            outcomes.append(MemoryOutcome(question, answer, metrics, ms, trail))
            progress(pipeline, done, len(questions))
    return outcomes


def evaluate_memory(
    folder: Path,
    pipeline: str,
    settings: Settings,
    progress: Progress,
    *,
    against: str | None = None,
    limit: int | None = None,
    every_turn: bool = False,
) -> tuple[dict[str, Any], list[MemoryOutcome]]:
    """Return the figures as `carrel eval memory --json` prints them, and every question's run."""
    rule = "the pipeline must be one that asks a dialogue"
    chosen = checked_name(pipeline, PIPELINES, rule)
    other = checked_name(against, PIPELINES, rule) if against is not None else None
    turns = read_turns(folder)
    questions = read_questions(folder, limit, turns)
    opened, counts = build_memory(turns, settings, progress, every_turn=every_turn)
    mine = run_memory(opened, questions, chosen, progress)
    result = {
        "dataset": folder.resolve().name,
        "pipeline": chosen,
        "confidence": CONFIDENCE,
        "notes": counts,
        **_figures(mine, settings),
    }
    if other is not None:
        # Plain retrieval is over turns, whatever of them memory keeps.
        whole = opened
        if other == "retrieval" and not every_turn:
            whole, _ = build_memory(turns, settings, progress, every_turn=True)
        theirs = run_memory(whole, questions, other, progress)
        result["against"] = {
            "pipeline": other,
            **_figures(theirs, settings),
            "differences": _differences(mine, theirs, settings),
        }
    return result, mine


def _figures(outcomes: Sequence[MemoryOutcome], settings: Settings) -> dict[str, Any]:
    times = [one.ms for one in outcomes]
    latency = {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)}
    by_category: dict[str, list[MemoryOutcome]] = defaultdict(list)
    for one in outcomes:
        by_category[one.question.category].append(one)
    return {
        **_means(outcomes, settings),
        "by_category": {name: _means(rows, settings) for name, rows in by_category.items()},
        "latency_ms": {name: round(value, 1) for name, value in latency.items()},
    }


def _means(outcomes: Sequence[MemoryOutcome], settings: Settings) -> dict[str, Any]:
    columns = [[one.metrics[name] for one in outcomes] for name in METRICS]
    bounds = intervals(columns, settings)
    return {
        "n": len(outcomes),
        "metrics": {
            name: round(sum(column) / len(column), DIGITS)
            for name, column in zip(METRICS, columns, strict=True)
        },
        "ci": {name: round_interval(b) for name, b in zip(METRICS, bounds, strict=True)},
    }


def _differences(
    mine: Sequence[MemoryOutcome], theirs: Sequence[MemoryOutcome], settings: Settings
) -> dict[str, Any]:
    pairs = list(zip(mine, theirs, strict=True))
    found = {"f1": compare_pairs(((a.metrics["f1"], b.metrics["f1"]) for a, b in pairs), settings)}
    for name in dict.fromkeys(one.question.category for one in mine):
        rows = [(a.metrics["f1"], b.metrics["f1"]) for a, b in pairs if a.question.category == name]
        found[name] = compare_pairs(rows, settings)
    return difference_json({name: one for name, one in found.items() if one is not None})
