"""The page of a trajectory evaluation: causes as bars, every case, and the trace of each."""

from __future__ import annotations

from typing import Any

from core.errors import shorten
from display.html import Markup, bar, element, escaped, folded, joined, line, table
from display.runs import run_view, steps_view, view_page
from evals.trajectories import TrajectoryRuns

NOTHING = "–"
FIGURES = {"value", "n"}
WIDTH = 300  # pixels of the longest bar, chosen


def trajectory_page(runs: TrajectoryRuns, result: dict[str, Any]) -> str:
    """Return the page; it needs no other file."""
    title = f"Trajectories: {result['passed']} of {result['n']} cases pass"
    body = joined(
        element("h1", {}, escaped(title)),
        _causes(result["causes"]),
        _measures(result),
        _cases(result["cases"]),
        element("h2", {}, escaped("Traces")),
        *_traces(runs, result["cases"]),
    )
    return view_page(title, body)


def _causes(causes: dict[str, int]) -> Markup:
    if not causes:
        return element("p", {}, escaped("No case fails."))
    most = max(causes.values())
    rows = [
        [
            escaped(name.replace("_", " ")),
            bar(n / most, str(n), WIDTH),
        ]
        for name, n in causes.items()
    ]
    title = element("h2", {}, escaped("Causes of failures"))
    return joined(title, table(["cause", "failures"], rows, FIGURES))


def _measures(result: dict[str, Any]) -> Markup:
    rows = [
        [
            escaped(name),
            escaped(NOTHING if value is None else f"{value:.3f}"),
            escaped(result["counts"].get(name, "")),
        ]
        for name, value in result["metrics"].items()
    ]
    title = element("h2", {}, escaped("Measures"))
    return joined(title, table(["measure", "value", "n"], rows, FIGURES))


def _cases(cases: list[dict[str, Any]]) -> Markup:
    rows = []
    for place, one in sorted(enumerate(cases), key=lambda item: item[1]["passed"]):
        step = one["step"]
        at = f"{step['number']} {step['node']}" if step else ""
        name = escaped(one["id"])
        linked = element("a", {"href": f"#case-{place}"}, name) if one["run_id"] else name
        cells = [line(one["question"]), one["stop_reason"], one["cause"] or "", at]
        passed = escaped("yes" if one["passed"] else "no")
        rows.append([linked, *map(escaped, cells), passed])
    title = element("h2", {}, escaped("Cases"))
    heads = ["case", "question", "ended", "cause", "step", "passed"]
    return joined(title, table(heads, rows, FIGURES))


def _traces(runs: TrajectoryRuns, cases: list[dict[str, Any]]) -> list[Markup]:
    found = []
    for place, (one, row) in enumerate(zip(runs.asked, cases, strict=True)):
        if one.run is None:
            continue
        why = row["shown_by"]
        cause = [element("p", {}, escaped(f"{row['cause']}: {why}"))] if why else []
        shown = joined(*cause, run_view(one.run).body, steps_view(one.run).body)
        title = f"{one.case.id}: {shorten(one.case.question, 100)}"
        part = folded(title, shown, opened=False)
        found.append(element("section", {"id": f"case-{place}"}, part))
    return found
