"""`carrel eval ers`: answers rated by two people who do not know which pipeline gave them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.eval_export import export_sheet
from cli.options import Json, Set, named_path, settings_from
from cli.output import print_json, stdout, warn

app = typer.Typer(
    name="ers",
    help="Expert relevance score: two people rate answers from 1 to 5.",
    rich_markup_mode=None,
)
app.command("export")(export_sheet)


@app.command("import")
def import_sheets(
    rater1: Annotated[
        Path,
        typer.Argument(
            help="Rated sheet.", show_default=False, parser=named_path, metavar="RATER1.csv"
        ),
    ],
    rater2: Annotated[
        Path,
        typer.Argument(
            help="Rated sheet.", show_default=False, parser=named_path, metavar="RATER2.csv"
        ),
    ],
    key: Annotated[
        Path,
        typer.Option("--key", help="Key of the sheet.", parser=named_path, metavar="<path>"),
    ],
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Read two rated sheets: how far the raters agree, and the score of each pipeline."""
    from evals.ratings import rate

    settings = settings_from(None, changes)
    result = rate((rater1, rater2), key, settings)
    if as_json:
        print_json(result)
        return
    _print(result, settings.eval_confidence)


def _print(result: dict[str, Any], confidence: float) -> None:
    from cli.eval_output import interval_text, table

    out = stdout()
    rows = table(
        "pipeline", "n", *map(escape, result["raters"]), "ERS", f"{confidence:.0%} interval"
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
