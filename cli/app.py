"""The `carrel` command: it says how a command ended, in one line and an exit code."""

from __future__ import annotations

import gc
import io
import os
import sys

import typer

from cli.commands import app
from cli.server.remote import ServerOwns, run_there
from cli.server.running import host
from cli.terminal.output import fail
from core.distribution import explain_import
from core.errors import CarrelError, OperatorError, StorageError, disk_error
from core.settings_sources import variables

INTERRUPTED = 130
WRONG_USE = 2
# Objects between two looks for garbage: nearly all that a start makes stay, and looking after each
# 700 of them took 7 % of a cold question (n = 4).
COLLECT_AFTER = 50_000


def main() -> None:
    """Run the command line; every error is one line on stderr and an exit code."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8
    gc.set_threshold(COLLECT_AFTER)
    code = run()
    gc.freeze()  # else the interpreter looks for garbage among all modules for a second or two
    sys.exit(code)


def run(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        try:
            code = app(given or ["--help"], prog_name="carrel", standalone_mode=False)
        except ServerOwns as found:  # a server owns the data directory: it does the command
            code = run_there(found, given or ["--help"])
        sys.stdout.flush()
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
        return _ended(error)
    # Typer turns a KeyboardInterrupt into this; of a server's command its client says it.
    if code == INTERRUPTED and host() is None:
        fail("interrupted; what was finished is kept. Run it again to go on.")
    if not given:
        return WRONG_USE
    return code if isinstance(code, int) else 0


def _ended(error: Exception) -> int:
    if isinstance(error, typer.TyperException):
        fail(_usage(error))
        return error.exit_code
    return INTERRUPTED if isinstance(error, typer.Abort) else _unexpected(error)


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
    if isinstance(error, StorageError):
        from cli.options import damaged_catalogue  # late: `--help` needs no settings

        explained = damaged_catalogue(error)
        fail(str(explained))
        return explained.exit_code
    if isinstance(error, OSError) and (found := disk_error(error)):
        fail(str(found))
        return found.exit_code
    if isinstance(error, ImportError) and (why := explain_import(error)):
        fail(why)
        return OperatorError.exit_code
    fail(
        f"something unexpected happened ({type(error).__name__}: {error}). "
        "Run it again with CARREL_DEBUG=1 to see where, and report it."
    )
    return 1


if __name__ == "__main__":
    main()
