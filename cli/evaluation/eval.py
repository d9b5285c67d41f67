"""`carrel eval retrieval`, `answers`, `compare`: how well texts are found, questions answered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from cli.arguments import Json, Set, path_argument, path_option
from cli.options import settings_from
from cli.terminal.output import checked_out, print_json, stdout, warn, write_files
from cli.terminal.progress import StageBars
from core.distribution import require_extra
from core.settings import Settings
from evals.answers import checked_answering, evaluate_answers
from evals.charts import short_table
from evals.compare import Section, checked_pair, checked_pipelines, evaluate, section_json
from evals.compare import compare as run_comparison
from evals.dataset import read_dataset
from evals.report import html_report, markdown_report, report
from evals.summary import CONFIDENCE

FOUND = {
    "precision@5": "P@5",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "mrr": "MRR",
    "ndcg@5": "nDCG@5",
    "ndcg@10": "nDCG@10",
    "full_support@10": "All@10",
}
ANSWERED = {
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
NOTHING = "–"
WHOLE = 100  # from here on an amount is shown without a fraction; chosen


def print_result(result: dict[str, Any]) -> None:
    """Print what `carrel eval retrieval` or `answers` found."""
    out = stdout()
    answers = "spent" in result
    one, short = ("question", ANSWERED) if answers else ("query", FOUND)
    many = "questions" if answers else "queries"
    out.print(
        f"[bold]{escape(result['dataset'])}[/bold] · {result['pipeline']} · {result['n']} {many}"
    )
    out.print(_metrics_table(result))
    for key, title in (
        ("by_type", "type" if answers else "query type"),
        ("by_language", "language"),
    ):
        if key in result:
            out.print(_group_table(result[key], title, short))
    _print_effort(result)
    if "against" in result:
        out.print()
        out.print(f"against [bold]{result['against']['pipeline']}[/bold], {one} by {one}")
        out.print(against_table(result, short if answers else {}))
        _print_effort(result["against"])
    for note in result["notes"]:
        out.print(f"[dim]{escape(note)}[/dim]")
    for warning in result["warnings"]:
        warn(warning)


def table(*headers: str) -> Table:
    """Return an empty table: names on the left, figures on the right."""
    made = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for place, header in enumerate(headers):
        justify: Any = "right" if place else "left"
        made.add_column(header, justify=justify, overflow="fold")
    return made


def _metrics_table(result: dict[str, Any]) -> Table:
    counts = result.get("counts")
    head = ("metric", result["pipeline"], f"{result['confidence']:.0%} interval")
    rows = table(*head, *(["n"] if counts else []))
    for metric, value in result["metrics"].items():
        cells = (metric, _figure(value), interval_text(result["ci"][metric]))
        rows.add_row(*cells, *([str(counts[metric])] if counts else []))
    return rows


def against_table(result: dict[str, Any], titles: Mapping[str, str]) -> Table:
    """Return the paired differences of all metrics, which `titles` may call something shorter."""
    against = result["against"]
    sure = f"{result['confidence']:.0%} interval"
    rows = table(
        "metric", result["pipeline"], against["pipeline"], "gain", sure, "p", "win/tie/loss"
    )
    for metric, gap in against["differences"].items():
        if metric in result["metrics"]:
            rows.add_row(
                titles.get(metric, metric),
                f"{result['metrics'][metric]:.3f}",
                f"{against['metrics'][metric]:.3f}",
                f"{gap['difference']:+.3f}",
                interval_text(gap["ci"], signed=True),
                f"{gap['p']:.4f}",
                f"{gap['wins']}/{gap['ties']}/{gap['losses']}",
            )
    return rows


def _group_table(groups: dict[str, Any], title: str, short: Mapping[str, str]) -> Table:
    rows = table(title, "n", *short.values())
    for name, group in groups.items():
        values = [_figure(group["metrics"][metric]) for metric in short]
        rows.add_row(escape(name), str(group["n"]), *values)
    return rows


def _print_effort(result: dict[str, Any]) -> None:
    """Print what the runs spent, where it was measured, and how long they took."""
    out = stdout()
    if "spent" in result:
        rows = table("per question", "mean", "p50", "p95")
        for name, title in SPENT.items():
            spent = result["spent"][name]
            if spent and spent["mean"]:
                rows.add_row(title, *(_amount(spent[key]) for key in ("mean", "p50", "p95")))
        out.print(rows)
    times = result["latency_ms"]
    if times["p50"] is not None:
        out.print(
            f"latency of {result['pipeline']}: p50 {times['p50']:.1f} ms, p95 {times['p95']:.1f} ms"
        )
    if "stop_reasons" in result:
        ended = ", ".join(f"{name} {count}" for name, count in result["stop_reasons"].items())
        out.print(f"ended: {ended}")
    if result.get("degraded"):
        out.print(f"the rules decided for the model in {result['degraded']} questions")


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= WHOLE else f"{value:.3g}"


def _figure(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def interval_text(interval: list[float] | None, *, signed: bool = False) -> str:
    """Return "0.412, 0.530", or a dash where there is none."""
    if interval is None:
        return NOTHING
    sign = "+" if signed else ""
    return ", ".join(f"{end:{sign}.3f}" for end in interval)


DatasetDir = Annotated[
    Path, path_argument("DATASET_DIR", "Folder with corpus.jsonl, queries.jsonl and qrels.tsv.")
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N judged queries.")
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Count judged documents the corpus lacks as not found."),
]

Against = Annotated[
    str | None, typer.Option("--against", help="Another pipeline, for a paired comparison.")
]


def retrieval(
    dataset_dir: DatasetDir,
    pipeline: Annotated[
        str,
        typer.Option(
            "--pipeline", help="hybrid, linked, vector, keyword, classic, agentic or auto."
        ),
    ] = "hybrid",
    limit: Limit = None,
    against: Against = None,
    allow_missing: AllowMissing = False,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Measure how well a pipeline finds the judged documents of a data set."""
    require_extra("eval", "an evaluation")
    settings = settings_from(None, changes)
    checked_pair(pipeline, against)
    dataset = read_dataset(dataset_dir, limit=limit, allow_missing=allow_missing)
    with StageBars(as_json) as progress:
        result = evaluate(dataset, pipeline, settings, progress, against=against)
    if as_json:
        print_json(result)
        return
    print_result(result)


def answers(
    dataset_dir: DatasetDir,
    pipeline: Annotated[str, typer.Option("--pipeline", help="auto, agentic or classic.")] = "auto",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N questions.")
    ] = None,
    against: Against = None,
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
    print_result(result)


SUFFIXES = (".md", ".html")


def compare(
    dataset_dirs: Annotated[
        list[Path],
        path_argument("DATASET_DIR", "Folders with corpus.jsonl, queries.jsonl and qrels.tsv."),
    ],
    out: Annotated[Path, path_option("--out", "Report: NAME.md or NAME.html.")],
    pipelines: Annotated[
        str, typer.Option("--pipelines", help="Names with commas between; the first is the base.")
    ] = "classic,agentic",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N judged queries of each.")
    ] = None,
    allow_missing: AllowMissing = False,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Compare pipelines on data sets and write a report with tables and charts."""
    require_extra("eval", "an evaluation")
    settings = settings_from(None, changes)
    names = checked_pipelines(pipelines)
    checked_out(out, SUFFIXES)
    datasets = [
        read_dataset(folder, limit=limit, allow_missing=allow_missing) for folder in dataset_dirs
    ]
    with StageBars(as_json) as progress:
        sections = run_comparison(datasets, names, settings, progress)
    written = _write(out, sections, settings)
    if as_json:
        print_json(
            {
                "report": str(out),
                "files": [str(path) for path in written],
                "pipelines": names,
                "confidence": CONFIDENCE,
                "datasets": [section_json(section) for section in sections],
            }
        )
        return
    _print_sections(sections, out)


def _write(out: Path, sections: list[Section], settings: Settings) -> list[Path]:
    blocks = report(sections, settings)
    files: dict[Path, str] = {}
    if out.suffix.lower() == ".html":
        files[out] = html_report(blocks)
    else:
        text, drawings = markdown_report(blocks, out.stem)
        files = {out.with_name(name): svg for name, svg in drawings.items()} | {out: text}
    write_files(files)
    return list(files)


def _print_sections(sections: list[Section], out: Path) -> None:
    console = stdout()
    for section in sections:
        console.print(f"[bold]{escape(section.whole.name)}[/bold] · {section.whole.n} queries")
        found = short_table(section.whole)
        drawn: Any = table(*found.headers)
        for row in found.rows:
            drawn.add_row(*map(escape, row))
        console.print(drawn)
        for warning in section.warnings:
            warn(warning)
    console.print(f"report: {escape(str(out))}")
