"""`carrel replay`: a stored run carried out again, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.markup import escape

from cli.arguments import Json, values
from cli.options import CallerOptions, opened, opened_catalogue, storable, with_options
from cli.terminal.answer import shortened
from cli.terminal.output import print_json, stdout, warn
from core.trace import RunRecord
from graph.build import build_graph
from graph.context import Context, PipelineName
from graph.recording import Recording
from graph.replay import Replayed, replay_run
from stores.runlog.runs import changed_since

if TYPE_CHECKING:
    from app.session import Session

DIFFERENT = 1
BEFORE = 20  # characters shown before a difference
LINE = 300  # characters of a line that differs; chosen, not measured


@with_options
def replay(
    run: Annotated[
        str,
        typer.Argument(
            help="Run id, its beginning, or 'last'.",
            show_default=False,
            autocompletion=values("cli.values:runs"),
        ),
    ],
    options: CallerOptions,
    live_tools: Annotated[
        bool, typer.Option("--live-tools", help="Call the tools again: index and rights of now.")
    ] = False,
    live_model: Annotated[
        bool, typer.Option("--live-model", help="Ask the model again, or the rules where none is.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Carry a stored run out again from what it recorded; exit code 1 says that something differs.

    Nothing is asked, unless `--live-tools` or `--live-model` says so; what the record then has no
    reply to is asked again, and a note says so. Nothing is kept.
    """
    auth, settings, name = options.auth, options.settings(), storable(run)
    if live_tools or live_model:
        with opened(settings, answers=True) as session:
            kept = session.runs.load(auth, name)
            found = _with_live_parts(session, kept, options, tools=live_tools, model=live_model)
    else:
        with opened_catalogue(settings) as record:
            kept = record.runs.load(auth, name)
            found = replay_run(build_graph(), kept)
            found.notes.extend(changed_since(kept, record.catalogue, auth))
    if as_json:
        print_json(_as_json(kept, found))
    else:
        _print(kept, found)
    if not found.identical:
        raise typer.Exit(DIFFERENT)


def _with_live_parts(
    session: Session, kept: RunRecord, options: CallerOptions, *, tools: bool, model: bool
) -> Replayed:
    def live(recording: Recording) -> Context:
        return session.context(
            options.auth,
            kept.collection,
            cast(PipelineName, kept.pipeline),
            given=recording.given,
            clarify=recording.clarify,
            where=recording.where,
        )

    return replay_run(build_graph(), kept, live, tools=tools, model=model)


def _as_json(kept: RunRecord, found: Replayed) -> dict[str, Any]:
    return {
        "run_id": kept.run_id,
        "identical": found.identical,
        "steps": found.steps,
        "differences": [one._asdict() for one in found.differences],
        "notes": found.notes,
    }


def _print(kept: RunRecord, found: Replayed) -> None:
    out = stdout()
    count = len(found.differences)
    outcome = "identical" if found.identical else f"{count} difference{'s' if count > 1 else ''}"
    out.print(f"[bold]{escape(kept.question)}[/bold]")
    out.print(f"[dim]run {kept.run_id} · {found.steps} steps[/dim] · {outcome}")
    for one in found.differences:
        out.print(f"\nstep {one.step} {one.node} · {escape(one.what)}")
        for line in _from_difference(one.lines()):
            colour = "red" if line.startswith("-") else "green"
            out.print(f"  [{colour}]{escape(shortened(line, LINE))}[/{colour}]")
    for note in found.notes:
        warn(note)


def _from_difference(lines: Sequence[str]) -> list[str]:
    """Return lines with what all of them begin with cut, so that where they differ is shown."""
    shared = len(commonprefix([line[1:] for line in lines])) if len(lines) > 1 else 0
    if shared < LINE // 2:
        return list(lines)
    return [f"{line[:1]} …{line[1 + shared - BEFORE :]}" for line in lines]
