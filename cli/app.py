"""The `carrel` command."""

from __future__ import annotations

import io
import os
import sqlite3
import sys
from importlib import metadata
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
from cli.output import fail
from cli.remote import ServerOwns, run_there
from cli.running import host
from core.environment import variables
from core.errors import CarrelError

INTERRUPTED = 130
WRONG_USE = 2

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
        typer.echo(f"carrel {metadata.version('carrel')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Ask your own documents and get a cited answer, or an honest refusal."""


def main() -> None:
    """Run the command line; every error is one line on stderr and an exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        code = _done(given or ["--help"])
        sys.stdout.flush()
    except typer.TyperException as error:
        fail(_usage(error))
        return error.exit_code
    except typer.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as error:  # Typer's way out of a broken pipe
        if isinstance(error.__context__, BrokenPipeError):
            return _reader_left()
        raise
    except CarrelError as error:
        fail(str(error))
        return error.exit_code
    except Exception as error:  # the last door: a traceback never reaches a user
        return _unexpected(error)
    if code == INTERRUPTED:  # Typer turns a KeyboardInterrupt into this
        fail("interrupted; what was finished is kept. Run it again to go on.")
    if not given:
        return WRONG_USE
    return code if isinstance(code, int) else 0


def _done(arguments: list[str]) -> object:
    """Do a command here, or where a server owns the data directory, there."""
    try:
        return app(arguments, prog_name="carrel", standalone_mode=False)
    except ServerOwns as found:
        return run_there(found, arguments)


def _usage(error: typer.TyperException) -> str:
    """Say what is wrong with the command, and which help to read."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "carrel"
    message = error.format_message()
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} `{command} --help` shows the usage."


def _reader_left() -> int:
    """End quietly when the program that read the output has ended, as `head` does."""
    if host() is not None:
        return 0  # that program is the client's; the streams here are the server's
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _unexpected(error: Exception) -> int:
    if variables().get("CARREL_DEBUG"):
        raise error
    if isinstance(error, sqlite3.Error):
        from core.settings import load_settings
        from stores.database import damaged
        from stores.folder import CATALOGUE

        explained = damaged(load_settings()[0].data / CATALOGUE, error)
        fail(str(explained))
        return explained.exit_code
    if isinstance(error, OSError) and error.errno == 28:  # ENOSPC
        fail("the disk is full. Free some space and run it again.")
        return 4
    fail(
        f"something unexpected happened ({type(error).__name__}: {error}). "
        "Run it again with CARREL_DEBUG=1 to see where, and report it."
    )
    return 1
