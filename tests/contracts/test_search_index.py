"""Contract of SearchIndex: every search index of the registry answers alike, for every caller."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import behind
import numpy as np
import pytest
from fakes import FakeEmbedder, OpenShelf, Shelf, document, remove, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_servers import free_port
from postgres_server import new_catalogue

from core import distribution
from core.auth import AuthContext
from core.budget import TimeLimit, TimeUpError, limited_time
from core.errors import CallerError, OperatorError
from core.settings import Settings, load_settings
from stores.folder import ALL_FOLDERS, FOLDERS, VECTOR_FOLDERS
from stores.index.chroma import ChromaVectors
from stores.index.milvus import MilvusVectors
from stores.index.port import IndexUnavailableError, VectorIndex, VectorScope
from stores.index.registry import VECTORS, switch_index
from stores.index.server import glance
from stores.index.tracking import TrackedVectors
from stores.segments.types import Candidates
from stores.sqlite.catalogue import Collection
from stores.store import Store, parts

SERVER, MILVUS_SERVER = "chroma server", "milvus server"
KINDS = [*VECTORS, SERVER, MILVUS_SERVER]
ROLES = ["red", "blue"]
ANN = AuthContext(tenant="acme", user="ann")
RED = AuthContext(tenant="acme", user="red", roles=frozenset({"red"}))
BOTH = AuthContext(tenant="acme", user="both", roles=frozenset(ROLES))
Opener = Callable[..., Store]


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Chroma server for all tests of the session."""
    port = free_port()
    folder = tmp_path_factory.mktemp("chroma-server")
    command = [str(Path(sys.executable).with_name("chroma")), "run", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--path", str(folder)]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            try:
                urlopen(f"{url}/api/v2/heartbeat", timeout=5).close()
                break
            except (URLError, OSError):
                assert server.poll() is None
                time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="session")
def milvus_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Milvus server of milvus-lite for all tests of the session."""
    port = free_port()
    command = [str(Path(sys.executable).with_name("milvus-lite")), "server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--data-dir", str(tmp_path_factory.mktemp("milvus") / "m.db")]
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            if not glance(f"milvus {url}"):
                break
            assert server.poll() is None
            time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def values(kind: str, request: pytest.FixtureRequest) -> dict[str, object]:
    """Return the settings that choose an index; its files are made from the tenth chunk on."""
    low = {"segment_min_rows": 10, "vector_batch": 7, "segment_rebuild_min_rows": 0}
    if kind == SERVER:
        url = request.getfixturevalue("chroma_url")
        return {"index": "chroma", "chroma_url": url, "chroma_timeout_s": 60, **low}
    if kind == MILVUS_SERVER:
        url = request.getfixturevalue("milvus_url")
        return {"index": "milvus", "milvus_uri": url, "chroma_timeout_s": 60, **low}
    return {"index": kind, **low}


@pytest.fixture
def indexed(open_store: Opener, values: dict[str, object]) -> Store:
    return open_store(**values)


@pytest.fixture
def main(indexed: Store) -> Collection:
    return indexed.intake.open_collection("acme", "main", None)


def search(
    store: Store,
    collection: Collection,
    text: str,
    auth: AuthContext = ANN,
    pool: int = 5,
    **scope: object,
) -> Candidates:
    vector = FakeEmbedder().embed_query(text)
    return store.search.candidates(auth, collection.id, terms=[], vector=vector, pool=pool, **scope)


def names(store: Store, found: Candidates) -> set[str]:
    """Return the documents of what was found; each has one chunk."""
    joined = "chunks c JOIN documents d ON d.id = c.document"
    owners = dict(behind.rows(store, f"SELECT c.chunk_id, d.document_id FROM {joined}"))
    return {owners[key] for key in found.chunk_ids}


def fill(store: Store, collection: Collection, count: int, first: int = 0) -> None:
    rows = [document(collection, f"d{n}", f"word{n} common") for n in range(first, first + count)]
    write(store, collection, rows, FakeEmbedder())
    store.search.write_new(collection.id)


def test_new_rows_are_found_before_and_after_they_are_indexed(
    indexed: Store, main: Collection
) -> None:
    embedder = FakeEmbedder()
    write(indexed, main, [document(main, "first", "harbour")], embedder)
    assert names(indexed, search(indexed, main, "harbour")) == {"first"}
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    write(indexed, main, [document(main, "last", "lighthouse")], embedder)
    for text, name in (("lighthouse", "last"), ("harbour", "first"), ("word7 common", "d7")):
        found = search(indexed, main, text, pool=1)
        assert (names(indexed, found), found.notes) == ({name}, ())
        assert found.cosine is not None
        assert found.cosine[0] == pytest.approx(1.0, abs=1e-5)
    assert indexed.search.problems([main]) == []


def test_nothing_forgotten_is_found(indexed: Store, main: Collection) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    remove(indexed, main, ["d7"])
    assert "d7" not in names(indexed, search(indexed, main, "word7 common", pool=30))
    indexed.search.refresh(main)
    assert "d7" not in names(indexed, search(indexed, main, "word7 common", pool=30))
    assert indexed.search.problems([main]) == []
    remove(indexed, main, [f"d{n}" for n in range(30)])
    indexed.search.erase(main)
    assert search(indexed, main, "word1 common").chunk_ids == []
    indexed.search.remove(main.id)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rights=st.lists(st.lists(st.sampled_from(ROLES), unique=True), min_size=1, max_size=25),
    gone=st.sets(st.integers(0, 24), max_size=6),
    settled=st.booleans(),
    pool=st.sampled_from([1, 3, 40]),
)
def test_nobody_finds_what_they_may_not_see(
    indexed: Store, rights: list[list[str]], gone: set[int], settled: bool, pool: int
) -> None:
    number = len(indexed.catalogue.collections())
    made = indexed.intake.open_collection("acme", f"c{number}", None)
    rows = [
        document(made, f"{number}-{n}", f"{number} text {n}", acl=acl)
        for n, acl in enumerate(rights)
    ]
    write(indexed, made, rows, FakeEmbedder())
    if settled:
        indexed.search.refresh(made)
    else:
        indexed.search.write_new(made.id)
    remove(indexed, made, [f"{number}-{n}" for n in gone])
    for auth in (ANN, RED, BOTH, AuthContext(tenant="rival", user="ann")):
        may = {
            f"{number}-{n}"
            for n, acl in enumerate(rights)
            if n not in gone and auth.tenant == "acme" and (not acl or auth.roles & frozenset(acl))
        }
        found = search(indexed, made, f"{number} text 3", auth, pool)
        assert names(indexed, found) <= may
        assert len(found.chunk_ids) == min(pool, len(may))
        assert found.visible == len(may)


def test_a_search_keeps_to_its_scope(indexed: Store, main: Collection) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    found = search(indexed, main, "word7 common", pool=3, sources=["d1*"])
    assert all(name.startswith("d1") for name in names(indexed, found))
    assert len(found.chunk_ids) == 3
    assert search(indexed, main, "word7 common", kinds=["table"]).chunk_ids == []


def test_recall_beside_the_exact_answer(
    open_store: Opener, values: dict[str, object], kind: str
) -> None:
    store = open_store(**values)
    collection = store.intake.open_collection("acme", "pool", None)
    rows = [document(collection, f"d{n}", f"{n} {n % 7} {n % 11}") for n in range(300)]
    write(store, collection, rows, FakeEmbedder())
    store.search.refresh(collection)
    texts = {row.document_id: row.chunks[0].text for row in rows}
    vectors = FakeEmbedder().embed_documents(list(texts.values()))
    hits = 0
    for number in range(10):
        question = f"{number} {number % 3}"
        cosines = vectors @ FakeEmbedder().embed_query(question)
        least = np.sort(cosines)[-10]
        found = search(store, collection, question, pool=10)
        assert found.cosine is not None and len(found.chunk_ids) == 10
        hits += int((found.cosine >= least - 1e-5).sum())
        assert found.mean == pytest.approx(float(cosines.mean()), abs=0.01)
    assert hits >= (100 if kind == "memmap" else 95)


def test_words_vectors_and_links_answer(indexed: Store, main: Collection) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    found = indexed.search.candidates(ANN, main.id, terms=[{"word7"}], vector=None, pool=3)
    assert names(indexed, found) == {"d7"}
    [vector] = indexed.search.vectors(main.id, found.chunk_ids)
    assert vector == pytest.approx(FakeEmbedder().embed_query("word7 common"), abs=1e-6)
    assert indexed.search.languages(main.id) == {"en"}
    assert indexed.search.models(main.id) == ("fake",)
    assert indexed.search.shares(main.id, ["common"]) == {"common": pytest.approx(1.0)}
    assert indexed.search.idf(main.id, ["word7"])["word7"] > 1
    links = indexed.search.links(
        ANN, main.id, names=[("common",)], words=[{"word7"}], seeds=found.chunk_ids, limit=5
    )
    assert links is not None


def test_an_index_survives_closing(
    open_store: Opener, values: dict[str, object], indexed: Store, main: Collection
) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    indexed.close()
    again = open_store(**values)
    assert names(again, search(again, main, "word7 common", pool=1)) == {"d7"}
    assert again.maintenance.examine()["problems"] == []


def test_only_what_is_chosen_is_written(
    indexed: Store, main: Collection, values: dict[str, object]
) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    there = {name for name in ALL_FOLDERS if (indexed.folder / name).exists()}
    expected = set(FOLDERS[str(values["index"])])
    elsewhere = {"chroma_url", "milvus_uri"} & values.keys()
    assert there == (expected - set(VECTOR_FOLDERS) if elsewhere else expected)


def test_a_lost_index_is_named_and_made_again(
    indexed: Store, main: Collection, kind: str, values: dict[str, object]
) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    tracked = parts(indexed).search._tracked
    if tracked is None:
        [segment] = (indexed.folder / "segments" / str(main.id)).iterdir()
        (segment / "vectors").write_bytes(b"")
    else:
        key = next(iter(tracked.index.rows(main.id)))
        tracked.index.delete(main.id, [key])
    [problem] = indexed.search.problems([main])
    assert "carrel reindex" in problem
    found = search(indexed, main, "word7 common", pool=30)
    assert len(found.chunk_ids) == 30  # what the index lacks is looked for in the catalogue
    indexed.search.rebuild(main)
    assert indexed.search.problems([main]) == []


def test_another_index_is_refused_until_it_was_switched(
    open_store: Opener, values: dict[str, object], indexed: Store, main: Collection
) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    indexed.close()
    other = "chroma" if values["index"] == "memmap" else "memmap"
    with pytest.raises(OperatorError, match=f"carrel reindex --index {other}"):
        open_store(**values | {"index": other})
    there = Settings(data=indexed.folder, **values | {"index": other})
    assert switch_index(there, "fake", lambda *done: None) == ""
    again = open_store(segment_min_rows=10)  # what is not set is as the directory records
    assert names(again, search(again, main, "word7 common", pool=1)) == {"d7"}
    again.search.rebuild(main)
    assert {name for name in ALL_FOLDERS if (again.folder / name).exists()} <= set(FOLDERS[other])
    assert again.maintenance.examine()["problems"] == []


def test_an_index_that_cannot_be_built_leaves_the_one_before(
    indexed: Store, main: Collection, values: dict[str, object], open_store: Opener
) -> None:
    fill(indexed, main, 30)
    indexed.search.refresh(main)
    had = indexed.index(Settings())
    indexed.close()
    for name, address in (("chroma", "chroma_url"), ("milvus", "milvus_uri")):
        away = {"index": name, address: "http://127.0.0.1:9", "chroma_timeout_s": 1}
        there = Settings(data=indexed.folder, **values | away)
        with pytest.raises(IndexUnavailableError, match="was not reached"):
            switch_index(there, "fake", lambda *done: None)
    again = open_store(**values)
    assert again.index(Settings()) == had
    assert search(again, main, "word7 common", pool=1).notes == ()
    assert again.maintenance.examine()["problems"] == []


def test_what_is_not_installed_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "new"
    with monkeypatch.context() as patch:
        patch.setattr(distribution, "_is_found", lambda module: module != "langchain_chroma")
        with pytest.raises(OperatorError, match="langchain_chroma"):
            Store(Settings(data=data, index="chroma"), "fake", create=True)
    with Store(Settings(data=data), "fake") as store:
        assert store.index(Settings()) == "memmap"


@pytest.mark.parametrize(
    ("status", "reply", "said"),
    [(500, "oops", "HTTP 500"), (200, "<html></html>", "its reply is no JSON")],
)
def test_an_error_of_a_server_is_told_in_words(
    open_store: Opener, status: int, reply: str, said: str
) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        index = tracked_of(open_store(index="chroma", chroma_url=url)).index
        with pytest.raises(IndexUnavailableError, match="answered with an error") as caught:
            index.count(1)
        looked = glance(f"chroma {url}")
        server.shutdown()
    assert said in str(caught.value) and said in looked and "Error:" not in str(caught.value)


def test_all_requests_of_a_search_share_the_time_of_one(
    open_store: Opener, silent_server: str
) -> None:
    store = open_store(index="chroma", chroma_url=silent_server, chroma_timeout_s=60)
    began = time.monotonic()
    with pytest.raises(IndexUnavailableError, match="must answer in time"):
        vector = FakeEmbedder().embed_query("harbour")
        tracked_of(store).index.search(1, vector, 3, VectorScope(), began + 0.2)
    assert time.monotonic() - began < 20


def test_an_unknown_index_is_one_line(open_store: Opener) -> None:
    with pytest.raises(CallerError, match=r"unknown index: .?faiss.?\. There are memmap, chroma,"):
        open_store(index="faiss")
    with pytest.raises(CallerError, match="chroma.url must be the address"):
        open_store(index="chroma", chroma_url="nowhere")
    with pytest.raises(CallerError, match="milvus.uri must be the address"):
        open_store(index="milvus", milvus_uri="ftp://nowhere")


@pytest.fixture
def silent_server() -> Iterator[str]:
    """Take connections and never answer."""
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        held.listen(20)
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def test_an_erasure_takes_vectors_of_earlier_models_too(
    open_store: Opener, values: dict[str, object], kind: str
) -> None:
    if kind == "memmap":  # one folder has the vectors of one model
        return
    before = open_store(**values)
    main = before.intake.open_collection("acme", "main", None)
    fill(before, main, 12)
    before.close()
    later = FakeEmbedder(model_id="later")
    with Store(Settings(data=before.folder, **values), later.model_id) as store:
        rows = [document(main, f"d{n}", f"word{n} common") for n in range(12)]
        write(store, main, rows, later)
        store.search.refresh(main)
        tracked = tracked_of(store)
        assert (_kept_rows(tracked.index, main), tracked.index.count(main.id)) == (24, 12)
        store.search.erase(main)
        assert (_kept_rows(tracked.index, main), tracked.index.count(main.id)) == (12, 12)
        assert store.search.problems([main]) == []


def tracked_of(store: Store) -> TrackedVectors:
    tracked = parts(store).search._tracked
    assert tracked is not None
    return tracked


@pytest.fixture
def at_server(open_store: Opener, chroma_url: str) -> tuple[Store, Collection, TrackedVectors]:
    """Open a store on the Chroma server that holds 30 documents."""
    store = open_store(index="chroma", chroma_url=chroma_url, chroma_timeout_s=60)
    collection = store.intake.open_collection("acme", "main", None)
    fill(store, collection, 30)
    return store, collection, tracked_of(store)


def _kept_rows(index: VectorIndex, collection: Collection) -> int:
    """Count the vectors that there are of a collection, of every model."""
    if isinstance(index, ChromaVectors):
        beginning = f"{index._prefix}{collection.id}-"
        there = index._connected().list_collections()
        return sum(one.count() for one in there if one.name.startswith(beginning))
    assert isinstance(index, MilvusVectors)
    client = index._connected(60)
    names, own = index._names(client, 60), f"collection == {collection.id}"
    for one in names:
        client.load_collection(one)
    return sum(client.query(one, own, ["count(*)"])[0]["count(*)"] for one in names)


def _not_ours(store: Store, collection: Collection) -> VectorIndex:
    """Write vectors into a collection as another program would."""
    tracked = tracked_of(store)
    assert isinstance(tracked.index, ChromaVectors)
    given = tracked.index._chroma(collection.id)._collection
    vector = FakeEmbedder().embed_query("harbour").tolist()
    given.add(ids=["theirs"], embeddings=[vector], documents=["harbour"], metadatas=[{"x": "y"}])
    return tracked.index


def test_a_reply_that_is_not_ours_is_one_clear_line(
    open_shelf: OpenShelf, values: dict[str, object], kind: str
) -> None:
    if "chroma" not in kind:  # Milvus takes no row without our fields
        return
    shelf = open_shelf(**values)
    index = _not_ours(shelf.store, shelf.collection)
    vector = FakeEmbedder().embed_query("harbour")
    for ask in (
        lambda: index.search(shelf.id, vector, 3, VectorScope()),
        lambda: index.rows(shelf.id),
    ):
        with pytest.raises(IndexUnavailableError, match=r"row.*carrel reindex") as caught:
            ask()
        assert "\n" not in str(caught.value)
    fill(shelf.store, shelf.collection, 30)
    assert names(shelf.store, search(shelf.store, shelf.collection, "word7 common", pool=1)) == {
        "d7"
    }


def test_a_server_gets_no_longer_than_its_caller(open_store: Opener, silent_server: str) -> None:
    store = open_store(index="chroma", chroma_url=silent_server, chroma_timeout_s=60)
    began = time.monotonic()
    with (
        limited_time(TimeLimit(began + 0.5, "the time of this test is used up")),
        pytest.raises(TimeUpError, match="the time of this test is used up"),
    ):
        tracked_of(store).index.count(1)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("index", ["chroma", "milvus"])
def test_a_server_that_is_away_or_slow_loses_nothing(
    open_shelf: OpenShelf, silent_server: str, away: bool, index: str
) -> None:
    url = "http://127.0.0.1:9" if away else silent_server
    own: dict[str, object] = {"chroma_url": url, "chroma_timeout_s": 1}
    if index == "milvus":
        own = {"milvus_uri": url, "chroma_timeout_s": 1}
    shelf = open_shelf(index=index, segment_min_rows=10, **own)
    rows = [shelf.row(f"d{n}", f"word{n} common") for n in range(30)]
    write(shelf.store, shelf.collection, rows, FakeEmbedder())
    began = time.monotonic()
    said = "(was not reached|must answer in time)"
    with pytest.raises(OperatorError, match=rf"{index.capitalize()} server {said}.*--index memmap"):
        shelf.search.refresh(shelf.collection)
    assert time.monotonic() - began < 20
    assert names(shelf.store, search(shelf.store, shelf.collection, "word7 common", pool=1)) == {
        "d7"
    }
    [problem] = shelf.search.problems([shelf.collection])
    assert "\n" not in problem and url in problem
    assert any("nothing of this collection yet" in one for one in shelf.store.warnings())


def test_a_server_that_hides_rows_is_seen_through(at_server: Any) -> None:
    store, collection, tracked = at_server
    tracked.index.drop(collection.id)
    found = search(store, collection, "word7 common", pool=1)
    assert names(store, found) == {"d7"}
    assert "the vector index gave 1 too few" in found.notes[0]
    assert any("gave 1 too few" in one for one in store.warnings())
    store.search.refresh(collection)
    assert search(store, collection, "word7 common", pool=1).notes == ()
    assert store.warnings() == []


def test_whoever_asks_is_not_told_where_the_server_is(
    at_server: Any, chroma_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, collection, tracked = at_server

    def away(*arguments: object) -> list[int]:
        raise IndexUnavailableError("the Chroma server must answer in time", value=chroma_url)

    monkeypatch.setattr(tracked.index, "search", away)
    found = search(store, collection, "word7 common", pool=1)
    note = "all vectors were compared: the Chroma server must answer in time"
    assert (found.notes, store.warnings()) == ((note,), [note])


def test_a_rebuild_that_fails_does_not_unlearn_what_is_there(
    at_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, collection, tracked = at_server

    def away(collection_id: int) -> None:
        raise IndexUnavailableError("the Chroma server must answer in time")

    with monkeypatch.context() as patch:
        patch.setattr(tracked.index, "drop", away)
        with pytest.raises(IndexUnavailableError):
            tracked.rebuild(collection.id)
    assert store.search.problems([collection]) == []


def _garbage(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            path.write_bytes(np.random.default_rng(2).bytes(max(500, path.stat().st_size)))


def _a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("not a folder")


@pytest.mark.parametrize("damage", [shutil.rmtree, _garbage, _a_file])
@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("name", VECTOR_FOLDERS)
def test_a_damaged_folder_of_vectors_is_made_again(
    open_store: Opener, damage: Callable[[Path], None], crash: bool, name: str
) -> None:
    store = open_store(index=name, segment_min_rows=10)
    collection = store.intake.open_collection("acme", "main", None)
    fill(store, collection, 30)
    store.search.refresh(collection)
    store.close()
    damage(store.folder / name)
    if crash:
        (store.folder / "seal.json").unlink()
    again = open_store(segment_min_rows=10)
    found = search(again, collection, "word7 common", pool=1)
    assert (names(again, found), found.notes) == ({"d7"}, ())
    assert any("search" in line and "main" in line for line in again.maintenance.repaired)
    again.maintenance.clear_repairs()
    assert again.maintenance.examine()["problems"] == []


def test_no_client_of_an_index_is_loaded_where_it_is_not_chosen(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from core.settings import Settings;"
        "from stores.store import Store;"
        f"store = Store(Settings(data=Path({str(tmp_path / 'data')!r})), 'fake', create=True);"
        "store.maintenance.examine(); store.close();"
        "LIBRARIES = ('chroma', 'langchain_chroma', 'pymilvus', 'milvus_lite');"
        "print([name for name in sys.modules if name.startswith(LIBRARIES)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_of_milvus_serves_one_process(open_store: Opener, tmp_path: Path) -> None:
    own = {"index": "milvus", "milvus_uri": str(tmp_path / "m.db"), "segment_min_rows": 10}
    first = open_store(**own)
    main = first.intake.open_collection("acme", "main", None)
    fill(first, main, 12)
    code = (
        "import sys; from pathlib import Path; from stores.index.milvus import MilvusVectors;"
        f"index = MilvusVectors({own['milvus_uri']!r}, Path('.'), 'x', 'm', batch=9,"
        " timeout_s=9, tenant_of=str)\n"
        "try: index.count(1)\n"
        "except Exception as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "open in another process" in done.stdout and "`milvus-lite server`" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    first.close()
    with Store(Settings(data=first.folder, **own), "fake") as again:
        assert names(again, search(again, main, "word7 common", pool=1)) == {"d7"}


def test_an_unknown_version_of_milvus_is_one_line(
    open_store: Opener, milvus_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tracked_of(open_store(index="milvus", milvus_uri=milvus_url)).index
    monkeypatch.setattr("pymilvus.MilvusClient.get_server_version", lambda *a, **k: "v9.1")
    with pytest.raises(IndexUnavailableError, match=r"Milvus 2.4 to 3.*v9.1"):
        index.count(1)


def test_two_processes_write_to_one_server(tmp_path: Path, milvus_url: str) -> None:
    """Over a catalogue in PostgreSQL, which several processes share."""
    low = {"data": tmp_path / "data", "catalogue": new_catalogue(), "segment_min_rows": 10}
    low |= {"index": "milvus", "milvus_uri": milvus_url, "vector_batch": 7}
    shared = load_settings(low)[0]
    with Store(shared, "fake", create=True) as one, Store(shared, "fake") as other:
        assert other.maintenance.coordination.is_shared

        def fill(number: int, store: Store) -> None:
            shelf = Shelf(store, store.intake.open_collection("acme", "main", None), FakeEmbedder())
            for text in range(6):
                shelf.write(shelf.row(f"d{number}.{text}", f"word{number}x{text}"))
                store.search.refresh(shelf.collection)

        threads = [threading.Thread(target=fill, args=pair) for pair in enumerate((one, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in (one, other):
            collection = store.catalogue.collection("acme", "main")
            for number, text in product(range(2), range(6)):
                found = search(store, collection, f"word{number}x{text}", pool=1)
                assert names(store, found) == {f"d{number}.{text}"} and not found.notes
            assert store.search.problems([collection]) == []
