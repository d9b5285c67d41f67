"""The parts that every route uses, made once for a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from core.settings import Settings
from graph.session import Session
from serve.audit import Audit
from serve.auth import Doorkeeper
from serve.finished import Finished
from serve.jobs import Jobs
from serve.limits import CallerLimits
from serve.metrics import Metrics
from serve.reload import Load, Reload
from serve.runner import SessionRunner
from serve.selfchecks import SelfChecks
from serve.tracing import Tracing, make_tracing
from serve.watch import Watchers
from stores.audit import AuditLog
from stores.feedback import FeedbackNotes
from stores.keys import Keys
from stores.listing import Listing
from stores.spending import Spending


@dataclass(eq=False)
class Desk:
    """Hold the open session, who watches its door, and what runs on it."""

    settings: Settings
    session: Session
    doorkeeper: Doorkeeper
    runner: SessionRunner
    jobs: Jobs
    keys: Keys
    metrics: Metrics
    listing: Listing
    feedback: FeedbackNotes
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


def make_desk(session: Session, *, allow_anonymous: bool = False, load: Load | None = None) -> Desk:
    """Put the parts together over an open session; `load` reads the settings again."""
    database, settings = session.store.database, session.settings
    keys = Keys(database)
    limits = CallerLimits(settings, Spending(database))
    audit = Audit(AuditLog(database, settings), settings)
    tracing = make_tracing(settings)
    traced = [tracing] if tracing else []
    runner = SessionRunner(session, settings, Watchers([limits, *traced, audit]))
    metrics = Metrics(runner, settings, session.caches)
    runner.asker.finished = Finished(session, metrics.runs)
    return Desk(
        settings=settings,
        session=session,
        doorkeeper=Doorkeeper(keys, settings, allow_anonymous=allow_anonymous),
        runner=runner,
        jobs=Jobs(session, settings),
        keys=keys,
        metrics=metrics,
        listing=Listing(database),
        feedback=FeedbackNotes(database),
        limits=limits,
        audit=audit,
        reload=Reload(load),
        checks=SelfChecks(session, settings),
        tracing=tracing,
    )
