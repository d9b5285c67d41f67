"""`carrel eval`: measure retrieval on judged queries, compare pipelines, rate answers by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.arguments import Json, Set, named_path
from cli.evaluation.figures import print_result
from cli.options import settings_from
from cli.terminal.output import print_json
from cli.terminal.progress import StageBars
from core.distribution import require_extra
from evals.dataset import read_dataset
from evals.retrieval import checked_pair, evaluate

DatasetDir = Annotated[
    Path,
    typer.Argument(
        help="Folder with corpus.jsonl, queries.jsonl and qrels.tsv.",
        show_default=False,
        parser=named_path,
        metavar="DATASET_DIR",
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Only the first N judged queries.")
]
AllowMissing = Annotated[
    bool,
    typer.Option("--allow-missing", help="Count judged documents the corpus lacks as not found."),
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
    against: Annotated[
        str | None,
        typer.Option("--against", help="Another pipeline, for a paired comparison."),
    ] = None,
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
