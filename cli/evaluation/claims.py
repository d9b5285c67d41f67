"""`carrel eval claims`: how often the verifier is right about labelled claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Json, Set, path_argument
from cli.evaluation.eval import table
from cli.options import settings_from
from cli.terminal.output import print_json, stdout
from core.errors import shorten
from evals.claims import JudgedClaim, judge_claims, read_claims, summarise_claims

LONGEST = 1000  # characters of a claim that is shown; chosen, not measured


def claims(
    file: Annotated[Path, path_argument("FILE.jsonl", "Claims with their evidence and label.")],
    show: Annotated[
        bool, typer.Option("--show", help="Print the claims that are judged wrongly.")
    ] = False,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Judge labelled claims as those of an answer are: supported by their evidence, or not."""
    judged = judge_claims(read_claims(file), settings_from(None, changes))
    result = summarise_claims(judged)
    if as_json:
        print_json(result)
        return
    _print(result)
    if show:
        _print_wrong(judged)


def _print(result: dict[str, Any]) -> None:
    supported = result["supported"]
    rows = table("claims", "n", "right", "share")
    kinds = [("supported: accepted", supported["n"], supported["accepted"])]
    kinds += [
        (f"{kind}: caught", one["n"], one["caught"]) for kind, one in result["by_kind"].items()
    ]
    for name, count, right in kinds:
        share = f"{right / count:.3f}" if count else "–"
        rows.add_row(escape(shorten(name)), str(count), str(right), share)
    stdout().print(rows)


def _print_wrong(judged: list[JudgedClaim]) -> None:
    out = stdout()
    for one in judged:
        if not one.is_right:
            row = one.labelled
            wrong = f"{row.kind}: {one.reason or 'accepted'}"
            out.print(f"[bold]{escape(row.place)}[/bold] {escape(shorten(wrong, LONGEST))}")
            out.print(f"  {escape(shorten(row.claim, LONGEST))}")
