"""Every command, by its name."""

from __future__ import annotations

from typing import Annotated

import typer

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

app = typer.Typer(
    name="carrel",
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
