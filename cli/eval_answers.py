"""`carrel eval answers`: how well questions are answered, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import Json, Set, named_path, settings_from
from cli.output import print_json


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
    from cli.progress import StageBars
    from evals.answering import checked_answering
    from evals.answers import evaluate_answers
    from evals.dataset import read_dataset
    from evals.retrieval import checked_pair

    settings = settings_from(None, changes)
    checked_pair(pipeline, against, checked_answering)
    dataset = read_dataset(dataset_dir, limit=limit, allow_missing=allow_missing, judged_only=False)
    with StageBars(as_json) as progress:
        result = evaluate_answers(dataset, pipeline, settings, progress, against=against)
    if as_json:
        print_json(result)
        return
    from cli.eval_answers_output import print_answers

    print_answers(result)
