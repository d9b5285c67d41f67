"""The parts that every route uses, made once for a server."""

from __future__ import annotations

from dataclasses import dataclass

from core.settings import Settings
from graph.session import Session
from serve.audit import Audit
from serve.auth import Doorkeeper
from serve.finished import Finished
from serve.jobs import Jobs
from serve.limits import CallerLimits
from serve.metrics import Metrics
from serve.runner import SessionRunner
from serve.watch import Watchers
from stores.audit import AuditLog
from stores.feedback import FeedbackNotes
from stores.keys import Keys
from stores.listing import Listing
from stores.spending import Spending


@dataclass(frozen=True)
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


def make_desk(session: Session, *, allow_anonymous: bool = False) -> Desk:
    """Put the parts together over an open session."""
    database, settings = session.store.database, session.settings
    keys = Keys(database)
    limits = CallerLimits(settings, Spending(database))
    audit = Audit(AuditLog(database, settings), settings)
    runner = SessionRunner(session, settings, Watchers([limits, audit]))
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
    )
