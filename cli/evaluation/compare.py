"""`carrel eval compare`: pipelines side by side, as a report with tables and charts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Json, Set, named_path
from cli.evaluation.figures import table
from cli.options import settings_from
from cli.terminal.output import print_json, stdout, warn
from cli.terminal.progress import StageBars
from core.distribution import require_extra
from core.settings import Settings
from evals.compare import Section, checked_pipelines, section_json
from evals.compare import compare as run_comparison
from evals.dataset import read_dataset
from evals.files import checked_out, write_files
from evals.report import report
from evals.report_html import html_report
from evals.report_markdown import markdown_report
from evals.statistics import CONFIDENCE
from evals.tables import short_table

SUFFIXES = (".md", ".html")


def compare(
    dataset_dirs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv.",
            show_default=False,
            parser=named_path,
            metavar="DATASET_DIR",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", help="Report: NAME.md or NAME.html.", parser=named_path, metavar="<path>"
        ),
    ],
    pipelines: Annotated[
        str, typer.Option("--pipelines", help="Names with commas between; the first is the base.")
    ] = "classic,agentic",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N judged queries of each.")
    ] = None,
    allow_missing: Annotated[
        bool,
        typer.Option(
            "--allow-missing", help="Count judged documents the corpus lacks as not found."
        ),
    ] = False,
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
    _print(sections, out)


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


def _print(sections: list[Section], out: Path) -> None:
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
