"""Measure one pipeline on a data set, or compare several query by query, as one JSON object."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.errors import CallerError
from core.settings import Settings
from evals.corpus import Corpus, Progress, build_corpus
from evals.dataset import Dataset, listed
from evals.runner import checked_pipeline, run_queries
from evals.summary import (
    CONFIDENCE,
    DIGITS,
    LATENCY,
    Difference,
    Interval,
    Measured,
    QueryOutcome,
    compared,
    difference_json,
    distances,
    figures,
    group_figures,
    in_group,
    language_of,
    languages,
    latency,
    measured,
    rank_groups,
    type_of,
    types,
)


def checked_pair(
    pipeline: str, against: str | None, checked: Callable[[str], str] = checked_pipeline
) -> None:
    """Raise CallerError unless the pipelines pass `checked` and differ."""
    for name in (pipeline, *([against] if against is not None else [])):
        checked(name)
    if pipeline == against:
        raise CallerError(
            "a pipeline is compared with another one", value=against, hint="name another --against"
        )


def evaluate(
    dataset: Dataset,
    pipeline: str,
    settings: Settings,
    progress: Progress,
    *,
    against: str | None = None,
) -> dict[str, Any]:
    """Return the figures of a pipeline, as `carrel eval retrieval --json` prints them."""

    def shown(part: Measured) -> dict[str, Any]:
        return figures(part, part.intervals(settings))

    checked_pair(pipeline, against)
    corpus = build_corpus(dataset, settings, progress)
    run = run_queries(dataset, corpus, pipeline, progress)
    mine = measured(run)
    result: dict[str, Any] = {
        "dataset": dataset.name,
        "pipeline": pipeline,
        "confidence": CONFIDENCE,
        **shown(mine),
        LATENCY: latency(mine.runs),
        **group_figures(mine.runs, lambda keep: shown(mine.part(keep))),
    }
    warnings = [*corpus_warnings(dataset, corpus), *run.warnings]
    if against is not None:
        other = run_queries(dataset, corpus, against, progress)
        theirs = measured(other)
        result["against"] = {
            "pipeline": against,
            **shown(theirs),
            LATENCY: latency(theirs.runs),
            "differences": difference_json(compared(mine, theirs, settings)),
        }
        warnings += [warning for warning in other.warnings if warning not in warnings]
    return {**result, "notes": run.notes, "warnings": warnings}


def corpus_warnings(dataset: Dataset, corpus: Corpus) -> list[str]:
    """Return what is to be known of the documents: unknown, or left out by ingest."""
    warnings = list(dataset.warnings)
    if corpus.left_out:
        warning = "documents that ingest left out count as not found"
        why = f"; the first reason: {corpus.reasons[0]}" if corpus.reasons else ""
        warnings.append(f"{warning}: {listed(corpus.left_out)}{why}")
    return warnings


ALL = "all data sets"


@dataclass(frozen=True)
class ComparedGroup:
    """Hold what the pipelines did on the same queries; the first pipeline is the baseline.

    `intervals` has one entry per pipeline; `differences` are a pipeline's figures minus the
    baseline's, by pipeline and metric.
    """

    name: str
    pipelines: list[Measured]
    intervals: list[dict[str, Interval]]
    differences: dict[str, dict[str, Difference]]

    @property
    def n(self) -> int:
        """Return the number of queries."""
        return len(self.pipelines[0].runs)


@dataclass(frozen=True)
class Section:
    """Hold the comparison on one data set, whole and by group."""

    whole: ComparedGroup
    by_type: list[ComparedGroup]
    by_language: list[ComparedGroup]
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def checked_pipelines(text: str) -> list[str]:
    """Return the pipelines of a list with commas between; at least two, each once."""
    names = [checked_pipeline(name.strip()) for name in text.split(",") if name.strip()]
    if len(names) < 2 or len(set(names)) < len(names):
        raise CallerError(
            "a comparison needs two or more different pipelines",
            value=text,
            hint="for example --pipelines classic,agentic",
        )
    return names


def compare(
    datasets: Sequence[Dataset], pipelines: Sequence[str], settings: Settings, progress: Progress
) -> list[Section]:
    """Run every pipeline on every data set; several data sets get a section of all in front."""
    names = [dataset.name for dataset in datasets]
    if len(set(names)) < len(names):
        raise CallerError(
            "the data sets must have different names",
            value=", ".join(names),
            hint="name each folder once, and rename one of two folders with the same name",
        )
    sections = [_section_of(dataset, pipelines, settings, progress) for dataset in datasets]
    if len(sections) > 1:
        sections.insert(0, _together(sections, settings))
    return sections


def _section_of(
    dataset: Dataset, pipelines: Sequence[str], settings: Settings, progress: Progress
) -> Section:
    corpus = build_corpus(dataset, settings, _named(dataset.name, progress))
    found, warnings, notes = [], corpus_warnings(dataset, corpus), []
    for name in pipelines:
        run = run_queries(dataset, corpus, name, _named(dataset.name, progress), distances=True)
        found.append(measured(run))
        warnings += [warning for warning in run.warnings if warning not in warnings]
        notes += [f"{name}: {note}" for note in run.notes]
    return _section(dataset.name, found, settings, warnings, notes)


def _named(name: str, progress: Progress) -> Progress:
    return lambda stage, done, total: progress(f"{name} {stage}", done, total)


def _together(sections: Sequence[Section], settings: Settings) -> Section:
    pipelines = []
    for place, first in enumerate(sections[0].whole.pipelines):
        same = [section.whole.pipelines[place] for section in sections]
        runs = [run for one in same for run in one.runs]
        rows = [row for one in same for row in one.rows]
        pipelines.append(Measured(first.pipeline, runs, rows))
    return _section(ALL, pipelines, settings, [], [])


def _section(
    name: str,
    pipelines: list[Measured],
    settings: Settings,
    warnings: list[str],
    notes: list[str],
) -> Section:
    runs = pipelines[0].runs
    kinds = types(runs)

    def parts(names: list[str], of: Callable[[QueryOutcome], str]) -> list[ComparedGroup]:
        keeps = [(group, in_group(of, group)) for group in names]
        return [
            _part(group, [one.part(keep) for one in pipelines], settings) for group, keep in keeps
        ]

    return Section(
        whole=_part(name, pipelines, settings),
        by_type=parts(kinds if len(kinds) > 1 else [], type_of),
        by_language=parts(languages(runs), language_of),
        warnings=warnings,
        notes=notes,
    )


def _part(name: str, pipelines: list[Measured], settings: Settings) -> ComparedGroup:
    baseline = pipelines[0]
    others = {one.pipeline: compared(one, baseline, settings) for one in pipelines[1:]}
    return ComparedGroup(name, pipelines, [one.intervals(settings) for one in pipelines], others)


def section_json(section: Section) -> dict[str, Any]:
    """Return a section as `carrel eval compare --json` prints it."""
    overall = section.whole
    found = {"dataset": overall.name, **_part_json(overall)}
    for one in overall.pipelines:
        found["pipelines"][one.pipeline] |= {
            "first_relevant": rank_groups(one.runs),
            "distance": _distance_json(one),
        }
    for key, parts in (("by_type", section.by_type), ("by_language", section.by_language)):
        if parts:
            found[key] = {part.name: _part_json(part) for part in parts}
    return {**found, "notes": section.notes, "warnings": section.warnings}


def _part_json(part: ComparedGroup) -> dict[str, Any]:
    return {
        "n": part.n,
        "pipelines": {
            one.pipeline: {**figures(one, bounds), LATENCY: latency(one.runs)}
            for one, bounds in zip(part.pipelines, part.intervals, strict=True)
        },
        "differences": {name: difference_json(found) for name, found in part.differences.items()},
    }


def _distance_json(of: Measured) -> dict[str, Any]:
    relevant, other = distances(of.runs)
    return {
        name: {"n": len(values), "median": round(statistics.median(values), DIGITS)}
        if values
        else {"n": 0, "median": None}
        for name, values in (("relevant", relevant), ("not_relevant", other))
    }
