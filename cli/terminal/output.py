"""Where things are written: results on stdout, everything else on stderr, reports in files."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TextIO

import typer
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.markup import escape
from rich.table import Table

from cli.server.running import running, stream_of
from core.errors import CallerError

PIECE = 65_536  # bytes of the input taken at once, chosen


def stdout() -> Console:
    """Return the console for results; long lines are left to the terminal."""
    return _console("out") or Console(highlight=False, soft_wrap=True)


def stderr() -> Console:
    """Return the console for progress, notes and errors."""
    return _console("err") or Console(stderr=True, highlight=False, soft_wrap=True)


def _console(name: Literal["out", "err"]) -> Console | None:
    """Return the console of the client whose command a server runs here."""
    command = running()
    if command is None:
        return None
    terminal, variables = getattr(command.request, name), command.request.variables
    return Console(
        file=stream_of(command, name),
        width=terminal.width,
        height=terminal.height,
        highlight=False,
        soft_wrap=True,
        _environ=variables,
    )


def results() -> TextIO:
    """Return the stream for results as text."""
    command = running()
    return sys.stdout if command is None else stream_of(command, "out")


def asks() -> bool:
    """Tell whether a person types the input."""
    command = running()
    return sys.stdin.isatty() if command is None else command.request.asks


DIALOGUE = ("/clear", "/exit", "/help", "/new", "/q", "/quit", "/sources")


def read_line(prompt: str = "") -> str:
    """Return the next line of the input, "" at its end."""
    command = running()
    return typed_line(prompt) if command is None else command.read_line(prompt)


def given_text(text: str) -> str:
    """Return a text that was given as an argument; "-" is all of the input."""
    return "".join(iter(read_line, "")) if text == "-" else text


def input_piece() -> bytes:
    """Return the next bytes of the input as they are, b"" at its end."""
    command = running()
    if command is None:
        return sys.stdin.buffer.read(PIECE)
    return base64.b64decode(command.read_line(piece=True))


def complete_command(typed: str, state: int) -> str | None:
    """Return a command of a dialogue that begins so, None after the last; as readline asks."""
    found = [one for one in DIALOGUE if typed.startswith("/") and one.startswith(typed)]
    return found[state] if state < len(found) else None


def typed_line(prompt: str) -> str:
    """Return the next line of this process's own input; a person may edit it, or an earlier one.

    The tab key completes a command of a dialogue.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        with suppress(ImportError):  # not everywhere; `input` edits with it, and has a history
            readline: Any = import_module("readline")
            readline.set_completer(complete_command)
            readline.set_completer_delims(" ")  # "/" begins a word
            bind = "bind ^I rl_complete" if "libedit" in readline.__doc__ else "tab: complete"
            readline.parse_and_bind(bind)
        try:
            return f"{input(prompt)}\n"
        except EOFError:
            return ""
    if prompt and sys.stdin.isatty():
        sys.stderr.write(prompt)
        sys.stderr.flush()
    return sys.stdin.readline()


def agreed(question: str) -> bool:
    """Ask a person for a yes."""
    if running() is None:
        return typer.confirm(question, err=True)
    stderr().print(f"{escape(question)} \\[y/N]: ", end="")
    return read_line().strip().lower() in ("y", "yes")


def ask_to_erase(what: str) -> None:
    """Say what goes for good, and end the command unless a person agrees to it.

    Raises CallerError where there is no person to ask.
    """
    if not asks():
        raise CallerError(
            f"nothing is erased without a terminal to ask on; this would go: {what}",
            hint="add -y to erase it without being asked",
        )
    stderr().print(escape(f"This goes for good: {what}."))
    if not agreed("Erase it?"):
        stderr().print("nothing was erased")
        raise typer.Exit(1)


def counted(count: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def check_interrupted() -> None:
    """Raise KeyboardInterrupt when the client of a server interrupted its command.

    In a process of its own, a signal does that by itself.
    """
    if (command := running()) is not None:
        command.check()


NUMBERS = {"#", "ms", "in", "out", "read", "held", "written", "first"}  # columns of figures


def plain_table(*titles: str, overflow: OverflowMethod = "ellipsis") -> Table:
    """Return an empty table without lines, figures on the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles:
        justify: JustifyMethod = "right" if title in NUMBERS else "left"
        table.add_column(title, justify=justify, overflow=overflow)
    return table


def print_json(value: Any) -> None:  # noqa: ANN401 - anything JSON can hold
    """Print one JSON object; characters that UTF-8 cannot hold are replaced."""
    out = results()
    unicode = (out.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not unicode)
    out.write(text.encode("utf-8", "replace").decode("utf-8") + "\n")


def warn(message: str) -> None:
    """Print a note to stderr."""
    stderr().print(f"[yellow]note:[/yellow] {escape(message)}")


def fail(message: str) -> None:
    """Print an error to stderr, on one line."""
    stderr().print(f"[red]carrel:[/red] {escape(' '.join(message.split()))}")


def checked_out(path: Path, suffixes: Collection[str], option: str = "--out") -> Path:
    """Raise CallerError unless a file of this name can be written; hours of work may hang on it."""
    wanted = " or ".join(suffixes)
    if path.suffix.lower() not in suffixes:
        raise CallerError(
            f"{option} must end in {wanted}",
            value=str(path),
            hint="the suffix chooses the format",
        )
    if path.is_dir() or not path.parent.is_dir():
        raise CallerError(
            f"{option} must name a file in a folder that exists",
            value=str(path),
            hint="make the folder first, or name another file",
        )
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise CallerError(
            f"{option} must be writable",
            value=str(path),
            hint="correct the permissions of its folder",
        )
    return path


def write_files(files: Mapping[Path, str]) -> None:
    """Write the files, each under another name first, so that none is ever half there."""
    for path, text in files.items():
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_bytes(text.encode("utf-8", "replace"))
            os.replace(part, path)
        except OSError as error:
            part.unlink(missing_ok=True)
            raise CallerError(
                "the file must be writable",
                value=f"{path} ({error.strerror or error})",
                hint="free some space or name another file",
            ) from None
