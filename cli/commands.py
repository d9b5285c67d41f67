"""Every command, by its name; its module is imported when it is named, so others cost nothing."""

from __future__ import annotations

import ast
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from cli.arguments import INSECURE, insecure
from core.distribution import program_version
from core.errors import CallerError


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


LISTS = "`carrel collections`, `carrel documents` and `carrel status` tell what is there"


class Commands(LazyGroup):
    """The commands of `carrel`."""

    places: ClassVar[dict[str, str]] = {
        "demo": "cli.demo:demo",
        "ingest": "cli.upkeep.ingest:ingest",
        "source": "cli.upkeep.source:app",
        "ask": "cli.questions.ask:ask",
        "plan": "cli.questions.ask:plan",
        "chat": "cli.questions.chat:chat",
        "search": "cli.questions.ask:search",
        "recommend": "cli.questions.recommend:recommend",
        "feedback": "cli.questions.feedback:app",
        "trace": "cli.questions.trace:trace",
        "why": "cli.questions.trace:why",
        "replay": "cli.questions.replay:replay",
        "collections": "cli.upkeep.status:collections",
        "documents": "cli.upkeep.status:documents",
        "status": "cli.upkeep.status:status",
        "quality": "cli.upkeep.quality:quality",
        "report": "cli.upkeep.report:report",
        "doctor": "cli.upkeep.doctor:doctor",
        "config": "cli.upkeep.status:config",
        "reindex": "cli.upkeep.doctor:reindex",
        "tree": "cli.upkeep.tree:app",
        "acl": "cli.upkeep.acl:app",
        "forget": "cli.upkeep.forget:forget",
        "backup": "cli.upkeep.backup:backup",
        "restore": "cli.upkeep.backup:restore",
        "migrate": "cli.upkeep.migrate:migrate",
        "serve": "cli.server.serve:serve",
        "worker": "cli.server.serve:worker",
        "mcp": "cli.server.serve:mcp",
        "conversations": "cli.questions.chat:app",
        "keys": "cli.server.access:keys_app",
        "audit": "cli.server.access:audit_app",
        "memory": "cli.questions.memory:app",
        "eval": "cli.commands:evaluation",
        "models": "cli.server.models:app",
        "llm": "cli.server.llm:app",
        "completion": "cli.commands:completion",
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
        "answers": "cli.evaluation.eval:answers",
        "compare": "cli.evaluation.eval:compare",
        "trajectories": "cli.evaluation.trajectories:trajectories",
        "claims": "cli.evaluation.labelled:claims",
        "memory": "cli.evaluation.memory:memory",
        "questions": "cli.evaluation.labelled:questions",
        "opinions": "cli.evaluation.opinions:opinions",
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
