"""The services that the routes of one server share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from app.session import Session
from core.settings import Settings
from serve.access.audit import Audit
from serve.access.auth import Authenticator
from serve.access.limits import CallerLimits
from serve.background.jobs import Jobs
from serve.background.upkeep import SelfChecks
from serve.operator.reload import Load, Reload
from serve.runs.finished import Finished
from serve.runs.runner import SessionRunner
from serve.runs.watch import Watchers
from serve.telemetry.metrics import Metrics
from serve.telemetry.tracing import Tracing, make_tracing
from stores.accounts.keys import Keys
from stores.ports import Catalogue, RunLog


@dataclass(eq=False)
class AppState:
    """The open session and the services over it; FastAPI keeps it as `app.state.desk`."""

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
