"""Every command, by its name and the place where it is defined."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import typer

from cli.lazy import LazyGroup
from core.distribution import program_version
from core.errors import CallerError

LISTS = "`carrel collections`, `carrel documents` and `carrel status` tell what is there"


class Commands(LazyGroup):
    """The commands of `carrel`."""

    places: ClassVar[dict[str, str]] = {
        "demo": "cli.demo:demo",
        "ingest": "cli.upkeep.ingest:ingest",
        "ask": "cli.questions.ask:ask",
        "plan": "cli.questions.plan:plan",
        "chat": "cli.questions.chat:chat",
        "search": "cli.questions.search:search",
        "trace": "cli.questions.trace:trace",
        "collections": "cli.upkeep.status:collections",
        "documents": "cli.upkeep.status:documents",
        "status": "cli.upkeep.status:status",
        "quality": "cli.upkeep.quality:quality",
        "doctor": "cli.upkeep.doctor:doctor",
        "config": "cli.config:config",
        "reindex": "cli.upkeep.reindex:reindex",
        "forget": "cli.upkeep.forget:forget",
        "backup": "cli.upkeep.backup:backup",
        "restore": "cli.upkeep.restore:restore",
        "serve": "cli.service.serve:serve",
        "conversations": "cli.questions.conversations:app",
        "keys": "cli.service.keys:app",
        "audit": "cli.service.audit:app",
        "eval": "cli.commands:evaluation",
        "models": "cli.service.models:app",
        "llm": "cli.service.llm:app",
    }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - Typer's own
        """Send who asks for a list to the commands that tell what is there."""
        if args[:1] in (["list"], ["ls"]):
            raise CallerError(f"there is no command '{args[0]}'", hint=LISTS)
        return super().resolve_command(ctx, args)


class EvalCommands(LazyGroup):
    """The commands of `carrel eval`."""

    places: ClassVar[dict[str, str]] = {
        "retrieval": "cli.evaluation.eval:retrieval",
        "answers": "cli.evaluation.answers:answers",
        "compare": "cli.evaluation.compare:compare",
        "ers": "cli.commands:ers",
    }


class ErsCommands(LazyGroup):
    """The commands of `carrel eval ers`."""

    places: ClassVar[dict[str, str]] = {
        "export": "cli.evaluation.ers:export_sheet",
        "import": "cli.evaluation.ers:import_sheets",
    }


app = typer.Typer(
    name="carrel",
    cls=Commands,
    help="Ask your own documents and get a cited answer, or an honest refusal.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
evaluation = typer.Typer(
    cls=EvalCommands,
    help="Measure on your own documents and queries how well they are found and answered.",
    rich_markup_mode=None,
)
ers = typer.Typer(
    cls=ErsCommands,
    help="Expert relevance score: two people rate answers from 1 to 5.",
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"carrel {program_version()}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask your own documents and get a cited answer, or an honest refusal."""
