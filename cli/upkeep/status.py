"""`carrel status`, `collections`, `documents` and `config`: what is there, and what is set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import CollectionName, Data, Json, Set, values
from cli.options import (
    CallerOptions,
    collection_of,
    flags_from,
    opened_catalogue,
    storable,
    with_options,
)
from cli.server.running import host
from cli.terminal.answer import shortened
from cli.terminal.output import counted, plain_table, print_json, stderr, stdout, warn
from core.auth import AuthContext
from core.errors import CallerError, CarrelError, OperatorError
from core.profile import load_profile
from core.settings import (
    FIELDS,
    LIVE,
    Settings,
    load_settings,
    nearest,
    unknown_variables,
    variable_of,
)
from models.chat.open_chat import served_model
from models.chat.types import NoConnection
from stores.index.place import recorded_settings
from stores.index.server import glance
from stores.lock import read_owner
from stores.ports import Record

JOBS = 20  # the newest that are listed; chosen
SHOWN_STATES = ("waiting", "running", "failed")
TITLE = 70  # characters, chosen to fit a line


@with_options
def collections(options: CallerOptions, as_json: Json = False) -> None:
    """List the collections in which the caller may see a document, and how many."""
    auth = options.auth
    with opened_catalogue(options.settings()) as kept:
        found = kept.catalogue.list_collections(auth)
        for one in found:
            of = kept.catalogue.collection(auth.tenant, one["name"])
            if acl := kept.intake.default_access(of):
                one["default_acl"] = acl
        warnings = _warnings(kept)
    if as_json:
        print_json({"collections": found, **warnings})
        return
    for one in found:
        stdout().print(escape(collection_line(one)))
    _say(warnings)
    if not found:
        stderr().print("[dim]there are no documents for you; `carrel ingest PATH` adds some[/dim]")


@with_options
def documents(
    collection: CollectionName = None,
    *,
    options: CallerOptions,
    as_json: Json = False,
) -> None:
    """List the documents of a collection that the caller may see, by their ids."""
    auth = options.auth
    with opened_catalogue(options.settings()) as kept:
        named = collection_of(kept, auth, collection)
        found = kept.catalogue.list_documents(auth, named)
        warnings = _warnings(kept)
    if as_json:
        print_json({"documents": found, **warnings})
        return
    for one in found:
        stdout().print(escape(_document_line(one)))
    if not found:
        stderr().print("[dim]it has no documents for you; `carrel ingest PATH -c` adds some[/dim]")
    _say(warnings)


def collection_line(one: dict[str, Any]) -> str:
    """Return a collection as a person reads it."""
    line = f"{one['name']}: {counted(one['documents'], 'document')}"
    line += f", {counted(one['chunks'], 'chunk')}" if "chunks" in one else ""
    line += f" (profile {one['profile']})" if one["profile"] != "default" else ""
    later = one.get("default_acl")
    return f"{line}; later ones are read by {', '.join(later)}" if later else line


def _document_line(one: dict[str, Any]) -> str:
    name, source, title = one["document_id"], one["source"], one["title"]
    line = name if name == source else f"{name}  {source}"
    said = f"  {shortened(title, TITLE)}" if title not in ("", name, source) else ""
    return f"{line}{said}  ({counted(one['chunks'], 'chunk')})"


def _warnings(kept: Record) -> dict[str, list[str]]:
    """Return the warnings that a list comes with, nothing where the data is whole."""
    found = kept.warnings()
    return {"warnings": found} if found else {}


def _say(warnings: dict[str, list[str]]) -> None:
    for one in warnings.get("warnings", []):
        warn(one)


@with_options
def status(options: CallerOptions, as_json: Json = False) -> None:
    """Show what is there: collections, models, a running server, problems; no model is loaded.

    It counts what the caller may see. `carrel doctor` checks more, and takes longer.
    """
    auth, settings = options.auth, options.settings()
    with opened_catalogue(settings) as kept:
        report = _report(settings, kept, auth)
    if as_json:
        print_json(report)
    else:
        _show(report)


def _report(settings: Settings, kept: Record, auth: AuthContext) -> dict[str, Any]:
    last, rows = "", []
    known = {one.name: one for one in kept.catalogue.collections(auth.tenant)}
    for one in kept.catalogue.list_collections(auth):
        chunks, came = kept.catalogue.measure_collection(auth, known[one["name"]])
        rows.append({**one, "chunks": chunks})
        last = max(last, came)
    here = host()
    used = settings if here is None else here.session.settings
    model, wrong = _model(used)
    index, other = _index(settings, kept)
    return {
        "data": str(kept.folder),
        "server": _server(kept.folder),
        "collections": rows,
        "documents": sum(one["documents"] for one in rows),
        "chunks": sum(one["chunks"] for one in rows),
        "last_ingest": last or None,
        "queue": _queue(kept, auth),
        "index": index,
        "embedder": used.embedder,
        "reasoner": "llm" if model else "rules",
        "model": model or None,
        "problems": [*_problems(kept, auth), *other, *wrong],
    }


def _queue(kept: Record, auth: AuthContext) -> dict[str, Any]:
    """Count jobs by state, and list the newest: the operator's view is of the whole tenant.

    How far one at work is, the process knows that does it, or where several share a catalogue all.
    """
    here, every = host(), auth.operator
    live = here.jobs.newest(auth, JOBS, everyone=every) if here else []
    stages = {one.id: {"stage": one.stage, "done": one.done, "total": one.total} for one in live}
    rows = kept.accounts.jobs(0)
    user = None if every else auth.user
    newest = [row for row in rows.newest(auth.tenant, user, JOBS) if row.is_open_to(auth)]
    for job, one in rows.leases(newest).items():
        stages[job] = {"stage": one.stage, "done": one.done, "total": one.total}
    shown = ("id", "kind", "collection", "name", "state", "error", "notes", "documents")
    jobs = [{name: getattr(row, name) for name in shown} | stages.get(row.id, {}) for row in newest]
    return {**rows.counts(auth.tenant, user), "jobs": jobs}


def _index(settings: Settings, kept: Record) -> tuple[str, list[str]]:
    """Return the search index that the directory has, and why these settings do not open it."""
    try:
        index = kept.index(settings) or settings.index
        return index, [problem] if (problem := glance(index)) else []
    except OperatorError as error:  # settings that no directory could have are refused
        return settings.index, [str(error)]


def _server(folder: Path) -> dict[str, Any] | None:
    """Return the server that owns the directory; this process owns it where there is none."""
    owner = read_owner(folder)
    if owner is None or not owner.url:
        return None
    return {"url": owner.url, "pid": owner.pid, "since": owner.since}


def _model(settings: Settings) -> tuple[str, list[str]]:
    """Return the chat model that decides, "" for the rules, and what is wrong with it."""
    if (here := host()) is not None:
        chat = here.session.chat
        return (chat.capabilities.model, []) if chat else ("", [])
    if settings.reasoner == "rules":
        return "", []
    if given := settings.llm.provider or settings.llm.file:  # to load it takes too long
        return given, []

    try:
        return served_model(settings), []
    except CarrelError as error:
        expected = settings.reasoner == "auto" and isinstance(error, NoConnection)
        return "", [] if expected else [f"the rules decide, without a model: {error}"]


def _problems(kept: Record, auth: AuthContext) -> list[str]:
    """Return what somebody should look at, as far as a glance at the catalogue tells."""
    found = kept.warnings()
    if left := kept.unfinished_erasure():
        found.append(left)
    counts: dict[str, int] = {}
    for row in kept.intake.pending_documents():
        if row["tenant"] == auth.tenant and auth.operator:  # others would learn what is hidden
            counts[row["collection"]] = counts.get(row["collection"], 0) + row["documents"]
    return found + [
        f"{count} documents of an interrupted ingest into '{name}' are not in yet; ingest again"
        for name, count in counts.items()
    ]


def _show(report: dict[str, Any]) -> None:
    server, out = report["server"], stdout()
    out.print(escape(f"data: {report['data']}"))
    says = (
        f"{server['url']} (process {server['pid']}, since {server['since']})" if server else "none"
    )
    out.print(escape(f"server: {says}"))
    for one in report["collections"]:
        out.print(escape(collection_line(one)))
    if not report["collections"]:
        out.print("there are no documents for you; `carrel ingest PATH` adds some")
    out.print(escape(f"last ingest: {report['last_ingest'] or 'none'}"))
    if states := [f"{report['queue'][one]} {one}" for one in SHOWN_STATES if report["queue"][one]]:
        out.print(f"jobs: {', '.join(states)}")
    out.print(escape(f"index: {report['index']}"))
    out.print(escape(f"embedder: {report['embedder']}"))
    model = f" {report['model']}" if report["model"] else ""
    out.print(escape(f"reasoner: {report['reasoner']}{model}"))
    for problem in report["problems"]:
        out.print(f"[red]✗[/red] {escape(problem)}")
    if not report["problems"]:
        out.print("[green]✓[/green] no problem is known; `carrel doctor` looks closer")


def config(
    name: Annotated[
        str,
        typer.Argument(
            help="Only settings whose name holds this.",
            show_default="all",
            autocompletion=values("core.settings:FIELDS"),
        ),
    ] = "",
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help="Show what this profile changes.",
            autocompletion=values("cli.values:profiles"),
        ),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option("--mode", help="Show what dev or prod changes.", show_default=False),
    ] = None,
    data: Data = None,
    changes: Set = None,
    as_json: Json = False,
) -> None:
    """Show every setting with its value, origin and meaning."""
    loaded = load_profile(profile).settings if profile else None
    part = storable(name).strip()
    settings, origins = load_settings({**flags_from(data, changes), "serve.mode": mode}, loaded)
    values = settings.shown()
    for name, recorded in recorded_settings(settings).items():
        if values[name] != recorded:
            values[name], origins[name] = recorded, "directory"
    rows: dict[str, dict[str, Any]] = {
        name: {
            "value": values[name],
            "origin": origins[name],
            "description": field.description,
            "variable": variable_of(name),
            "live": name in LIVE,
        }
        for name, field in FIELDS.items()
        if part.lower() in name
    }
    if not rows:
        near = nearest(part)
        hint = f"the nearest is {near}" if near else "`carrel config` lists the settings"
        raise CallerError("a setting has a name with this in it", value=part, hint=hint)
    if as_json:
        print_json({"settings": rows, "unknown_variables": unknown_variables()})
        return
    table = plain_table("setting", "value", "from", "live", "meaning", overflow="fold")
    for name, row in rows.items():
        style = None if row["origin"] == "default" else "bold"
        live = "yes" if row["live"] else ""
        shown = (name, str(row["value"]), row["origin"], live, row["description"])
        table.add_row(*shown, style=style)
    stdout().print(table)
