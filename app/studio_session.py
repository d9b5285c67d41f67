"""The session of Studio: its server loads `app/studio.py` once for each thing that it names."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING

from core.auth import AuthContext
from core.errors import CallerError
from core.settings import load_settings
from graph.context import Context
from graph.notes_store import NotesCaller

if TYPE_CHECKING:
    from app.session import Session


class StudioSession:
    """Open the data directory for Studio's user at the first node run, once per process."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._context: Context | None = None

    def context(self) -> Context:
        """Return the context of every run; after an error the next run tries again."""
        with self._lock:
            if self._context is None:
                self._context = self._open()
            return self._context

    def _open(self) -> Context:
        from app.session import Session  # late: models and stores are slow to import

        settings, _ = load_settings()
        auth = AuthContext(
            tenant=settings.studio.tenant,
            user=settings.studio.user,
            roles=frozenset(settings.studio.roles),
        )
        session = Session(settings)
        try:
            context = session.context(
                auth, settings.studio.collection, clarify=settings.studio.clarify, recalls=True
            )
        except BaseException:
            session.close()  # so that the operator can ingest what is missing
            raise
        self._session = session
        return context

    def notes_caller(self) -> NotesCaller:
        """Return Studio's user with their memory; raises CallerError where it is switched off."""
        context = self.context()
        assert self._session is not None
        if not self._session.settings.memory:
            raise CallerError("the memory is switched off", hint="set memory: true, and restart")
        return NotesCaller(context.auth, self._session.memory(context.auth))

    def close(self) -> None:
        """Give the data directory back."""
        with self._lock:
            if self._session is not None:
                self._session.close()
            self._session = self._context = None


studio = StudioSession()
atexit.register(studio.close)
