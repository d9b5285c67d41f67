"""`carrel chat`, a dialogue that is kept, and `carrel conversations`, those that are kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from cli.arguments import (
    DEFAULT_TENANT,
    DEFAULT_USER,
    Data,
    Json,
    Steps,
    Stream,
    Tenant,
    User,
    Yes,
)
from cli.options import (
    AskOptions,
    CallerOptions,
    caller,
    opened,
    opened_catalogue,
    settings_from,
    storable,
    with_options,
    working,
)
from cli.server.access import record as record
from cli.server.running import claimed
from cli.terminal.answer import clarification_lines, shortened
from cli.terminal.output import (
    ask_to_erase,
    asks,
    counted,
    fail,
    print_json,
    read_line,
    stderr,
    stdout,
)
from cli.terminal.progress import Watching, interruptible
from cli.upkeep.forget import of_counts
from core.auth import AuthContext
from core.errors import AbsentError, CallerError
from core.language.detect import detect_language
from core.question import checked_question
from core.types import place_of
from stores.ports import RunLog
from stores.runlog.conversations import Conversation

if TYPE_CHECKING:
    from app.session import Session

NEWEST = 20  # as GET /api/v1/conversations lists
TITLE = 70  # characters, to fit a line with id, time and turns
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
    if not found:
        stdout().print("there is no conversation yet: `carrel chat` begins one")
    for one in found:
        when, title = one.updated_at[:19], shortened(one.title, TITLE)
        turns = counted(one.turns, "turn")
        line = f"{one.id}  {when}  {turns:>9}  {one.collection}: {title}"
        stdout().print(escape(line))


@app.command("show")
@with_options
def show(conversation: Name, options: CallerOptions, as_json: Json = False) -> None:
    """Show the turns of a conversation; `carrel trace RUN` shows how one was answered.

    Text that the user may not see now, with these roles, is hidden.
    """
    auth = options.auth
    with _kept(options.data) as kept:
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
    """Delete a conversation with its turns, runs and notes; this cannot be undone.

    It shows what goes, and asks; without a terminal it needs --yes.
    """
    settings = settings_from(data)
    with opened(settings) as session:
        kept = session.runs
        auth = caller(tenant, user, None)
        found = named(kept, auth, conversation)
        if not yes:
            title = f" “{shortened(found.title, TITLE)}”" if found.title else ""
            turns, runs = counted(found.turns, "turn"), counted(kept.count_runs(found), "run")
            more = of_counts(kept.would_delete_conversation(found))
            more = f", {more}" if more else ""
            ask_to_erase(f"conversation {found.id}{title} with {turns} and {runs}{more}")
        with claimed(auth, found.id), working(session, "conversations delete", quiet=as_json):
            kept.delete_conversation(found)
            session.maintenance.tidy()
        record(session.accounts, settings, "deletion", tenant, user=user, conversation=found.id)
    if as_json:
        print_json(found.describe())
    else:
        stdout().print(f"{found.id} is deleted")


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


LEAVE = {"/quit", "/exit", "/q"}
FORGET = {"/new", "/clear"}
HELP, SOURCES = "/help", "/sources"
COMMANDS = (
    "/new or /clear begins another conversation, /sources shows the passages of the last answer,"
    " /quit leaves"
)
COMMAND = re.compile(r"/[a-z]+")


@with_options
def chat(
    options: AskOptions,
    resume: Annotated[
        str | None,
        typer.Option(
            "--continue",
            help="Continue a conversation: its id, or 'last'.",
            show_default=False,
            metavar="<id>",
        ),
    ] = None,
    steps: Steps = False,
    stream: Stream = None,
) -> None:
    """Ask question after question; /new begins another conversation, /quit leaves.

    Carrel asks back once when a question is unclear.
    """
    filters = options.filters
    auth = options.auth
    check = None if resume else options.check_collections
    with opened(options.settings(stream), answers=True, check=check) as session:
        named = options.collections_in(session) if options.collection or not resume else ""
        kept = _resumed(session, auth, named, resume)
        name = kept.id if kept else ""
        last: dict[str, Any] | None = None
        while (question := _read()) not in LEAVE | {None}:
            if question in FORGET:
                name, named, last = "", kept.collection if kept else named, None
                continue
            if not question or not question.strip() or _is_answered(question, last):
                continue
            try:
                if not name:
                    checked_question(question, session.settings)  # no empty one is begun
                    name = session.runs.create_conversation(auth.tenant, auth.user, named).id
                watching = Watching(steps=steps, quiet=False)
                watching.language = detect_language(question)
                with watching, claimed(auth, name), interruptible() as cancelled:
                    run = session.ask(
                        question,
                        auth,
                        "",
                        conversation=name,
                        clarify=True,
                        where=filters,
                        on_step=watching.step,
                        on_stream=watching.stream,
                        cancelled=cancelled.is_set,
                    )
            except CallerError as error:
                fail(str(error))  # a bad question must not end the dialogue
                continue
            last = run.result
            watching.finish(last)
        if name:
            stderr().print(f"[dim]kept: carrel chat --continue {name}[/dim]")


def _resumed(
    session: Session, auth: AuthContext, collection: str, name: str | None
) -> Conversation | None:
    """Return the conversation to go on with, and say what it is about and what it waits for."""
    from app.session import collection_of

    err = stderr()
    kept = None
    if name is None:
        session.catalogue.collections_named(auth, collection)
    else:
        kept = named(session.runs, auth, name)
        collection = collection_of(kept, collection)
        err.print(f"[dim]{escape(kept.title)}[/dim]")
    err.print(f"[dim]{collection}: ask a question; /help lists what else there is[/dim]")
    if kept is not None and kept.waiting is not None:
        for line in clarification_lines(kept.waiting.clarification.model_dump()):
            err.print(escape(line))
    return kept


def _is_answered(line: str, last: dict[str, Any] | None) -> bool:
    """Answer a line that is a command of the dialogue; tell whether it was one."""
    if line == HELP:
        stderr().print(escape(COMMANDS))
    elif line == SOURCES:
        _print_passages(last)
    elif COMMAND.fullmatch(line):
        fail(f"there is no command {line}; {HELP} lists those there are")
    else:
        return False
    return True


def _print_passages(last: dict[str, Any] | None) -> None:
    """Print the passages that the last answer cites."""
    claims, evidence = (last["claims"], last["evidence"]) if last else ([], [])
    cited = {one["chunk_id"] for claim in claims for one in claim["citations"]}
    for item in evidence:
        if item["chunk_id"] in cited:
            place = place_of(item["section"] or "", item["page"])
            where = " · ".join(part for part in (item["source"], place) if part)
            stdout().print(f"[bold]{escape(where)}[/bold]\n{escape(item['text'])}\n")
    if not cited:
        stderr().print("no answer before this cites anything")


def _read() -> str | None:
    """Return the next line, None at the end of the input."""
    try:
        line = read_line("? " if asks() else "")
    except KeyboardInterrupt:
        return None
    return storable(line).strip() if line else None
