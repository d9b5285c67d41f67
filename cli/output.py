"""Where things are printed: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape


def stdout() -> Console:
    """Return the console for results; long lines are left to the terminal."""
    return Console(highlight=False, soft_wrap=True)


def stderr() -> Console:
    """Return the console for progress, notes and errors."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:  # noqa: ANN401 - anything JSON can hold
    """Print one JSON object; characters that UTF-8 cannot hold are replaced."""
    unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not unicode)
    sys.stdout.write(text.encode("utf-8", "replace").decode("utf-8") + "\n")


def warn(message: str) -> None:
    """Print a note to stderr."""
    stderr().print(f"[yellow]note:[/yellow] {escape(message)}")


def fail(message: str) -> None:
    """Print an error to stderr, on one line."""
    stderr().print(f"[red]carrel:[/red] {escape(' '.join(message.split()))}")
