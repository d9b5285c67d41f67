"""Commands in a running server: the live session, lent, and the command line run over it."""

from __future__ import annotations

import copy
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from cli.output import fail, stderr
from cli.running import Host, hosted
from core.environment import using
from core.errors import CallerError, ModelError
from core.fields.caching import CacheFields
from core.fields.llm import LlmFields
from core.fields.models import ModelFields
from core.fields.segments import SegmentFields
from core.live import LIVE, OF_STORES
from core.settings import SECRETS, Settings, load_settings

if TYPE_CHECKING:
    from graph.session import Session
    from serve.claims import Claims
    from serve.command import Command

STOPPED = 4
# What is made once, when the server starts; but these are read by every run.
MADE_ONCE = (
    frozenset(
        name
        for group in (ModelFields, LlmFields, CacheFields, SegmentFields)
        for name in group.model_fields
    )
    | OF_STORES
) - (LIVE | {"stream", "reranker", "audit_key", "serve_operator_tenant"})


def run_for(
    session: Session, claims: Claims, run: Callable[[list[str]], int]
) -> Callable[[Command], int]:
    """Return how a server runs a client's command: by `run`, over its session."""

    def run_command(command: Command) -> int:
        given = command.request
        with hosted(Host(session, claims, command)), using(given.variables):
            try:
                code = run(given.arguments)
            except KeyboardInterrupt:  # while the last words were said
                code = STOPPED
            except SystemExit as error:  # Typer's way out of a broken pipe
                code = error.code if isinstance(error.code, int) else 1
            except Exception:  # CARREL_DEBUG asks for it
                stderr().print(traceback.format_exc(), markup=False)
                code = 1
            if command.stopping:
                fail("the server was stopped meanwhile; what was finished is kept. Run it again.")
                code = STOPPED
        return code

    return run_command


def lent(session: Session, settings: Settings, *, needs_embedder: bool) -> Session:
    """Return the session with a command's settings on top of the server's.

    Raises CallerError when the command asks for what the server made once, ModelError when it needs
    an embedder and the server has none.
    """
    if needs_embedder and session.embedder is None:
        raise ModelError(
            "documents need the embedder, which the server could not load",
            hint="correct that and start the server again",
        )
    other = copy.copy(session)
    other.settings = on_top(session.settings, settings)
    return other


def on_top(server: Settings, command: Settings) -> Settings:
    """Return the server's settings with those that a command gives and may give."""
    given = command.model_fields_set
    for name in sorted(given & MADE_ONCE):
        if getattr(command, name) != getattr(server, name):
            value = None if name in SECRETS else f"{name}={getattr(command, name)}"
            raise CallerError(
                f"the running server decides {name}",
                value=value,
                hint="leave it out, or stop the server and run it again",
            )
    own = {name for name in given if name not in MADE_ONCE and _of_commands(name)}
    values = {name: getattr(server, name) for name in server.model_fields_set}
    values |= {name: getattr(command, name) for name in own}
    with using({}):  # the command's variables are among `own` as far as they count
        return load_settings(values, file="")[0]


def _of_commands(name: str) -> bool:
    """Tell whether a setting is no matter of places, servers and secrets."""
    others = ("data", "insecure_permissions", "cache", "lock_wait_s", "audit", "audit_key")
    return name not in others and not name.startswith(("serve_", "jwt_", "otel_", "llama_"))
