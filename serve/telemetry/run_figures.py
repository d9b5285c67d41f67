"""Figures of finished runs: what nodes and tools took, why runs ended, how near evidence was."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client import Counter as Counted

from core.trace import RunRecord
from retrievers.fusion import VECTOR


class Recent:
    """Count all values and keep the latest; bounded, so that a long life costs no memory."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self._values: deque[float] = deque(maxlen=size)

    def add(self, value: float) -> None:
        """Take a value; callers of several threads hold a lock."""
        self.count += 1
        self._values.append(value)

    def percentiles(self, wanted: Iterable[int]) -> dict[int, float | None]:
        """Return percentiles of the latest values (nearest rank), None when there are none."""
        ordered = sorted(self._values)
        last = len(ordered) - 1
        return {
            percent: round(ordered[round(last * percent / 100)], 3) if ordered else None
            for percent in wanted
        }


OTHER = "other"
DISTANCES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # 1 - cosine


class RunFigures:
    """Sum up runs by node, tool and stop reason; no text, caller or tenant is in it."""

    def __init__(self, registry: CollectorRegistry, samples: int) -> None:
        """Begin at zero; percentiles are of the latest `samples` values."""
        self._samples = samples
        self._lock = threading.Lock()
        self._nodes: dict[str, Recent] = {}
        self._tools: dict[str, Recent] = {}
        self._reasons: Counter[str] = Counter()
        self._distances: Counter[float] = Counter()
        self._node = Histogram(
            "carrel_node_seconds", "Seconds of a node.", ["node"], registry=registry
        )
        self._tool = Histogram(
            "carrel_tool_seconds", "Seconds of a tool call.", ["tool"], registry=registry
        )
        self._answers = Counted("carrel_answers", "Runs.", ["stop_reason"], registry=registry)
        self._distance = Histogram(
            "carrel_best_distance",
            "Distance (1 - cosine) of the nearest evidence of a run.",
            registry=registry,
            buckets=DISTANCES,
        )

    def observe(self, run: RunRecord, bases: Mapping[str, str]) -> None:
        """Take the figures of one run; `bases` are the general tools behind a profile's names.

        A tool that is in neither is an "other" one: a plan may name anything.
        """
        reason = str(run.result.get("stop_reason", ""))
        distance = best_distance(run)
        self._answers.labels(reason).inc()
        if distance is not None:
            self._distance.observe(distance)
        with self._lock:
            self._reasons[reason] += 1
            if distance is not None:
                bucket = next((edge for edge in DISTANCES if distance <= edge), float("inf"))
                self._distances[bucket] += 1
            for step in run.trail:
                self._node.labels(step.node).observe(step.ms / 1000)
                self._latest(self._nodes, step.node).add(step.ms)
                if step.tool:
                    tool = bases.get(step.tool, OTHER)
                    self._tool.labels(tool).observe(step.ms / 1000)
                    self._latest(self._tools, tool).add(step.ms)

    def _latest(self, recent: dict[str, Recent], name: str) -> Recent:
        return recent.setdefault(name, Recent(self._samples))

    def figures(self) -> dict[str, Any]:
        """Return "nodes", "tools", "answers" and "distances" as JSON."""
        with self._lock:
            return {
                "nodes": {name: describe_times(one) for name, one in sorted(self._nodes.items())},
                "tools": {name: describe_times(one) for name, one in sorted(self._tools.items())},
                "answers": dict(sorted(self._reasons.items())),
                "distances": {
                    "more" if edge == float("inf") else f"{edge:g}": self._distances[edge]
                    for edge in (*DISTANCES, float("inf"))
                },
            }


def describe_times(recent: Recent) -> dict[str, Any]:
    """Return how many there were, and the milliseconds of the latest."""
    found = recent.percentiles((50, 95))
    return {"count": recent.count, "p50_ms": found[50], "p95_ms": found[95]}


def best_distance(run: RunRecord) -> float | None:
    """Return 1 - cosine of the nearest evidence of a run, None when vectors found none."""
    evidence = run.result.get("evidence") or []
    cosines = [item["scores"][VECTOR] for item in evidence if VECTOR in item.get("scores", {})]
    return 1.0 - max(cosines) if cosines else None
