"""`carrel doctor`: does everything that was ingested still answer?"""

from __future__ import annotations

import typer
from rich.markup import escape

from cli.options import Data, Json, opened, settings_from
from cli.output import print_json, stdout


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check the catalogue, the full-text index and the vectors; exit code 1 names problems."""
    from stores.health import examine

    with opened(settings_from(data)) as session:
        report = examine(session.store)
        report["problems"] += session.warnings
        report["ok"] = not report["problems"]
        report["models"] = {"embedder": session.store.model_id}
    if as_json:
        print_json(report)
    else:
        out = stdout()
        state = "[green]ok[/green]" if report["ok"] else "[red]problems[/red]"
        out.print(
            f"{state}: {report['documents']} documents, {report['chunks']} chunks,"
            f" {report['fts_rows']} full-text rows, {report['vectors']} vectors",
        )
        for problem in report["problems"]:
            out.print(f"  [red]✗[/red] {escape(problem)}")
        for name, value in report["models"].items():
            out.print(f"  [dim]{name}: {value}[/dim]")
    if not report["ok"]:
        raise typer.Exit(1)
