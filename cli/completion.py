"""`carrel completion`: what a shell reads to complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]


class Shell(StrEnum):
    """Name a shell that can complete."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="Shell that completes.", show_default=False)],
) -> None:
    """Print what a shell reads to complete commands: source <(carrel completion bash)."""
    typer.echo(
        get_completion_script(
            prog_name="carrel", complete_var="_CARREL_COMPLETE", shell=shell.value
        )
    )
