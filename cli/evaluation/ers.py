"""`carrel eval ers`: answers rated by two people who do not know which pipeline gave them."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import CollectionName, Json, Set, path_argument, path_option
from cli.evaluation.eval import interval_text, table
from cli.options import CallerOptions, collections_of, opened, settings_from, with_options
from cli.server.running import shown
from cli.terminal.output import checked_out, print_json, stdout, warn, write_files
from cli.terminal.progress import StageBars
from core.errors import CallerError
from evals.corpus import AUTH, COLLECTION, build_corpus, open_corpus
from evals.dataset import read_dataset
from evals.ers import (
    SheetQuestion,
    answer_all,
    blind_sheet,
    checked_answering,
    rate,
    read_questions,
)
from evals.summary import CONFIDENCE

if TYPE_CHECKING:
    from app.session import Session

KeyFile = Annotated[
    Path | None,
    path_option("--key", "Key: which pipeline gave which answer; NAME.key.csv beside the sheet."),
]


def import_sheets(
    rater1: Annotated[Path, path_argument("RATER1.csv", "Rated sheet.")],
    rater2: Annotated[Path, path_argument("RATER2.csv", "Rated sheet.")],
    key: Annotated[Path, path_option("--key", "Key of the sheet.")],
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Read two rated sheets: how far the raters agree, and the score of each pipeline."""
    settings = settings_from(None, changes)
    result = rate((rater1, rater2), key, settings)
    if as_json:
        print_json(result)
        return
    _print(result)


def _print(result: dict[str, Any]) -> None:
    out = stdout()
    rows = table(
        "pipeline", "n", *map(escape, result["raters"]), "ERS", f"{CONFIDENCE:.0%} interval"
    )
    for name, means in [*result["pipelines"].items(), ("all", result["mean"])]:
        values = [f"{means[key]:.2f}" for key in ("rater1", "rater2", "ers")]
        rows.add_row(escape(name), str(means["n"]), *values, interval_text(means["ci"]))
    out.print(rows)
    shown = {
        name: "–" if value is None else f"{value:.3f}" for name, value in result["kappa"].items()
    }
    out.print(
        f"equal scores {result['agreement']:.0%} · Cohen's kappa {shown['plain']}"
        f" · quadratic weights {shown['quadratic']}"
    )
    for warning in result["warnings"]:
        warn(warning)


@with_options
def export_sheet(
    source: Annotated[
        Path,
        path_argument(
            "DATASET_OR_QUESTIONS",
            "Data set folder, or a file of questions for your own collection.",
        ),
    ],
    out: Annotated[Path, path_option("--out", "Sheet: NAME.csv.")],
    key: KeyFile = None,
    pipelines: Annotated[
        str, typer.Option("--pipelines", help="agentic and classic, with a comma between.")
    ] = "agentic,classic",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N questions.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Order of the items.", show_default="evaluation.seed"),
    ] = None,
    collection: CollectionName = None,
    *,
    options: CallerOptions,
    changes: Set = None,
) -> None:
    """Answer questions and write a sheet to rate; give the raters a copy each, never the key."""
    settings = settings_from(options.data, changes)
    names = checked_answering(pipelines)
    key = key or out.with_name(f"{out.stem}.key.csv")
    _checked_new(out, key)
    auth, given = options.auth, [collection] if collection else None
    with StageBars(quiet=False) as progress:
        opening: AbstractContextManager[Session]
        if source.is_dir():
            dataset = read_dataset(source, limit=limit, allow_missing=True)
            corpus = build_corpus(dataset, settings, progress)
            questions = [SheetQuestion(query.query_id, query.text) for query in dataset.queries]
            opening, auth = open_corpus(corpus.settings), AUTH
        else:
            questions = read_questions(source, limit)
            opening = opened(settings)
        with opening as session:
            asked = COLLECTION if source.is_dir() else collections_of(session, auth, given)
            answered = answer_all(session, auth, asked, questions, names, progress)
    sheet, keys = blind_sheet(answered, settings.evaluation.seed if seed is None else seed)
    write_files({key: keys, out: sheet})
    out_console = stdout()
    out_console.print(f"{len(answered)} answers to rate: {escape(shown(out))}")
    out_console.print(f"key, not for the raters: {escape(shown(key))}")


def _checked_new(*paths: Path) -> None:
    for path in paths:
        if checked_out(path, (".csv",)).exists():
            raise CallerError(
                "the file exists already and may hold ratings",
                value=str(path),
                hint="name another one, or move it away",
            )
    if len({path.resolve() for path in paths}) < len(paths):
        raise CallerError(
            "the sheet and its key are two files", value=str(paths[0]), hint="name another --key"
        )
