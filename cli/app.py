"""The `carrel` command."""

from __future__ import annotations

import os
import sqlite3
import sys
from importlib import metadata
from typing import Annotated

import click
import typer

from cli import ask, chat, config, demo, doctor, ingest, reindex, search, trace
from cli.output import fail
from core.errors import CarrelError

INTERRUPTED = 130

app = typer.Typer(
    name="carrel",
    help="Ask your own documents and get a cited answer, or an honest refusal.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("ingest")(ingest.ingest)
app.command("ask")(ask.ask)
app.command("chat")(chat.chat)
app.command("search")(search.search)
app.command("trace")(trace.trace)
app.command("doctor")(doctor.doctor)
app.command("config")(config.config)
app.command("reindex")(reindex.reindex)


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
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.exceptions.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        fail("interrupted; what was finished is kept")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except CarrelError as error:
        fail(str(error))
        return error.exit_code
    except Exception as error:  # the last door: a traceback never reaches a user
        return _unexpected(error)
    return code if isinstance(code, int) else 0


def _unexpected(error: Exception) -> int:
    if os.environ.get("CARREL_DEBUG"):
        raise error
    if isinstance(error, sqlite3.Error):
        from pathlib import Path

        from core.settings import load_settings
        from stores.database import damaged

        explained = damaged(Path(load_settings()[0].data) / "catalogue.sqlite3", error)
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
