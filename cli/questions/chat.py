"""`carrel chat`: a dialogue that is kept; follow-up questions know what was asked before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cli.arguments import DEFAULT_COLLECTION, Steps, Stream
from cli.options import AskOptions, opened, storable, with_ask_options
from cli.questions.conversations import named as kept_as
from cli.server.running import claimed
from cli.terminal.answer import clarification_lines
from cli.terminal.output import asks, fail, read_line, stderr
from cli.terminal.watching import Watching, interruptible
from core.auth import AuthContext
from core.errors import CallerError
from core.question import checked_question
from stores.runlog.conversations import Conversation

if TYPE_CHECKING:
    from app.session import Session

LEAVE = {"/quit", "/exit", "/q"}
FORGET = "/new"


@with_ask_options
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
    named, filters = options.collections, options.filters
    auth = options.auth
    with opened(options.settings(stream)) as session:
        kept = _resumed(session, auth, named, resume)
        name = kept.id if kept else ""
        while (question := _read()) not in LEAVE | {None}:
            if question == FORGET:
                name, named = "", kept.collection if kept else named
                continue
            if not question or not question.strip():
                continue
            try:
                if not name:
                    checked_question(question, session.settings)  # no empty one is begun
                    name = _begun(session, auth, named)
                watching = Watching(steps=steps, quiet=False)
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
            watching.finish(run.result)
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
        kept = kept_as(session.runs, auth, name)
        collection = collection_of(kept, "" if collection == DEFAULT_COLLECTION else collection)
        err.print(f"[dim]{escape(kept.title)}[/dim]")
    err.print(f"[dim]{collection}: ask a question; /new starts over, /quit leaves[/dim]")
    if kept is not None and kept.waiting is not None:
        for line in clarification_lines(kept.waiting.clarification.model_dump()):
            err.print(escape(line))
    return kept


def _begun(session: Session, auth: AuthContext, collection: str) -> str:
    return session.runs.create_conversation(auth.tenant, auth.user, collection).id


def _read() -> str | None:
    """Return the next line, None at the end of the input."""
    if asks():
        stderr().print("[bold]?[/bold] ", end="")
    try:
        line = read_line()
    except KeyboardInterrupt:
        return None
    return storable(line).strip() if line else None
