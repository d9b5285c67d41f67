"""`carrel eval answers`: how well questions are answered, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from cli.arguments import Json, Set, named_path
from cli.evaluation.figures import against_table, interval_text, print_latency, print_remarks, table
from cli.options import settings_from
from cli.terminal.output import print_json, stdout
from cli.terminal.progress import StageBars
from evals.answering import checked_answering
from evals.answers import evaluate_answers
from evals.dataset import read_dataset
from evals.retrieval import checked_pair

NOTHING = "–"
WHOLE = 100  # from here on an amount is shown without a fraction
GROUPS = (("by_type", "type"), ("by_language", "language"))
SHORT = {
    "answered": "answered",
    "any_gold_cited": "any gold",
    "all_gold_cited": "all gold",
    "citation_precision": "precision",
    "answer_contained": "contained",
}
SPENT = {
    "tool_calls": "tool calls",
    "tokens": "tokens",
    "model_calls": "model calls",
    "cost": "cost",
    "operations": "operations",
}


def print_answers(result: dict[str, Any]) -> None:
    """Print what `carrel eval answers` found."""
    out = stdout()
    out.print(
        f"[bold]{escape(result['dataset'])}[/bold] · {result['pipeline']} · {result['n']} questions"
    )
    out.print(_metrics_table(result))
    for key, title in GROUPS:
        if key in result:
            out.print(_group_table(result[key], title))
    _print_effort(result)
    if "against" in result:
        out.print()
        out.print(f"against [bold]{result['against']['pipeline']}[/bold], question by question")
        out.print(against_table(result, SHORT))
        _print_effort(result["against"])
    print_remarks(result)


def _metrics_table(result: dict[str, Any]) -> Table:
    rows = table("metric", result["pipeline"], f"{result['confidence']:.0%} interval", "n")
    for metric, value in result["metrics"].items():
        bounds, count = result["ci"][metric], result["counts"][metric]
        rows.add_row(metric, _share(value), interval_text(bounds), str(count))
    return rows


def _group_table(groups: dict[str, Any], title: str) -> Table:
    rows = table(title, "n", *SHORT.values())
    for name, group in groups.items():
        values = [_share(group["metrics"][metric]) for metric in SHORT]
        rows.add_row(escape(name), str(group["n"]), *values)
    return rows


def _print_effort(result: dict[str, Any]) -> None:
    out = stdout()
    rows = table("per question", "mean", "p50", "p95")
    for name, title in SPENT.items():
        spent = result["spent"][name]
        if spent and spent["mean"]:
            rows.add_row(title, *(_amount(spent[key]) for key in ("mean", "p50", "p95")))
    out.print(rows)
    print_latency(result)
    ended = ", ".join(f"{name} {count}" for name, count in result["stop_reasons"].items())
    out.print(f"ended: {ended}")
    if result["degraded"]:
        out.print(f"the rules decided for the model in {result['degraded']} questions")


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= WHOLE else f"{value:.3g}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def answers(
    dataset_dir: Annotated[
        Path,
        typer.Argument(
            help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv.",
            show_default=False,
            parser=named_path,
            metavar="DATASET_DIR",
        ),
    ],
    pipeline: Annotated[str, typer.Option("--pipeline", help="auto, agentic or classic.")] = "auto",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N questions.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", help="Another pipeline, for a paired comparison."),
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Count judged documents the corpus lacks as not cited."
        ),
    ] = False,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Ask all questions of a data set and measure the answers, their citations and their cost."""
    settings = settings_from(None, changes)
    checked_pair(pipeline, against, checked_answering)
    dataset = read_dataset(dataset_dir, limit=limit, allow_missing=allow_missing, judged_only=False)
    with StageBars(as_json) as progress:
        result = evaluate_answers(dataset, pipeline, settings, progress, against=against)
    if as_json:
        print_json(result)
        return

    print_answers(result)
