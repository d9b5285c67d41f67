"""Write a report with the tables of every section; docs/evals/multihop.md has the main ones."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from benchmarks.multihop_measure import SECTIONS, Found
from benchmarks.multihop_tables import (
    answer_differences,
    answer_tables,
    decompositions_table,
    kinds_table,
    overhead_tables,
    ranking_table,
    table,
)
from core.settings import Settings
from evals.runner import AGENTIC
from evals.summary import differences

TOGETHER = ("musique_small", "hotpotqa_small")
TARGET = "recall@5"
NOT_MEASURED = "*Not measured yet.*"
TITLES = {
    "retrieval": "Evidence found",
    "parity": "Questions that need one search",
    "kinds": "Which questions are planned",
    "decompositions": "Plans beside the gold decompositions",
    "answers": "Answers",
    "overhead": "What planning and execution cost",
}

Sets = dict[str, Found]


def report(found: dict[str, Sets], settings: Settings) -> str:
    """Return the tables of every section; one that was not measured says so."""
    parts = ["# Questions that need several searches"]
    for section in SECTIONS:
        sets = found.get(section, {})
        parts.append(f"## {TITLES[section]}")
        parts += [*_section(section, sets, settings), *_remarks(sets)] if sets else [NOT_MEASURED]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _section(section: str, sets: Sets, settings: Settings) -> Iterator[str]:
    if section in ("retrieval", "parity"):
        yield ranking_table(sets)
        yield from together(sets, settings)
    elif section == "kinds":
        yield kinds_table(sets)
    elif section == "decompositions":
        yield decompositions_table(sets)
    elif section == "answers":
        yield from answer_tables(sets)
        yield answer_differences(sets)
    else:
        yield from overhead_tables(sets)


def together(sets: Sets, settings: Settings) -> Iterator[str]:
    """Yield the mean recall@5 of the two sets whose questions need one search after another."""
    if any(name not in sets for name in TOGETHER):
        return
    chosen = [sets[name] for name in TOGETHER]
    rows = []
    for other in chosen[0]["differences"]:
        both = (AGENTIC, other)
        means = [fmean(found["metrics"][name][TARGET] for found in chosen) for name in both]
        columns = [
            [value for found in chosen for value in found["columns"][name][TARGET]] for name in both
        ]
        pooled = differences([columns[0]], [columns[1]], settings)[0]
        low, high = pooled.interval or (pooled.mean, pooled.mean)
        rows.append(
            [other, *(f"{mean:.3f}" for mean in means), f"{means[0] - means[1]:+.3f}"]
            + [f"{pooled.mean:+.3f} ({low:+.3f}, {high:+.3f})", f"{pooled.p:.4f}"]
            + [str(len(columns[0]))]
        )
    yield f"Mean {TARGET} of {' and '.join(TOGETHER)}; the last three columns pool their queries:"
    headers = ["against", AGENTIC, "the other", "gain", "gain, pooled", "p", "n"]
    yield table(headers, rows, labels=1)


def _remarks(sets: Sets) -> Iterator[str]:
    made_with = {name: found["made_with"] for name, found in sets.items()}
    cut = [
        f"{name} ({made_with[name]['limit']})"
        for name, found in sets.items()
        if made_with[name]["limit"] and found.get("n") == made_with[name]["limit"]
    ]
    changed = sorted({change for made in made_with.values() for change in made["set"]})
    said = [
        f"- {name}: {warning}"
        for name, found in sets.items()
        for warning in found.get("warnings", [])
    ]
    if cut:
        yield f"The first questions only: {', '.join(cut)}."
    if changed:
        yield f"Settings changed: {', '.join(f'`{change}`' for change in changed)}."
    if said:
        yield "\n".join(said)
