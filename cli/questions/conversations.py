"""`carrel conversations`: what was asked in `carrel chat` and over HTTP, to read or delete."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_TENANT, DEFAULT_USER, Data, Json, Roles, Tenant, User, Yes
from cli.options import caller, opened_catalogue, settings_from, storable
from cli.server.running import claimed, host
from cli.service.audit import record
from cli.terminal.answer import clarification_lines
from cli.terminal.draw import shortened
from cli.terminal.output import ask_to_erase, counted, print_json, stdout
from core.auth import AuthContext
from core.errors import AbsentError
from stores.ports import RunLog
from stores.runlog.conversations import Conversation

if TYPE_CHECKING:
    from graph.threads import Threads

NEWEST = 20
TITLE = 70
LAST = "last"

app = typer.Typer(help="List, show and delete kept conversations.")

Name = Annotated[str, typer.Argument(help="Its id, or 'last'.", show_default=False)]


@app.command("list")
def list_conversations(
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many.")] = NEWEST,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List the conversations of a user, last used first."""
    with _kept(data) as kept:
        found = kept.newest_conversations(caller(tenant, user, None), limit)
    if as_json:
        print_json({"conversations": [one.describe() for one in found]})
        return
    for one in found:
        when, title = one.updated_at[:19], shortened(one.title, TITLE)
        turns = counted(one.turns, "turn")
        line = f"{one.id}  {when}  {turns:>9}  {one.collection}: {title}"
        stdout().print(escape(line))


@app.command("show")
def show(
    conversation: Name,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    role: Roles = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the turns of a conversation; `carrel trace RUN` shows how one was answered.

    Text that the user may not see now, with these roles, is hidden.
    """
    auth = caller(tenant, user, role)
    with _kept(data) as kept:
        found = named(kept, auth, conversation)
        turns = kept.turns(auth, found)
    waiting = None if found.waiting is None else found.waiting.clarification.model_dump()
    if as_json:
        print_json({**found.describe(), "turns": turns, "waiting": waiting})
        return
    out = stdout()
    for turn in turns:
        out.print(f"[bold]{escape(turn['question'])}[/bold] [dim]run {turn['run_id']}[/dim]")
        for line in _turn_lines(turn):
            out.print(escape(line))
        out.print()


def _turn_lines(turn: dict[str, Any]) -> list[str]:
    asked = turn["clarification"]
    lines = [] if asked is None else clarification_lines(asked)
    if turn["reply"]:
        lines.append(f"> {turn['reply']}")
    return [*lines, *([turn["answer"]] if turn["answer"] else [])]


@app.command("delete")
def delete(
    conversation: Name,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = DEFAULT_USER,
    yes: Yes = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Delete a conversation with its turns and their runs; this cannot be undone.

    It shows what goes, and asks; without a terminal it needs --yes.
    """
    settings = settings_from(data)
    with opened_catalogue(settings) as opened:
        kept = opened.runs
        auth = caller(tenant, user, None)
        found = named(kept, auth, conversation)
        if not yes:
            ask_to_erase(_going(found, kept.count_runs(found)))
        with claimed(auth, found.id), _threads(opened.folder) as threads:
            threads.delete(found.id)
            kept.delete_conversation(found)
        record(opened.accounts, settings, "deletion", tenant, user=user, conversation=found.id)
    if as_json:
        print_json(found.describe())
    else:
        stdout().print(f"{found.id} is deleted")


def _going(found: Conversation, runs: int) -> str:
    title = f" “{shortened(found.title, TITLE)}”" if found.title else ""
    turns = counted(found.turns, "turn")
    return f"conversation {found.id}{title} with {turns} and {counted(runs, 'run')}"


def named(kept: RunLog, auth: AuthContext, name: str) -> Conversation:
    """Return a user's conversation by its id or as the last used one; raises AbsentError."""
    if name != LAST:
        return kept.load_conversation(auth, storable(name))
    newest = kept.newest_conversations(auth, 1)
    if not newest:
        raise AbsentError("there is no conversation yet", hint="`carrel chat` begins one")
    return newest[0]


@contextmanager
def _kept(data: Path | None) -> Iterator[RunLog]:
    with opened_catalogue(settings_from(data)) as opened:
        yield opened.runs


@contextmanager
def _threads(folder: Path) -> Iterator[Threads]:
    """Give the states that conversations go on from: a server's own, or those of the folder."""
    if (here := host()) is not None:
        yield here.session.asking.threads
        return
    from graph.threads import Threads

    with closing(Threads(folder)) as threads:
        yield threads
