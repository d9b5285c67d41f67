"""`carrel models`: list known models, fetch one, check the local ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table

from cli.arguments import Json, Set, values
from cli.options import settings_from
from cli.terminal.output import print_json, stderr, stdout
from cli.terminal.progress import ByteBars
from models.download import Advance, Pulled, file_sha256, pull_chat_model
from models.folder import embedded_folder
from models.named import NamedModel, find_named, named_models, pull_snapshot, verify_model
from models.table import find_chat_card

app = typer.Typer(
    name="models",
    help="List, fetch and check the models that are known by name.",
    rich_markup_mode=None,
)

DIGITS = 12  # of a SHA-256, enough to tell models apart
WIDEST = 400  # columns of the table of models, chosen
COLOURS = {"ok": "green", "differs": "red", "unknown": "yellow", "missing": "dim"}
Name = Annotated[
    str,
    typer.Argument(
        help="A model of `carrel models list`.",
        show_default=False,
        autocompletion=values("cli.server.models:known_models"),
    ),
]


def known_models() -> list[str]:
    """Return the models that are known by name, for a shell that completes."""
    return [one.name for one in named_models(settings_from(None).llama.model_folder)]


@app.command("list")
def list_models(changes: Set = None, as_json: Json = False) -> None:
    """Show all models known by name: kind, size, licence, SHA-256, and where each lies."""
    folder = settings_from(None, changes).llama.model_folder
    models = named_models(folder)
    if as_json:
        rows = [model.model_dump(mode="json") for model in models]
        print_json({"folder": str(folder), "models": rows})
        return
    _print_table(models)
    stdout().print(f"[dim]✓ is here; chat models lie in {escape(str(folder))}[/dim]")


def _print_table(models: list[NamedModel]) -> None:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("", "model", "kind", "size", "licence", "SHA-256", "file"):
        table.add_column(heading, justify="right" if heading == "size" else "left", no_wrap=True)
    for model in models:
        table.add_row(
            "[green]✓[/green]" if model.path else "",
            escape(model.name),
            model.kind,
            size_text(model.bytes),
            model.licence,
            model.sha256[:DIGITS] if model.sha256 else "unknown",
            escape(model.file),
        )
    out = stdout()
    wide = out.options.update(max_width=WIDEST)
    out.width = max(out.width, Measurement.get(out, wide, table).maximum)  # no name is ever cut
    out.print(table)


def size_text(size: int | None) -> str:
    """Return a size as people read it, decimal units; None is unknown."""
    if size is None:
        return "unknown"
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


@app.command("pull")
def pull(name: Name, changes: Set = None, as_json: Json = False) -> None:
    """Fetch a model, going on where an interrupted download ended, and check its SHA-256."""
    folder = settings_from(None, changes).llama.model_folder
    model = find_named(name, folder)
    with ByteBars(as_json, model.name) as advance:
        pulled = _pulled(model, folder, as_json, advance)
    if as_json:
        print_json({"name": model.name, **pulled._asdict(), "path": str(pulled.path)})
        return
    known = "was there already" if pulled.state == "present" else "fetched"
    stdout().print(f"[green]{known}[/green], {size_text(pulled.bytes)}, verified")
    stdout().print(f"  {escape(str(pulled.path))}\n  [dim]SHA-256 {pulled.sha256}[/dim]")
    if model.kind == "chat":
        stdout().print(f"  next: `carrel llm serve {model.name}`")


def _pulled(model: NamedModel, folder: Path, quiet: bool, advance: Advance) -> Pulled:
    card = find_chat_card(model.name) if model.kind == "chat" else None
    if card is not None:
        return pull_chat_model(card, folder, advance)
    if model.in_hub_cache:
        if quiet or not stderr().is_terminal:
            from huggingface_hub.utils.tqdm import disable_progress_bars

            disable_progress_bars()
        return pull_snapshot(model, advance)

    path = model.path or embedded_folder(model.name).path  # which says what to install
    return Pulled(path, path.stat().st_size, file_sha256(path, advance), "present")


@app.command("verify")
def verify(
    name: Annotated[
        str | None, typer.Argument(help="One model; else all local ones.", show_default=False)
    ] = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Hash the models that are here again; exit code 1 when one differs or is named and missing."""
    folder = settings_from(None, changes).llama.model_folder
    models = [find_named(name, folder)] if name else [m for m in named_models(folder) if m.path]
    found = []
    for model in models:
        with ByteBars(as_json, model.name) as advance:
            found.append(verify_model(model, advance))
    bad = [one for one in found if one.state in ("differs", "missing")]
    if as_json:
        rows = [{**one._asdict(), "path": one.path and str(one.path)} for one in found]
        print_json({"ok": not bad, "models": rows})
    else:
        for one in found:
            where = one.problem or str(one.path or f"fetch it: `carrel models pull {one.name}`")
            colour = COLOURS[one.state]
            state = "unknown digest" if one.state == "unknown" else one.state
            stdout().print(f"[{colour}]{state}[/{colour}]  {escape(one.name)}  {escape(where)}")
    if bad:
        raise typer.Exit(1)
