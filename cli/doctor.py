"""`carrel doctor`: does everything that was ingested still answer?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from cli.options import Data, Json, opened, settings_from
from cli.output import print_json, stdout

if TYPE_CHECKING:
    from graph.session import Session


def _others(session: Session) -> dict[str, Any]:
    """Return the other models by their role; the chat model with what it was found to do."""
    second, reranker = session.second, session.settings.reranker
    chat = session.chat
    return {
        "second_embedder": second.model_id if second else None,
        "reranker": None if reranker == "none" else reranker,
        "reasoner": "llm" if chat else "rules",
        "chat": chat.capabilities.model_dump() if chat else None,
    }


def _described(value: Any) -> str:  # noqa: ANN401 - what a report holds
    if isinstance(value, dict):
        return ", ".join(f"{name} {_described(item)}" for name, item in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "none" if value is None else str(value)


def doctor(data: Data = None, as_json: Json = False) -> None:
    """Check the catalogue, the full-text index and the vectors; exit code 1 names problems."""
    from stores.health import examine

    with opened(settings_from(data)) as session:
        report = examine(session.store)
        report["models"] = {"embedder": session.store.model_id, **_others(session)}
        report["problems"] += [note for note in session.warnings if note not in report["problems"]]
        report["ok"] = not report["problems"]
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
            out.print(f"  [dim]{name}: {escape(_described(value))}[/dim]")
    if not report["ok"]:
        raise typer.Exit(1)
