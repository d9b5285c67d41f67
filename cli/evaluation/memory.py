"""`carrel eval memory`: what is answered from the memory of long dialogues, by category."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import Json, Set, path_argument, path_option
from cli.evaluation.eval import interval_text, table
from cli.options import settings_from
from cli.terminal.output import print_json, stdout, write_files
from cli.terminal.progress import StageBars
from core.distribution import require_extra
from core.errors import CallerError
from evals.memory import METRICS, PIPELINES, MemoryOutcome, evaluate_memory

TITLES = {"em": "EM", "f1": "F1", "bleu1": "BLEU-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
RESULTS, TRACES = "results.json", "traces.jsonl"


def memory(
    dataset_dir: Annotated[
        Path, path_argument("DATASET_DIR", "Folder with corpus.jsonl and queries.jsonl.")
    ],
    pipeline: Annotated[
        str, typer.Option("--pipeline", help=f"{', '.join(PIPELINES)}.")
    ] = "memory",
    against: Annotated[
        str | None, typer.Option("--against", help="Another one, for a paired comparison.")
    ] = None,
    every_turn: Annotated[
        bool, typer.Option("--every-turn", help="Keep every turn as a note.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Only N of each category.")
    ] = None,
    out: Annotated[Path | None, path_option("--out", f"Folder for {RESULTS} and {TRACES}.")] = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Ask what long dialogues tell, from notes of their turns, and score the short answers."""
    require_extra("eval", "an evaluation")
    if out is not None:
        _made(out)
    settings = settings_from(None, changes)
    with StageBars(as_json) as progress:
        result, outcomes = evaluate_memory(
            dataset_dir,
            pipeline,
            settings,
            progress,
            against=against,
            limit=limit,
            every_turn=every_turn,
        )
    if out is not None:
        rows = "".join(f"{json.dumps(row(one), ensure_ascii=False)}\n" for one in outcomes)
        whole = json.dumps({**result, "questions": [row(one, trail=False) for one in outcomes]})
        write_files({out / TRACES: rows, out / RESULTS: whole})
    if as_json:
        print_json(result)
    else:
        _print(result)


def _made(out: Path) -> None:
    """Make the folder, before any work."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or error
        raise CallerError("--out must be a folder", value=f"{out} ({why})") from None


def row(one: MemoryOutcome, *, trail: bool = True) -> dict[str, Any]:
    """Return a question with its answer, its scores and the steps of its run."""
    asked = one.question
    found = {
        "id": asked.query_id,
        "category": asked.category,
        "question": asked.text,
        "gold": asked.gold,
        "answer": one.answer,
        **one.metrics,
        "ms": one.ms,
    }
    return {**found, "trail": one.trail} if trail else found


def _print(result: dict[str, Any]) -> None:
    out = stdout()
    counts = result["notes"]
    out.print(
        f"[bold]{escape(result['dataset'])}[/bold] · {result['pipeline']} · {result['n']} questions"
        f" · {counts['written']} notes of {counts['turns']} turns"
    )
    out.print(_table(result))
    if against := result.get("against"):
        out.print(f"against [bold]{against['pipeline']}[/bold]")
        out.print(_table(against))
        rows = table("F1", "gain", f"{result['confidence']:.0%} interval", "p", "win/tie/loss")
        for name, gap in against["differences"].items():
            counted = f"{gap['wins']}/{gap['ties']}/{gap['losses']}"
            shown = "all" if name == "f1" else escape(name)
            sure = interval_text(gap["ci"], signed=True)
            rows.add_row(shown, f"{gap['difference']:+.3f}", sure, f"{gap['p']:.4f}", counted)
        out.print(rows)
    times = result["latency_ms"]
    out.print(f"latency: p50 {times['p50']:.0f} ms, p95 {times['p95']:.0f} ms")


def _table(result: dict[str, Any]) -> Any:  # noqa: ANN401 - rich's own
    rows = table("category", "n", *(TITLES[name] for name in METRICS))
    for name, group in [*result["by_category"].items(), ("all", result)]:
        values = [f"{group['metrics'][metric]:.3f}" for metric in METRICS]
        rows.add_row(escape(name), str(group["n"]), *values)
    return rows
