"""Commands whose modules are imported when they are named, so that the others cost nothing."""

from __future__ import annotations

import ast
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from cli.arguments import INSECURE, insecure


class LazyCommand(TyperCommand):
    """Stand for a command, or a group of them, in the help of its group until it is run."""

    def __init__(self, name: str, path: str) -> None:
        """Keep where the command is, as "module:name"; its module is imported when it is needed."""
        super().__init__(name)
        self._path = path

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the command's line in the help of its group, from the source of its module."""
        return TyperCommand(self.name, help=_help_of(self._path)).get_short_help_str(limit)

    @cached_property
    def loaded(self) -> Any:  # noqa: ANN401 - a command or a group of Typer's own
        """Return the command itself."""
        module, _, name = self._path.partition(":")
        found = getattr(import_module(module), name)
        if isinstance(found, typer.Typer):
            found.rich_markup_mode = None
            command: Any = get_group(found)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode=None)
            single.command(self.name)(found)
            command = get_command(single)
        command.name = self.name
        _add_flag(command)
        return command

    def make_context(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - Typer's own
        """Begin the command itself."""
        return self.loaded.make_context(*given, **named)


class LazyGroup(TyperGroup):
    """A group of lazy commands, named by its `places`."""

    places: ClassVar[dict[str, str]]

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 - Typer's own
        """Add the commands in the order of `places`."""
        super().__init__(**given)
        for name, path in self.places.items():
            self.add_command(LazyCommand(name, path))


def _help_of(path: str) -> str:
    """Return the help of a command, or of a group of them, as its module spells it."""
    module, _, name = path.partition(":")
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node) or ""
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            given = node.value.keywords if isinstance(node.value, ast.Call) else []
            return "".join(ast.literal_eval(one.value) for one in given if one.arg == "help")
    return ""


def _add_flag(command: Any) -> None:  # noqa: ANN401 - Typer's own
    """Give a command that takes a data directory the flag to take one that others can read."""
    if isinstance(command, TyperGroup):
        for one in command.commands.values():
            if not isinstance(one, LazyCommand):
                _add_flag(one)
    elif any(one.name == "data" for one in command.params):
        command.params.append(_flag())


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

    flag = get_command(single).params[0]
    flag.expose_value = False
    return flag
