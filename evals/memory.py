"""Ask what dialogues tell: from memory, by plain retrieval over their turns, and without either."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from app.session import Session
from core.errors import CallerError
from core.recall import NOTE
from core.settings import Settings
from core.trace import RunRecord
from core.types import Claim, Evidence
from evals.corpus import COLLECTION, Progress, open_corpus
from evals.dialogues import (
    MemoryQuestion,
    build_memory,
    read_questions,
    read_turns,
    user_of,
)
from evals.memory_scores import METRICS, NOT_MENTIONED, scores
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


def checked_memory_pipeline(name: str) -> MemoryPipeline:
    """Return the name of what answers, or say which there are."""
    for known in PIPELINES:
        if name == known:
            return known
    raise CallerError(
        "the pipeline must be one that asks a dialogue",
        value=name,
        hint=f"choose from {', '.join(PIPELINES)}",
    )


def ask_memory(session: Session, question: MemoryQuestion, pipeline: MemoryPipeline) -> RunRecord:
    """Put a question to the graph, with memory or without it."""
    auth = user_of(question.dialogue)
    context = session.context(auth, COLLECTION, recalls=pipeline == "memory")
    return session.asking.alone(ActiveRun(question.text, COLLECTION, context), [])


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
                run = ask_memory(session, question, pipeline)
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
    chosen = checked_memory_pipeline(pipeline)
    other = checked_memory_pipeline(against) if against is not None else None
    turns, questions = read_turns(folder), read_questions(folder, limit)
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
    """Compare two pipelines question by question, whole and by category of F1."""
    pairs = list(zip(mine, theirs, strict=True))
    found = {"f1": compare_pairs(((a.metrics["f1"], b.metrics["f1"]) for a, b in pairs), settings)}
    for name in dict.fromkeys(one.question.category for one in mine):
        rows = [(a.metrics["f1"], b.metrics["f1"]) for a, b in pairs if a.question.category == name]
        found[name] = compare_pairs(rows, settings)
    return difference_json({name: one for name, one in found.items() if one is not None})
