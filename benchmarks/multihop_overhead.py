"""What planning and execution cost beside searching, judging and models, per operation.

The clock runs in this process, around calls that may run side by side, so a share of a run's time
is the length of the union of their intervals and nothing is counted twice:

- *searching*: `Toolbox.run`, the tool calls;
- *models*: embedding outside of them, a re-ranker, calls of the chat model;
- *judging*: `grade` and `answer` of the reasoner.

A run's overhead is its wall-clock time less the union of all three: understanding the question,
proposing, checking and compiling the plan, choosing tools, extracting values, composing queries,
joining hits, deciding what comes next, verifying the answer, LangGraph, and keeping the record.
"With judging" is the time less searching and models alone. Both are divided by the operations of
the run: those of its plan, or its searches where it tells no plan.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from core.settings import Settings
from core.trace import Step
from evals.answers import AnswerOutcome, ask_one
from evals.corpus import AUTH, COLLECTION, Progress, build_corpus, open_corpus
from evals.dataset import Dataset
from evals.runner import warm_up
from evals.summary import percentile
from graph.context import PipelineName
from models.chat.guarded import GuardedChat
from models.embeddings import CachedEmbedder
from models.reranker import CrossEncoderReranker
from reasoning.llm.reasoner import LlmReasoner
from reasoning.rules.reasoner import RulesReasoner
from tools.toolbox import Toolbox

SEARCHING, MODELS, JUDGING = "searching", "models", "judging"
WATCHED: tuple[tuple[type[Any], str, str], ...] = (
    (Toolbox, "run", SEARCHING),
    (CachedEmbedder, "embed_query", MODELS),
    (CachedEmbedder, "embed_documents", MODELS),
    (CrossEncoderReranker, "score", MODELS),
    (GuardedChat, "complete", MODELS),
    (RulesReasoner, "grade", JUDGING),
    (RulesReasoner, "answer", JUDGING),
    (LlmReasoner, "grade", JUDGING),
    (LlmReasoner, "answer", JUDGING),
)
TURNS = {"backtrack": "backtracks", "replan": "replans"}  # counted by the stop condition
SHARES = {"p50": 0.5, "p95": 0.95}

Span = tuple[str, float, float]  # what was done, from when to when, in seconds


def overhead(
    dataset: Dataset, settings: Settings, pipeline: PipelineName, progress: Progress
) -> dict[str, Any]:
    """Ask all questions and return what planning and execution took, as JSON has it."""
    corpus = build_corpus(dataset, settings, progress)
    runs: list[dict[str, Any]] = []
    with open_corpus(corpus.settings) as session, watching() as spans:
        warm_up(dataset, lambda text: session.ask(text, AUTH, COLLECTION, pipeline=pipeline))
        for done, query in enumerate(dataset.queries, start=1):
            spans.clear()
            asked = ask_one(session, query, pipeline)
            if asked.ms is not None:
                runs.append(one_run(asked, spans))
            progress(f"{pipeline} overhead", done, len(dataset.queries))
    return summed(runs)


@contextmanager
def watching() -> Iterator[list[Span]]:
    """Note when the watched methods are at work, for as long as the context is open."""
    spans: list[Span] = []
    with ExitStack() as stack:
        for owner, name, kind in WATCHED:
            timed = _timed(getattr(owner, name), kind, spans)
            stack.enter_context(patch.object(owner, name, timed))
        yield spans


def _timed(method: Callable[..., Any], kind: str, spans: list[Span]) -> Callable[..., Any]:
    def run(*given: Any, **named: Any) -> Any:
        began = time.perf_counter()
        try:
            return method(*given, **named)
        finally:
            spans.append((kind, began, time.perf_counter()))

    return run


def covered_ms(spans: Sequence[Span], kinds: Sequence[str]) -> float:
    """Return how long anything of these kinds was at work, in milliseconds."""
    total, until = 0.0, float("-inf")
    for _, began, ended in sorted(
        (span for span in spans if span[0] in kinds), key=lambda span: span[1]
    ):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total * 1000


def one_run(asked: AnswerOutcome, spans: Sequence[Span]) -> dict[str, Any]:
    """Return the figures of one run."""
    wall = asked.ms or 0.0
    operations = asked.operations
    searches = sum(1 for step in asked.trail if step.node == "grade_documents")
    return {
        "wall_ms": wall,
        "searching_ms": covered_ms(spans, [SEARCHING]),
        "overhead_ms": wall - covered_ms(spans, [SEARCHING, MODELS, JUDGING]),
        "with_judging_ms": wall - covered_ms(spans, [SEARCHING, MODELS]),
        "operations": searches if operations is None else operations,
        "planned": operations is not None,
        "stop_reason": asked.stop_reason,
        "decisions": decisions(asked.trail),
        "turns": turns(asked.trail),
        "nodes_ms": nodes_ms(asked.trail),
    }


def decisions(trail: Sequence[Step]) -> list[str]:
    """Return what the stop condition decided each time."""
    return [step.decision for step in trail if step.node == "stop_condition"]


def turns(trail: Sequence[Step]) -> dict[str, int]:
    """Return how often the values of a slot were undone and the plan was extended."""
    counted = [step.arguments for step in trail if step.node == "stop_condition"]
    return {
        word: max((int(held.get(name, 0)) for held in counted), default=0)
        for word, name in TURNS.items()
    }


def nodes_ms(trail: Sequence[Step]) -> dict[str, float]:
    """Return the milliseconds of each node's steps; those that ran side by side add up."""
    total: dict[str, float] = {}
    for step in trail:
        total[step.node] = total.get(step.node, 0.0) + step.ms
    return total


def summed(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return medians and 95th percentiles over the runs, and what they decided."""
    if not runs:
        return {"n": 0}
    decided = Counter(decision for run in runs for decision in run["decisions"])
    nodes = dict.fromkeys((name for run in runs for name in run["nodes_ms"]), 0.0)
    for run in runs:
        for name, ms in run["nodes_ms"].items():
            nodes[name] += ms / len(runs)
    return {
        "n": len(runs),
        "with_plan": sum(1 for run in runs if run["planned"]),
        "operations": _shares([run["operations"] for run in runs]),
        **{name: _shares([run[name] for run in runs]) for name in ("wall_ms", "searching_ms")},
        "overhead_ms_per_operation": _per_operation(runs, "overhead_ms"),
        "with_judging_ms_per_operation": _per_operation(runs, "with_judging_ms"),
        "stop_reasons": dict(Counter(run["stop_reason"] for run in runs).most_common()),
        "decisions": dict(decided.most_common()),
        "runs_that": {word: sum(1 for run in runs if run["turns"][word]) for word in TURNS},
        "mean_ms_of_nodes": {
            name: round(ms, 2) for name, ms in sorted(nodes.items(), key=lambda item: -item[1])
        },
    }


def _per_operation(runs: Sequence[dict[str, Any]], name: str) -> dict[str, float]:
    return _shares([run[name] / max(1, run["operations"]) for run in runs])


def _shares(values: Sequence[float]) -> dict[str, float]:
    return {key: round(percentile(values, share), 2) for key, share in SHARES.items()}
