"""Every command, by its name."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cli import (
    ask,
    audit,
    backup,
    chat,
    config,
    conversations,
    demo,
    doctor,
    forget,
    ingest,
    keys,
    llm,
    models,
    plan,
    quality,
    reindex,
    restore,
    search,
    serve,
    trace,
)
from cli import eval as evaluation
from cli.options import INSECURE, insecure


class Commands(TyperGroup):
    """Give each command that takes a data directory the flag to take one that others can read."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - Typer's own
        super().__init__(**given)
        _add_flag(self, _flag())


def _add_flag(group: TyperGroup, flag: Any) -> None:  # noqa: ANN401 - Typer's own
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            _add_flag(command, flag)
        elif any(one.name == "data" for one in command.params):
            command.params.append(flag)


def _flag() -> Any:  # noqa: ANN401 - Typer's own
    """Return an option that sets `insecure` and is no argument of the command."""
    single = typer.Typer(add_completion=False)

    @single.command()
    def command(
        value: Annotated[
            bool,
            typer.Option(
                INSECURE,
                help="Use a data directory that other users of the machine can read, as it is.",
                callback=lambda value: insecure.set(value),
            ),
        ] = False,
    ) -> None:
        """Do nothing."""

    flag = typer.main.get_command(single).params[0]
    flag.expose_value = False
    return flag


app = typer.Typer(
    name="carrel",
    cls=Commands,
    help="Ask your own documents and get a cited answer, or an honest refusal.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("ingest")(ingest.ingest)
app.command("ask")(ask.ask)
app.command("plan")(plan.plan)
app.command("chat")(chat.chat)
app.command("search")(search.search)
app.command("trace")(trace.trace)
app.command("quality")(quality.quality)
app.command("doctor")(doctor.doctor)
app.command("config")(config.config)
app.command("reindex")(reindex.reindex)
app.command("forget")(forget.forget)
app.command("backup")(backup.backup)
app.command("restore")(restore.restore)
app.command("serve")(serve.serve)
app.add_typer(conversations.app, name="conversations")
app.add_typer(keys.app, name="keys")
app.add_typer(audit.app, name="audit")
app.add_typer(evaluation.app, name="eval")
app.add_typer(models.app, name="models")
app.add_typer(llm.app, name="llm")


def _version(asked: bool) -> None:
    if asked:
        from importlib import metadata

        typer.echo(f"carrel {metadata.version('carrel')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask your own documents and get a cited answer, or an honest refusal."""
