"""Conversations over a few documents made by hand, which the fake embedder reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes import FakeEmbedder, write

import app.session
from app.session import Session
from core.auth import AuthContext
from core.profile import Profile
from core.settings import Settings, load_settings
from core.trace import RunRecord
from stores.sqlite.catalogue import Collection
from stores.sqlite.rows import DocumentRow
from stores.store import Store

AUTH = AuthContext(tenant="default", user="ann")


def filled(folder: Path, rows: Callable[[Collection], Sequence[DocumentRow]]) -> Path:
    """Make a data directory whose collection "main" holds the documents that `rows` builds."""
    embedder = FakeEmbedder()
    with Store(Settings(data=folder), embedder.model_id, create=True) as store:
        main = store.intake.open_collection("default", "main", Profile(name="default"))
        write(store, main, rows(main), embedder)
    return folder


@contextmanager
def reopening(data: Path, **always: Any) -> Iterator[Callable[..., Session]]:
    """Open a data directory again and again, as after restarts; the last one is closed."""
    held: list[Session] = []

    def again(**flags: Any) -> Session:
        while held:
            held.pop().close()
        given = {"data": data, "reasoner": "rules", **always, **flags}
        held.append(Session(load_settings(given)[0]))
        return held[0]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(app.session, "open_embedder", lambda settings: FakeEmbedder())
        yield again
        while held:
            held.pop().close()


def begin(session: Session) -> str:
    return session.store.runs.create_conversation("default", "ann", "main").id


def say(session: Session, name: str, text: str, auth: AuthContext = AUTH, **more: Any) -> RunRecord:
    return session.ask(text, auth, "", conversation=name, **more)
