"""The services that the routes of one server share, and how a route asks FastAPI for them."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Request
from pydantic import ValidationError

from app.session import Session
from core.auth import AuthContext
from core.errors import CallerError, CarrelError, OperatorError, PolicyError
from core.settings import FIELDS, LIVE, SECRETS, Settings, taken_over
from serve.access.audit import Audit
from serve.access.auth import Authenticator
from serve.access.limits import CallerLimits
from serve.errors import NotAuthenticated, Refused
from serve.jobs import Jobs
from serve.questions import RunEvent
from serve.runs.answer_cache import AnswerCache
from serve.runs.runner import SessionRunner
from serve.self_checks import SelfChecks
from serve.shared_jobs import SharedJobs, make_jobs
from serve.telemetry.logs import log
from serve.telemetry.metrics import Metrics
from serve.telemetry.tracing import Tracing, make_tracing
from stores.accounts.keys import Keys
from stores.coordination import ERASED, SharedCoordination
from stores.ports import Catalogue, RunLog

Load = Callable[[], Settings]


@dataclass(frozen=True)
class Reloaded:
    """Say which settings changed, with the value before and now, and which wait for a restart."""

    changed: dict[str, tuple[Any, Any]]
    needs_restart: list[str]

    def describe(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        pairs = self.changed.items()
        changed = [{"name": name, "before": old, "after": new} for name, (old, new) in pairs]
        return {"changed": changed, "needs_restart": self.needs_restart}


class Reload:
    """Exchange the settings as a whole; what runs goes on with those it began with."""

    def __init__(self, load: Load | None) -> None:
        """Read by `load`; without it there is nothing to read again."""
        self._load = load
        self._lock = threading.Lock()

    def now(self, services: AppState, auth: AuthContext | None) -> Reloaded:
        """Read the settings and take over what can be; raises Refused and changes nothing else.

        `auth` is None for the operator's signal.
        """
        with self._lock:
            old = services.settings
            try:
                new, wanted = self._read(old)
            except CarrelError as error:
                services.audit.record("settings", auth, refused=error.rule)
                hint = error.hint or "the settings stay as they were"
                raise Refused(
                    409, "invalid_settings", error.rule, value=error.value, hint=hint
                ) from None
            before, after = (one.shown() for one in (old, new))
            names = [name for name in before if before[name] != after[name]]
            waiting = sorted(  # those that have another value in the file than in force
                name
                for name in FIELDS
                if name not in LIVE and new.value(name) != wanted.value(name)
            )
            done = Reloaded({name: (before[name], after[name]) for name in names}, waiting)
            changed = {name: list(values) for name, values in done.changed.items()}
            facts: dict[str, Any] = {"changed": changed, "needs_restart": done.needs_restart}
            services.audit.record("settings", auth, **facts)
            services.use(new)
            if services.watch is not None:
                services.watch.tell()
        return done

    def on_signal(self, services: AppState) -> None:
        """Read the settings again and log the result; for a thread of its own."""
        try:
            done = self.now(services, None)
        except CarrelError as error:
            log.error("the settings stay as they were: %s", error)
            return
        except Exception:
            log.exception("the settings stay as they were")
            return
        changed = ", ".join(f"{name}={value[1]}" for name, value in done.changed.items())
        log.warning("settings were read again; changed: %s", changed or "nothing")
        if done.needs_restart:
            log.warning("these need a restart: %s", ", ".join(done.needs_restart))

    def _read(self, old: Settings) -> tuple[Settings, Settings]:
        if self._load is None:
            raise OperatorError("this server was started without settings that can be read again")
        wanted = self._load()
        try:
            return taken_over(old, wanted), wanted
        except ValidationError as error:
            rule = error.errors()[0]["msg"].removeprefix("Value error, ")
            hint = "some of these need a restart"
            raise CallerError(rule, hint=hint) from None


assert not SECRETS & LIVE  # their values are reported


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
    watch: Watch | None = None

    def use(self, settings: Settings) -> None:
        """Exchange the settings, for all that begins from now on."""
        self.settings = settings  # one reference: never half of them
        self.runner.use(settings)
        self.audit.use(settings)
        self.session.settings = self.limits.settings = settings
        self.jobs.settings = self.checks.settings = settings
        for follow in self.followers:
            follow(settings)


SETTINGS = "settings"  # how often a server has read them again


class Watch:
    """Follow what another server has done: it read its settings again, or erased documents."""

    def __init__(self, services: AppState, shared: SharedCoordination) -> None:
        """Begin with how it is now."""
        self._services, self._shared = services, shared
        self._known = shared.versions()
        self._following = 0  # the thread that reads the settings because another server did

    def tell(self) -> None:
        """Have the other servers read their settings again."""
        if self._following != threading.get_ident():
            self._shared.bump(SETTINGS)
            self._known[SETTINGS] = self._known.get(SETTINGS, 0) + 1

    def look(self) -> None:
        """Do here what has to follow."""
        before, self._known = self._known, self._shared.versions()
        changed = {name for name in self._known if self._known[name] != before.get(name)}
        if ERASED in changed:
            self._services.session.caches.forget()
        if SETTINGS in changed:
            self._following = threading.get_ident()
            self._services.reload.on_signal(self._services)
            self._following = 0


def make_app_state(
    session: Session, *, allow_anonymous: bool = False, load: Load | None = None
) -> AppState:
    """Build the services over an open session; `load` reads the settings again."""
    accounts, settings = session.accounts, session.settings
    coordination = session.maintenance.coordination
    limits = CallerLimits(settings, accounts.spending, coordination)
    audit = Audit(accounts.audit(settings), settings)
    tracing = make_tracing(settings)
    traced = [tracing] if tracing else []
    runner = SessionRunner(session, settings, [limits, *traced, audit])
    metrics = Metrics(runner, session.caches)
    runner.answerer.cache = AnswerCache(session, metrics.runs)
    services = AppState(
        settings=settings,
        session=session,
        authenticator=Authenticator(
            accounts.keys, settings, allow_anonymous=allow_anonymous, coordination=coordination
        ),
        runner=runner,
        jobs=make_jobs(session, settings, works=settings.serve.works),
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
    if isinstance(services.jobs, SharedJobs) and isinstance(coordination, SharedCoordination):
        services.watch = Watch(services, coordination)
        services.jobs.watchers.append(services.watch.look)
    return services


def services_of(request: Request) -> AppState:
    """Return the services of this server."""
    services: AppState = request.app.state.services
    return services


async def services_dependency(request: Request) -> AppState:
    """Return the services of this server; not on a thread, as FastAPI calls what is not async."""
    return services_of(request)


async def caller(request: Request) -> AuthContext:
    """Return who is calling, verified; raises NotAuthenticated (401), LimitExceeded (429)."""
    services = services_of(request)
    header = request.headers.get("authorization")
    address = request.client.host if request.client else ""
    try:
        await services.authenticator.prepare(header)
        entry = services.authenticator.authenticate(header, _session(request))
    except NotAuthenticated:
        if header is not None:
            await services.limits.wrong_key(address)
            services.audit.note("login_failed", None, address=address)
        raise
    services.audit.note_login(entry, address)
    request.scope["carrel.caller"] = entry.auth  # for the log
    request.scope["carrel.how"] = entry.how
    request.scope["carrel.key"] = entry.key.id if entry.key else ""  # for jobs
    route = getattr(request.scope.get("route"), "path", "")
    request.scope["carrel.limits"] = await services.limits.enter(entry.auth, entry.key, route)
    return entry.auth


def session_cookie(services: AppState) -> str:
    """Return the name of the cookie of a browser's session.

    Over https no other host of the site, and no http page, can set a cookie of this name.
    """
    sign_in = services.authenticator.sign_in
    return "__Host-carrel" if sign_in and sign_in.is_https else "carrel"


def _session(request: Request) -> str:
    """Return the secret of the browser's session; "" where a page of another origin asks.

    Writes of other pages are refused before; this keeps their reads out as well.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return ""
    return request.cookies.get(session_cookie(services_of(request)), "")


def check_standing(request: Request) -> None:
    """Raise NotAuthenticated when who sent a request that is still at work may do so no longer.

    To be asked before each piece of a stream: a key may be revoked, also beside this process, and a
    token expires.
    """
    auth = request.scope.get("carrel.caller")
    header = request.headers.get("authorization")
    if auth is None:
        return
    authenticate = services_of(request).authenticator.authenticate
    if authenticate(header, _session(request)).auth != auth:
        raise NotAuthenticated("the caller's rights have changed meanwhile", hint="ask again")


async def while_standing(
    request: Request, events: AsyncIterator[RunEvent]
) -> AsyncIterator[RunEvent]:
    """Yield the events of a run for as long as who asked may have them (`check_standing`)."""
    async for event in events:
        check_standing(request)
        yield event


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
Services = Annotated[AppState, Depends(services_dependency)]
