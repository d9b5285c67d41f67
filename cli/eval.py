"""`carrel eval`: measure retrieval on judged queries, compare pipelines, rate answers by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import eval_ers
from cli.eval_answers import answers
from cli.eval_compare import compare
from cli.options import Json, Set, named_path, settings_from
from cli.output import print_json

app = typer.Typer(
    name="eval",
    help="Measure on your own documents and queries how well they are found and answered.",
    rich_markup_mode=None,
)

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


@app.command("retrieval")
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
    from cli.progress import StageBars
    from evals.dataset import read_dataset
    from evals.retrieval import checked_pair, evaluate

    settings = settings_from(None, changes)
    checked_pair(pipeline, against)
    dataset = read_dataset(dataset_dir, limit=limit, allow_missing=allow_missing)
    with StageBars(as_json) as progress:
        result = evaluate(dataset, pipeline, settings, progress, against=against)
    if as_json:
        print_json(result)
        return
    from cli.eval_output import print_result

    print_result(result)


app.command("answers")(answers)
app.command("compare")(compare)
app.add_typer(eval_ers.app, name="ers")
