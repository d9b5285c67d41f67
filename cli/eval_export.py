"""`carrel eval ers export`: answers to rate, without the name of the pipeline that gave them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.ask import caller
from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    DEFAULT_USER,
    CollectionName,
    Data,
    Roles,
    Set,
    Tenant,
    User,
    named_path,
    opened,
    settings_from,
)
from cli.output import stdout
from cli.running import shown
from core.errors import CallerError

if TYPE_CHECKING:
    from core.auth import AuthContext
    from core.settings import Settings
    from evals.corpus import Progress
    from evals.ers import Answered, Answering


def export_sheet(
    source: Annotated[
        Path,
        typer.Argument(
            help="Data set folder, or a file of questions for your own collection.",
            show_default=False,
            parser=named_path,
            metavar="DATASET_OR_QUESTIONS",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", help="Sheet: NAME.csv.", parser=named_path, metavar="<path>"),
    ],
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            help="Key: which pipeline gave which answer; NAME.key.csv beside the sheet.",
            show_default=False,
            parser=named_path,
            metavar="<path>",
        ),
    ] = None,
    pipelines: Annotated[
        str, typer.Option("--pipelines", help="agentic and classic, with a comma between.")
    ] = "agentic,classic",
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only the first N questions.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Order of the items.", show_default="eval_seed"),
    ] = None,
    collection: CollectionName = DEFAULT_COLLECTION,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    role: Roles = None,
    data: Data = None,
    changes: Set = None,
) -> None:
    """Answer questions and write a sheet to rate; give the raters a copy each, never the key."""
    from cli.progress import StageBars
    from core.auth import AuthContext
    from evals.ers import blind_sheet, checked_answering
    from evals.files import write_files

    settings = settings_from(data, changes)
    names = checked_answering(pipelines)
    key = key or out.with_name(f"{out.stem}.key.csv")
    _checked_new(out, key)
    auth = caller(AuthContext, tenant, user, role)
    with StageBars(quiet=False) as progress:
        if source.is_dir():
            answered = _from_dataset(source, limit, names, settings, progress)
        else:
            answered = _from_file(source, limit, names, settings, progress, auth, collection)
    sheet, keys = blind_sheet(answered, settings.eval_seed if seed is None else seed)
    write_files({key: keys, out: sheet})
    out_console = stdout()
    out_console.print(f"{len(answered)} answers to rate: {escape(shown(out))}")
    out_console.print(f"key, not for the raters: {escape(shown(key))}")


def _checked_new(*paths: Path) -> None:
    from evals.files import checked_out

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


def _from_dataset(
    folder: Path,
    limit: int | None,
    pipelines: list[Answering],
    settings: Settings,
    progress: Progress,
) -> list[Answered]:
    from evals.corpus import AUTH, COLLECTION, build_corpus, open_corpus
    from evals.dataset import read_dataset
    from evals.ers import Question, answer_all

    dataset = read_dataset(folder, limit=limit, allow_missing=True)
    corpus = build_corpus(dataset, settings, progress)
    questions = [Question(query.query_id, query.text) for query in dataset.queries]
    with open_corpus(corpus.settings) as session:
        return answer_all(session, AUTH, COLLECTION, questions, pipelines, progress)


def _from_file(
    path: Path,
    limit: int | None,
    pipelines: list[Answering],
    settings: Settings,
    progress: Progress,
    auth: AuthContext,
    collection: str,
) -> list[Answered]:
    from evals.ers import answer_all, read_questions

    questions = read_questions(path, limit)
    with opened(settings) as session:
        return answer_all(session, auth, collection, questions, pipelines, progress)
