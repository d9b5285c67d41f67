"""One server for all tests of HTTP: two tenants, open and closed documents, callers of every kind.

- `session`: an open session over tenants "acme" (collections "guide" and, for editors, "closed")
  and "zoo" (collection "guide").
- `served`: a server over it; `served.client("admin")` calls it as one kind of caller (KINDS).
- `library`: a copy of the data directory that the tests of commands use.
- `server`: one over the sample corpora, of the protocols of others alone (protocol_servers.py).
- `browser_page`, `browser_pages`: a real browser on that server (browser.py).
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import browser_page as browser_page
from browser import browser_pages as browser_pages
from browser import chromium as chromium
from commands import built_library, copied, made_once, write_files
from ingesting import ingest_corpora
from protocol_servers import CORPORA as PROTOCOL_CORPORA
from protocol_servers import Server, serving
from serving import Served, running

from app.session import Session
from core.settings import load_settings
from serve.services import make_app_state
from stores.accounts.keys import Keys
from stores.store import parts

OPEN = {
    "candle.md": "# Candles\n\nThe maximum height of the candle flame is 42 mm. A candle burns"
    " because the wick draws melted wax up to the flame.\n",
    "чайник.txt": "Чайник\n\nЧайник закипает за три минуты.\n",
}
CLOSED = {"budget.md": "# Budget\n\nThe secret budget of the museum is 900 euros.\n"}
OTHER = {"mole.md": "# Moles\n\nA mole digs eleven tunnels every day.\n"}
CORPORA = (
    (OPEN, "guide", "acme", ""),
    (CLOSED, "closed", "acme", "editor"),
    (OTHER, "guide", "zoo", ""),
)
KINDS = {
    # kind: tenant, user, roles
    "reader": ("acme", "ann", ()),
    "editor": ("acme", "eve", ("editor",)),
    "writer": ("acme", "wim", ("writer",)),
    "admin": ("acme", "ada", ("admin",)),
    "other tenant": ("zoo", "ann", ("editor",)),
    "revoked": ("acme", "ann", ("admin",)),
    "expired": ("acme", "ann", ("admin",)),
}


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    base = tmp_path_factory.mktemp("served")
    flags: dict[str, object] = {"data": base / "data", "reasoner": "rules"}
    # Tests call more often than people.
    flags |= {"serve_ask_rate": 0, "serve_rate": 0, "serve_wrong_keys": 0}
    ingest_corpora(
        base / "data",
        (
            ([write_files(base / str(number), files)], collection, None, tenant, acl)
            for number, (files, collection, tenant, acl) in enumerate(CORPORA)
        ),
    )
    with Session(load_settings(flags)[0]) as opened:
        yield opened


@pytest.fixture(scope="session")
def served(session: Session) -> Iterator[Served]:
    headers = {"no key": {}, "wrong key": {"Authorization": f"Bearer carrel_{'0' * 12}_{'0' * 64}"}}
    keys = Keys(parts(session.store).database)
    long_ago = Keys(
        parts(session.store).database, lambda: datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    )
    for kind, (tenant, user, roles) in KINDS.items():
        maker = long_ago if kind == "expired" else keys
        text, key = maker.create(tenant, user=user, roles=frozenset(roles), days=1)
        if kind == "revoked":
            keys.revoke(key.id)
        headers[kind] = {"Authorization": f"Bearer {text}"}
    services = make_app_state(session)
    with running(services) as url:
        yield Served(url, services, headers)


@pytest.fixture
def library(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copied(built_library(tmp_path_factory.getbasetemp()), tmp_path / "copy")


@pytest.fixture(scope="session")
def protocols(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = made_once(
        tmp_path_factory.getbasetemp(),
        "protocols",
        lambda data: ingest_corpora(data, PROTOCOL_CORPORA),
    )
    data = copied(made, tmp_path_factory.mktemp("protocols") / "data")
    settings = load_settings({"data": data, "reasoner": "rules"})[0]
    with Session(settings) as opened, serving(opened) as server:
        yield server


@pytest.fixture
def server(protocols: Server) -> Server:
    protocols.runner.reset()
    return protocols


@pytest.fixture(scope="session")
def uploads(session: Session) -> Path:
    return session.store.folder / "uploads"
