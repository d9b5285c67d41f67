"""The services that the routes of one server share, and how a route asks FastAPI for them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from app.session import Session
from core.auth import AuthContext
from core.errors import PolicyError
from core.settings import Settings
from serve.access.audit import Audit
from serve.access.auth import Authenticator
from serve.access.limits import CallerLimits
from serve.errors import NotAuthenticated
from serve.jobs import Jobs
from serve.operator.reload import Load, Reload
from serve.questions import RunEvent, Runner
from serve.runs.finished import Finished
from serve.runs.runner import SessionRunner
from serve.runs.watch import Watchers
from serve.self_checks import SelfChecks
from serve.telemetry.metrics import Metrics
from serve.telemetry.tracing import Tracing, make_tracing
from stores.accounts.keys import Keys
from stores.ports import Catalogue, RunLog


@dataclass(eq=False)
class AppState:
    """The open session and the services over it; FastAPI keeps it as `app.state.services`."""

    settings: Settings
    session: Session
    authenticator: Authenticator
    runner: SessionRunner
    jobs: Jobs
    keys: Keys
    metrics: Metrics
    catalogue: Catalogue
    runs: RunLog
    limits: CallerLimits
    audit: Audit
    reload: Reload
    checks: SelfChecks
    tracing: Tracing | None = None
    followers: list[Callable[[Settings], None]] = field(default_factory=list)

    def use(self, settings: Settings) -> None:
        """Exchange the settings, for all that begins from now on."""
        self.settings = settings  # one reference: never half of them
        self.session.settings = settings
        self.runner.use(settings)
        self.limits.settings = settings
        self.audit.use(settings)
        self.jobs.use(settings)
        self.checks.use(settings)
        for follow in self.followers:
            follow(settings)


def make_app_state(
    session: Session, *, allow_anonymous: bool = False, load: Load | None = None
) -> AppState:
    """Build the services over an open session; `load` reads the settings again."""
    accounts, settings = session.accounts, session.settings
    limits = CallerLimits(settings, accounts.spending)
    audit = Audit(accounts.audit(settings), settings)
    tracing = make_tracing(settings)
    traced = [tracing] if tracing else []
    runner = SessionRunner(session, settings, Watchers([limits, *traced, audit]))
    metrics = Metrics(runner, session.caches)
    runner.asker.finished = Finished(session, metrics.runs)
    return AppState(
        settings=settings,
        session=session,
        authenticator=Authenticator(accounts.keys, settings, allow_anonymous=allow_anonymous),
        runner=runner,
        jobs=Jobs(session, settings),
        keys=accounts.keys,
        metrics=metrics,
        catalogue=session.catalogue,
        runs=session.runs,
        limits=limits,
        audit=audit,
        reload=Reload(load),
        checks=SelfChecks(session, settings),
        tracing=tracing,
    )


def services_of(request: Request) -> AppState:
    """Return the parts of this server."""
    parts: AppState = request.app.state.services
    return parts


async def parts_of(request: Request) -> AppState:
    """Return the parts of this server; not on a thread, as FastAPI calls what is not async."""
    return services_of(request)


async def caller(request: Request) -> AuthContext:
    """Return who is calling, verified; raises NotAuthenticated (401), LimitExceeded (429)."""
    parts = services_of(request)
    header = request.headers.get("authorization")
    address = request.client.host if request.client else ""
    try:
        entry = parts.authenticator.authenticate(header)
    except NotAuthenticated:
        if header is not None:
            await parts.limits.wrong_key(address)
            parts.audit.note("login_failed", None, address=address)
        raise
    parts.audit.entered(entry, address)
    request.scope["carrel.caller"] = entry.auth  # for the log
    request.scope["carrel.key"] = entry.key.id if entry.key else ""  # for jobs
    route = getattr(request.scope.get("route"), "path", "")
    request.scope["carrel.limits"] = await parts.limits.enter(entry.auth, entry.key, route)
    return entry.auth


def check_standing(request: Request) -> None:
    """Raise NotAuthenticated when who sent a request that is still at work may do so no longer.

    To be asked before each piece of a stream: a key may be revoked, also beside this process, and a
    token expires.
    """
    auth = request.scope.get("carrel.caller")
    header = request.headers.get("authorization")
    if auth is not None and services_of(request).authenticator.caller(header) != auth:
        raise NotAuthenticated("the caller's rights have changed meanwhile", hint="ask again")


async def while_standing(
    request: Request, events: AsyncIterator[RunEvent]
) -> AsyncIterator[RunEvent]:
    """Yield the events of a run for as long as who asked may have them (`check_standing`)."""
    async for event in events:
        check_standing(request)
        yield event


async def runner(request: Request) -> Runner:
    """Return what runs questions."""
    return services_of(request).runner


async def admin(request: Request) -> AuthContext:
    """Return the caller who has the admin's role; raises PolicyError (403)."""
    return with_role(await caller(request), {services_of(request).settings.serve.admin_role})


async def writer(request: Request) -> AuthContext:
    """Return the caller who may change documents; raises PolicyError (403)."""
    return with_role(await caller(request), set(services_of(request).settings.serve.writer_roles))


def with_role(auth: AuthContext, roles: set[str]) -> AuthContext:
    """Return the caller when they have one of the roles."""
    if not auth.roles & roles:
        raise PolicyError(
            f"this needs the role {' or '.join(sorted(roles))}",
            hint="ask the operator for a key with it",
        )
    return auth


Caller = Annotated[AuthContext, Depends(caller)]
Admin = Annotated[AuthContext, Depends(admin)]
DocumentWriter = Annotated[AuthContext, Depends(writer)]
Parts = Annotated[AppState, Depends(parts_of)]
Asking = Annotated[Runner, Depends(runner)]
