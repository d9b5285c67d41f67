"""Fixtures for all tests.

No test touches the user's data: `CARREL_DATA` is a fresh folder in each, and no other `CARREL_`
variable is set, but that the rules decide (whatever listens on this machine), that commands take
the embedder of English, which is the fast one, and where a chat server keeps its state. The cache
alone is the user's own, where the exported embedder files survive between runs (making them takes
seconds), and so is the path of llama-server. The network is closed by pytest-socket
(pyproject.toml).

- `embedder`: the deterministic fake of fakes.py, any language.
- `store`: an empty data directory, open, for that embedder's model.
- `open_store`: opens one with other settings or again: `open_store(index="chroma")`.
- `collection`: the collection "main" of tenant "acme" in `store`.
- `shelf`: `store`, `collection` and `embedder` together; `open_shelf` has other settings.
- `index`: makes a retrievers.types.Index of a collection (by default `collection`).
- `harbour`, `books`, `find`: those of harbour.py and record_books.py.
- those of tiny_models.py (encoders of random weights, the embedded models), and the endpoint of
  embedding_endpoints.py.
- `tiny_model`: a GGUF of random weights; `llama_server`: a real server of it, one for all tests.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fakes import FakeEmbedder, OpenShelf, Shelf
from hypothesis import settings
from llama_servers import MISSING, RunningServer, served
from tiers import QUICK, examples, slow_tests
from tiny_gguf import write_tiny_gguf

from core.profile import Profile
from core.settings import PREFIX, Settings
from retrievers.types import Index
from serve.telemetry.logs import LOGGERS
from stores.sqlite import schema
from stores.sqlite.catalogue import Collection
from stores.store import Store

TESTS = Path(__file__).parent
pytest_plugins = [
    "tiny_models",
    "embedding_endpoints",
    "harbour",
    "record_books",
    "syncs",
    "local_web",
]
KEPT = {PREFIX + "CACHE", PREFIX + "LLAMA__SERVER", PREFIX + "EMBEDDER"}
os.environ[PREFIX + "EMBEDDER"] = "embedded-en"  # here, so that fixtures of a session see it

# A busy machine must not fail a test, and a run must not depend on the runs before it.
settings.register_profile("ci", deadline=None, derandomize=True, database=None)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=examples(100))
settings.load_profile("quick" if QUICK else "ci")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves out: slow.txt, and PostgreSQL beyond one contract suite."""
    slow = slow_tests()
    for item in items:
        name = getattr(item, "originalname", None) or item.name
        path = item.path.relative_to(TESTS).as_posix()
        again = "[postgres" in item.name and path != "contracts/test_catalogue.py"
        if again or f"{path}::{name}" in slow:
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def no_user_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        if name not in KEPT:
            monkeypatch.delenv(name)
    monkeypatch.setenv(PREFIX + "DATA", str(tmp_path / "data"))
    monkeypatch.setenv(PREFIX + "REASONER", "rules")
    monkeypatch.setenv(PREFIX + "LLAMA__HOME", str(tmp_path / "llm"))
    monkeypatch.setenv(PREFIX + "LLAMA__MODEL_FOLDER", str(tmp_path / "models"))


@pytest.fixture(autouse=True)
def ids_that_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all data directories made in this process one secret: their ids can be compared."""
    monkeypatch.setattr(schema, "new_secret", lambda: "5" * 2 * schema.SECRET_BYTES)


@pytest.fixture(autouse=True)
def no_log_of_an_earlier_test() -> Iterator[None]:
    """Take back what `carrel serve` in this process did to the loggers: its stderr is closed."""
    yield
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = []
        logger.propagate = True
        logger.setLevel(logging.NOTSET)


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def open_store(tmp_path: Path, embedder: FakeEmbedder) -> Iterator[Callable[..., Store]]:
    opened: list[Store] = []

    def open_it(**values: object) -> Store:
        settings = Settings(**{"data": tmp_path / "data", **values})
        opened.append(Store(settings, embedder.model_id, create=True))
        return opened[-1]

    yield open_it
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., Store]) -> Store:
    return open_store()


@pytest.fixture
def collection(store: Store) -> Collection:
    return store.intake.open_collection("acme", "main", Profile(name="default"))


@pytest.fixture
def shelf(store: Store, collection: Collection, embedder: FakeEmbedder) -> Shelf:
    return Shelf(store, collection, embedder)


@pytest.fixture
def open_shelf(open_store: Callable[..., Store], embedder: FakeEmbedder) -> OpenShelf:
    def open_it(**values: object) -> Shelf:
        opened = open_store(**values)
        return Shelf(opened, opened.intake.open_collection("acme", "main", None), embedder)

    return open_it


@pytest.fixture
def index(store: Store, collection: Collection, embedder: FakeEmbedder) -> Callable[..., Index]:
    def make(searched: Collection = collection, **values: object) -> Index:
        settings = Settings(**{"data": store.folder, **values})
        return Index(store, searched, embedder, settings)

    return make


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny-qwen3-random.gguf")


@pytest.fixture(scope="session")
def llama_server(
    tiny_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    log = tmp_path_factory.mktemp("llama") / "server.log"
    with served(tiny_model, log) as server:
        if server is None:
            pytest.skip(MISSING)
        yield server
