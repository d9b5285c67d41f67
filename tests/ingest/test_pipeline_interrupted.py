"""Whatever ends an ingest, running it again makes the index that an uninterrupted one makes."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import ROOT, Index, index_of, write_files
from fakes import FakeEmbedder

from core.settings import Settings
from ingest.pipeline import Pipeline
from stores.store import Store

INGEST = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, "tests")
from fakes import FakeEmbedder
from core.settings import Settings
from ingest.pipeline import Pipeline
from stores import store
from stores.sqlite import schema
from stores.sqlite import database

schema.new_secret = lambda: "5" * 32  # as in conftest.py: ids can be compared
data, corpus, kind, number = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
left = number

def count():
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)

class Writing:
    def __init__(self, inner):
        self.inner = inner
    def __enter__(self):
        return self.inner.__enter__()
    def __exit__(self, *error):
        count()  # everything of the transaction is written, nothing is committed
        return self.inner.__exit__(*error)

if kind == "write":
    write = database.Database.write
    database.Database.write = lambda self: Writing(write(self))
settings = Settings(data=data, ingest_batch=2, vector_batch=3)
with store.Store(settings, "fake", create=True) as opened:
    collection = opened.intake.open_collection("acme", "main", None)
    print("open", flush=True)
    Pipeline(opened, FakeEmbedder(), settings, collection).run([corpus])
print("done", flush=True)
"""


@pytest.fixture
def corpus(corpus: Path) -> Path:
    more = {f"more/{n}.md": f"# Page {n}\n\nThe text of page {n}.\n" for n in range(12)}
    return write_files(corpus, more)


@pytest.fixture
def ingest(
    open_store: Callable[..., Store], embedder: FakeEmbedder, corpus: Path, tmp_path: Path
) -> Callable[..., Index]:
    def run(name: str, **options: object) -> Index:
        values = {"data": tmp_path / name, "ingest_batch": 2, "vector_batch": 3}
        store = open_store(**values)
        target = store.intake.open_collection("acme", "main", None)
        pipeline = Pipeline(store, embedder, Settings(**values), target, **options)  # type: ignore[arg-type]
        try:
            pipeline.run([corpus])
        finally:
            store.close()
        return index_of(store.folder)

    return run


def killed(data: Path, corpus: Path, kind: str, number: int, *, after_s: float = 0) -> bool:
    """Run an ingest that is killed; return whether it was, before it was done."""
    command = [sys.executable, "-c", INGEST, str(data), str(corpus), kind, str(number)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        if after_s:
            time.sleep(after_s)
            child.kill()
        child.wait(60)
    assert child.returncode in (0, -signal.SIGKILL)
    return child.returncode != 0


@pytest.mark.parametrize(("kind", "number"), [("write", 3), ("write", 7), ("write", 23)])
def test_killed_at_a_bad_moment(
    ingest: Callable[..., Index], corpus: Path, tmp_path: Path, kind: str, number: int
) -> None:
    assert killed(tmp_path / "killed", corpus, kind, number)
    left = index_of(tmp_path / "killed")
    whole = ingest("whole")
    assert left.chunks <= whole.chunks
    assert left.chunks == left.full_text
    assert left != whole
    assert ingest("killed") == whole
    assert whole.consistent


def test_killed_at_random_moments(
    ingest: Callable[..., Index], corpus: Path, tmp_path: Path
) -> None:
    moments = random.Random()
    for _ in range(3):
        killed(tmp_path / "killed", corpus, "never", 0, after_s=moments.uniform(0.01, 0.5))
        left = index_of(tmp_path / "killed")
        assert left.chunks == left.full_text
    assert ingest("killed") == ingest("whole")


@pytest.mark.parametrize(("stage", "number"), [("files", 0), ("files", 9)])
def test_interrupted_by_a_person(ingest: Callable[..., Index], stage: str, number: int) -> None:
    def progress(name: str, done: int, total: int) -> None:
        if name == stage and done >= number:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest("stopped", progress=progress)
    assert ingest("stopped") == ingest("whole")


def test_a_change_that_is_interrupted(
    ingest: Callable[..., Index], corpus: Path, tmp_path: Path
) -> None:
    """Old vectors must go although the deletion was noted by the run that was killed."""
    ingest("killed")
    for number in range(0, 12, 2):
        (corpus / "more" / f"{number}.md").write_text(f"# Other {number}\n\nAnother text.\n")
    assert killed(tmp_path / "killed", corpus, "write", 5)
    again = ingest("killed")
    assert again.consistent
    assert again == ingest("whole")
