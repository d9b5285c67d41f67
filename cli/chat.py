"""`carrel chat`: a dialogue; follow-up questions know what was asked before."""

from __future__ import annotations

import sys

from cli.ask import caller
from cli.interrupt import interruptible
from cli.options import (
    DEFAULT_COLLECTION,
    DEFAULT_TENANT,
    CollectionName,
    Data,
    Roles,
    Set,
    Steps,
    Stream,
    Tenant,
    User,
    opened,
    settings_from,
    storable,
)
from cli.output import fail, stderr
from cli.watching import Watching

LEAVE = {"/quit", "/exit", "/q"}
FORGET = "/new"


def chat(
    collection: CollectionName = DEFAULT_COLLECTION,
    tenant: Tenant = DEFAULT_TENANT,
    user: User = "local",
    role: Roles = None,
    steps: Steps = False,
    stream: Stream = None,
    data: Data = None,
    changes: Set = None,
) -> None:
    """Ask question after question; /new forgets the dialogue, /quit leaves."""
    from core.auth import AuthContext
    from core.errors import CallerError
    from reasoning.types import Turn

    auth = caller(AuthContext, tenant, user, role)
    history: list[Turn] = []
    err = stderr()
    with opened(settings_from(data, changes, stream)) as session:
        session.store.catalogue.collection(tenant, collection)
        err.print(f"[dim]{collection}: ask a question; /new starts over, /quit leaves[/dim]")
        while (question := _read()) not in LEAVE | {None}:
            if question == FORGET:
                history.clear()
                continue
            if not question or not question.strip():
                continue
            try:
                watching = Watching(steps=steps, quiet=False)
                with watching, interruptible() as cancelled:
                    run = session.ask(
                        question,
                        auth,
                        collection,
                        history=history,
                        on_step=watching.step,
                        on_stream=watching.stream,
                        cancelled=cancelled.is_set,
                    )
            except CallerError as error:
                fail(str(error))  # a bad question must not end the dialogue
                continue
            watching.finish(run.result)
            history.append(Turn(question, run.result["answer"]))


def _read() -> str | None:
    """Return the next line, None at the end of the input."""
    if sys.stdin.isatty():
        stderr().print("[bold]?[/bold] ", end="")
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        return None
    return storable(line).strip() if line else None
