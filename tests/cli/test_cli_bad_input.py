"""Whatever a person or a disk does wrong: one line that says so, the right code, nothing lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from commands import (
    HEIGHT,
    ROOT,
    Carrel,
    Index,
    change,
    copied,
    index_of,
    pdf,
    process,
    write_files,
)

HOLD = """
import sys, time
from pathlib import Path
from stores.lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]), wait_s=0)
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="session")
def whole(library: Path) -> Index:
    return index_of(library)


# Questions


@pytest.mark.parametrize("command", ["ask", "search"])
@pytest.mark.parametrize(
    ("question", "word"),
    [
        ("", "at least one word"),
        ("  \t\n ", "at least one word"),
        ("?!… ---", "at least one word"),
        ("🙂🙂", "at least one word"),
        ("\x00", "at least one word"),
        ("\ud800\udfff", "at least one word"),
        ("flame " * 16_667, "at most 4000 characters"),
    ],
)
def test_questions_that_are_none(
    carrel: Carrel, library: Path, command: str, question: str, word: str
) -> None:
    began = time.monotonic()
    done = carrel(command, question, "--json", data=library)
    done.failed(2, word)
    assert len(done.err) < 400
    assert done.out == ""
    assert time.monotonic() - began < 60  # refused, not waited for


@pytest.mark.parametrize(
    "question",
    [
        HEIGHT + "\x00",
        HEIGHT + " 🙂",
        HEIGHT + "\ud83d",
        HEIGHT + " Less than " + "9" * 400 + "?",
        "\u202e\u200b" + HEIGHT,
        'What is the maximum height of the candle flame" OR NEAR(a b) * ^ - : ?',
        "What is the maximum\nheight\tof the candle flame?",
    ],
)
def test_questions_that_only_look_bad(carrel: Carrel, library: Path, question: str) -> None:
    done = carrel("ask", question, "--json", data=library)
    assert done.code in (0, 3)
    assert "42 mm" in json.dumps(done.json["evidence"])


# Wrong use


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask"], ["question", "carrel ask --help"]),
        (["ingest"], ["paths", "carrel ingest --help"]),
        (["serch", "x"], ["serch", "'search'"]),
        (["ask", "x y", "--nope"], ["--nope"]),
        (["ask", "x y", "--pipeline", "magic"], ["magic", "agentic"]),
        (["search", "x", "--pipeline", "magic"], ["magic", "hybrid"]),
        (["search", "x", "-k", "0"], ["-k"]),
        (["search", "x", "-k", "1000"], ["-k"]),
        (["search", "x", "-k", "many"], ["-k"]),
        (["ask", "x y", "-c", "nope"], ["nope", "default"]),
        (["search", "x", "-c", "../nope"], ["collection", "../nope"]),
        (["search", "x", "-c", "\ud800"], ["collection"]),
        (["ask", "x y", "--tenant", "../../etc"], ["tenant", "../../etc"]),
        (["ask", "x y", "--role", "a/b"], ["role", "a/b"]),
        (["ask", "x y", "--user", "a b"], ["user", "a b"]),
        (["trace", "--tenant", "../x"], ["tenant", "../x"]),
        (["trace", "\ud800"], ["last"]),
        (["ask", "x y", "--set", "top_k"], ["name=value", "top_k"]),
        (["ask", "x y", "--set", "nope=1"], ["nope"]),
        (["ask", "x y", "--set", "retrieval.top_k=abc"], ["top_k", "flag", "abc"]),
        (["ask", "x y", "--set", "retrieval.top_k=-1"], ["top_k", "-1"]),
        (["ask", "x y", "--set", "budget.tokens=" + "9" * 400], ["budget.tokens", "at most"]),
        (["ask", "x y", "--set", "budget.seconds=inf"], ["budget.seconds", "at most", "inf"]),
        (["eval", "trajectories", __file__, "--report", "x.md"], ["--report", ".html", "x.md"]),
        (["config", "--profile", "nope"], ["nope", "xpay"]),
    ],
)
def test_wrong_use(carrel: Carrel, library: Path, arguments: list[str], words: list[str]) -> None:
    done = carrel(*arguments, data=library)
    done.failed(2, *words)
    assert done.out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{corpus}", "--tenant", "a/b"], ["tenant", "a/b"]),
        (["{corpus}", "--collection", "../x"], ["collection", "../x"]),
        (["{corpus}", "--acl", "editor,a/b"], ["role", "a/b"]),
        (["{corpus}", "--acl", ""], ["--acl names a role or user:NAME: ''"]),
        (["{corpus}", "--acl", "editor", "--acl", " , "], ["--acl names", "' , '"]),
        (["{corpus}", "--acl", "group:x"], ["is 1 to 64 letters", "group:x"]),
        (["{corpus}", "--acl", "user:a b"], ["is 1 to 64 letters", "a b"]),
        (["{corpus}", "{corpus}/nothing"], ["nothing", "exist"]),
        ([""], ["path must be named", "''", "'.'"]),
        (["{corpus}", "--profile", "nope"], ["nope", "built-in"]),
        (["{corpus}", "--profile", "{corpus}/list.yaml"], ["list.yaml"]),
        (["{corpus}", "--profile", "{corpus}/broken.yaml"], ["broken.yaml", "YAML"]),
        (["{corpus}", "--profile", "{corpus}/field.yaml"], ["field.yaml", "colour"]),
        (["{corpus}", "--profile", "{corpus}/value.yaml"], ["top_k", "abc"]),
        (["{corpus}", "--profile", "{corpus}/bytes.yaml"], ["bytes.yaml"]),
        (
            ["{corpus}", "--set", "ingest.chunk_size=10", "--set", "ingest.chunk_overlap=20"],
            ["chunk"],
        ),
    ],
)
def test_wrong_ingest(
    carrel: Carrel, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    corpus = write_files(
        tmp_path / "c",
        {
            "a.md": "# A\n\nText.\n",
            "list.yaml": "- 1\n",
            "broken.yaml": "name: [x\n: ",
            "field.yaml": "name: x\ncolour: red\n",
            "value.yaml": "name: x\nsettings: {retrieval: {top_k: abc}}\n",
        },
    )
    (corpus / "bytes.yaml").write_bytes(b"\xff\xfe\x00name")
    given = [argument.format(corpus=corpus) for argument in arguments]
    done = carrel("ingest", *given, "--json", data=tmp_path / "new")
    done.failed(2, *words)
    assert done.out == ""
    assert not (tmp_path / "new").exists()


def test_an_environment_that_is_wrong(
    carrel: Carrel, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_RETRIEVAL__TOP_K", "abc")
    for command in (["ask", "x y"], ["doctor"], ["trace"], ["config"]):
        carrel(*command, data=library).failed(2, "CARREL_RETRIEVAL__TOP_K", "abc")


# Files


def test_files_that_cannot_be_read_are_named_and_the_others_are_not_held_up(
    carrel: Carrel, data: Path, whole: Index, tmp_path: Path
) -> None:
    corpus = write_files(tmp_path / "c", {"good.md": "# Good\n\nA heron fishes.\n", "empty.md": ""})
    (corpus / "binary.md").write_bytes(bytes(range(256)) * 20)
    (corpus / "damaged.pdf").write_bytes(b"%PDF-1.7\n" + b"\x00garbage" * 50)
    (corpus / "locked.pdf").write_bytes(pdf("secret page", password="secret"))
    (corpus / "old.doc").write_bytes(b"\xd0\xcf\x11\xe0")
    with (corpus / "huge.txt").open("wb") as huge:
        huge.truncate(200 << 20)
    began = time.monotonic()
    done = carrel("ingest", corpus, "--json", data=data)
    assert time.monotonic() - began < 60
    assert (done.code, done.err) == (0, "")
    summary = done.json
    reasons = {failure["path"]: failure["reason"] for failure in summary["failed"]}
    assert set(reasons) == {
        *("empty.md", "binary.md", "damaged.pdf", "locked.pdf", "old.doc", "huge.txt")
    }
    assert "empty" in reasons["empty.md"]
    assert "binary" in reasons["binary.md"] or "text" in reasons["binary.md"]
    assert "damaged" in reasons["damaged.pdf"]
    assert "password" in reasons["locked.pdf"]
    assert "DOCX" in reasons["old.doc"]
    assert "200 MB" in reasons["huge.txt"] and "max_file_mb" in reasons["huge.txt"]
    assert (summary["files"], summary["indexed"], summary["documents"]) == (7, 1, 1)
    after = index_of(data)
    assert after.consistent
    assert after.chunks > whole.chunks
    shown = carrel("ingest", corpus, data=data)
    assert (shown.code, "\x1b" in shown.err) == (0, False)  # no progress bars where nobody looks
    assert "locked.pdf: the PDF is password-protected" in shown.out


def test_nothing_to_ingest(carrel: Carrel, data: Path, whole: Index, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = carrel("ingest", tmp_path / "empty", "-c", "new", "--json", data=data)
    done.failed(1, "no file", ".md")
    assert done.json["files"] == 0
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8")
    carrel("ingest", tmp_path / "photo.jpg", "--json", data=data).failed(1, "photo.jpg", ".jpg")
    carrel("ask", "x y", "-c", "new", data=data).failed(2, "new")
    assert index_of(data) == whole


def test_a_file_without_permission(carrel: Carrel, data: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every file")
    closed = write_files(tmp_path, {"closed.md": "# Closed\n\nText.\n"}) / "closed.md"
    closed.chmod(0)
    carrel("ingest", closed, data=data).failed(1, "closed.md", "permission denied")


# The data directory


def test_no_data_yet(carrel: Carrel, tmp_path: Path) -> None:
    for command in (["ask", "x y"], ["search", "x"], ["doctor"], ["trace"], ["reindex"], ["chat"]):
        done = carrel(*command, data=tmp_path / "nothing")
        done.failed(4, "no data here yet", "carrel ingest")
    assert not (tmp_path / "nothing").exists()


def test_a_file_as_data_directory(carrel: Carrel, tmp_path: Path) -> None:
    corpus = write_files(tmp_path, {"a.md": "# A\n\nText.\n"}) / "a.md"
    carrel("ingest", corpus, data=corpus).failed(4, "must be a folder", "a.md", "--data")
    for command in (["ask", "x y"], ["memory", "list"], ["doctor"]):
        carrel(*command, data=corpus).failed(4, "must be a folder", "a.md is a file", "--data")
    assert corpus.read_text() == "# A\n\nText.\n"


def garbage(catalogue: Path) -> None:
    catalogue.write_bytes(random.Random(1).randbytes(50_000))


def truncated(catalogue: Path) -> None:
    content = catalogue.read_bytes()
    catalogue.write_bytes(content[: len(content) // 2])


def damaged_inside(catalogue: Path) -> None:
    content = catalogue.read_bytes()
    catalogue.write_bytes(content[:8192] + random.Random(1).randbytes(len(content) - 8192))


def a_folder(catalogue: Path) -> None:
    catalogue.unlink()
    catalogue.mkdir()


@pytest.mark.parametrize("damage", [garbage, truncated, damaged_inside, a_folder])
def test_a_damaged_catalogue(carrel: Carrel, data: Path, damage: Callable[[Path], None]) -> None:
    catalogue = data / "catalogue.sqlite3"
    damage(catalogue)
    before = None if catalogue.is_dir() else catalogue.read_bytes()
    corpus = write_files(data.parent / "c", {"a.md": "# A\n\nText.\n"})
    for command in (["ask", HEIGHT], ["search", "x"], ["doctor"], ["trace"], ["reindex"]):
        carrel(*command, "--json", data=data).failed(4, "catalogue", "backup")
    carrel("ingest", corpus, "--json", data=data).failed(4, "catalogue", "backup")
    assert before is None or catalogue.read_bytes() == before  # what can be rescued is untouched


def test_an_empty_catalogue(carrel: Carrel, data: Path) -> None:
    (data / "catalogue.sqlite3").write_bytes(b"")
    for command in (["ask", HEIGHT], ["doctor"], ["trace"]):
        carrel(*command, "--json", data=data).failed(4, "no data here yet")


# A structure of FTS5 that asks for more memory than there is.
ENDLESS = "f8a44816454eff62d33efdbfa2aa1a1488eb4f134358cfa83068d733704a"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE fts_1_data SET block = randomblob(30)",
        f"UPDATE fts_1_data SET block = x'{ENDLESS}' WHERE id = 10",
        "DELETE FROM fts_1_data",
        "DROP TABLE fts_1_config",
        "DROP TABLE fts_1_terms",
        "DROP TABLE fts_1",
    ],
)
def test_a_damaged_full_text_index(carrel: Carrel, data: Path, whole: Index, damage: str) -> None:
    change(data, damage)
    for command in (["ask", HEIGHT], ["search", "wax"]):
        done = carrel(*command, "--json", data=data)
        if done.code:  # a search needs no term statistics
            done.failed(4, "full-text index", str(data), "safe", "carrel reindex")
    assert carrel("reindex", data=data).code == 0
    assert index_of(data) == whole
    assert carrel("ask", HEIGHT, data=data).code == 0


def test_a_second_process_is_named(
    carrel: Carrel, data: Path, whole: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", HOLD, str(data)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        began = time.monotonic()
        carrel("ask", HEIGHT, "--json", data=data).failed(4, f"process {owner.pid} ", "--data")
        assert 1 < time.monotonic() - began < 60
        monkeypatch.setenv("CARREL_STORAGE__LOCK_WAIT_S", "0.1")
        corpus = write_files(data.parent / "c", {"a.md": "# A\n\nText.\n"})
        for arguments in (
            *(["ingest", corpus], ["search", "wax"], ["doctor"], ["trace"], ["chat"]),
            *(["reindex"], ["trace", "last", "--json"]),
        ):
            carrel(*arguments, data=data).failed(4, f"process {owner.pid} ", "in use")
        owner.kill()
        owner.wait()
    assert index_of(data) == whole
    assert carrel("ask", HEIGHT, data=data).code == 0  # the lock of the dead is no lock


# The disk


def test_not_enough_free_disk(
    carrel: Carrel, data: Path, whole: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_files(tmp_path / "c", {"a.md": "# A\n\nText.\n"})
    words = ("MB of free disk", "min_free_mb", "MB free at", "--data")
    low = ["--set", "storage.min_free_mb=999999999"]
    carrel("ingest", corpus, *low, "--json", data=data).failed(4, *words)
    monkeypatch.setenv("CARREL_STORAGE__MIN_FREE_MB", "999999999")
    carrel("ingest", corpus, data=data).failed(4, *words)
    assert carrel("ask", HEIGHT, data=data).code == 0
    assert index_of(data) == whole


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Mount a small file system of its own, or skip."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if os.geteuid() or not shutil.which("mount"):
        pytest.skip("only root can mount a small file system")
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let root mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def kib(folder: Path) -> int:
    """Return what the files of a folder take on a disk of 4 KiB blocks."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(4 * -(-size // 4096) for size in sizes)


SPARE_KIB = 300  # room to read the catalogue, none to ingest what follows


def fill(path: Path) -> None:
    """Write a file until the disk is full."""
    with path.open("wb", buffering=0) as handle, suppress(OSError):
        while handle.write(b"x" * 4096):
            pass


def test_a_disk_that_fills_up(carrel: Carrel, library: Path, whole: Index, tmp_path: Path) -> None:
    words = random.Random(5)
    text = "\n\n".join(
        " ".join("".join(words.choices("abcdefghij", k=7)) for _ in range(60)) for _ in range(100)
    )
    corpus = write_files(tmp_path / "c", {"big.md": text})
    with mounted(tmp_path / "disk", f"size={kib(library) + SPARE_KIB}k") as disk:
        data = copied(library, disk / "data")
        done = carrel("ingest", corpus, "--set", "storage.min_free_mb=0", data=data)
        *progress, last = done.err.splitlines()
        assert done.code == 4 and last.startswith("carrel: ") and "disk" in last
        assert all("chunks" in line for line in progress)
        asked = carrel("ask", HEIGHT, "--json", data=data)
        assert asked.code == 0 and "42 mm" in asked.json["answer"]
        ids = {row[0] for row in index_of(data).documents}
        assert {row[0] for row in whole.documents} <= ids


def test_a_disk_that_is_full_while_asking(carrel: Carrel, library: Path, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "size=2m") as disk:
        data = copied(library, disk / "data")
        fill(disk / "filler")
        done = carrel("ask", HEIGHT, "--json", data=data)
        if done.code:
            done.failed(4, "disk")
        else:
            assert "42 mm" in done.json["answer"]
        corpus = write_files(tmp_path / "c", {"a.md": "# A\n\nText.\n"})
        carrel("ingest", corpus, "--set", "storage.min_free_mb=0", data=data).failed(4, "disk")


def test_a_data_directory_that_cannot_be_written(
    carrel: Carrel, library: Path, tmp_path: Path
) -> None:
    with mounted(tmp_path / "disk", "size=4m") as disk:
        data = copied(library, disk / "data")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        corpus = write_files(tmp_path / "c", {"a.md": "# A\n\nText.\n"})
        for arguments in (["ask", HEIGHT], ["search", "wax"], ["doctor"], ["trace"]):
            carrel(*arguments, data=data).failed(4, "writ", str(data), "--data")
        carrel("ingest", corpus, data=data).failed(4, "writ", str(data))
        carrel("ingest", corpus, data=disk / "new").failed(4, "writ", str(disk))


def test_a_new_directory_below_a_place_that_is_none(carrel: Carrel, tmp_path: Path) -> None:
    corpus = write_files(tmp_path / "c", {"a.md": "# A\n\nText.\n"})
    below = corpus / "a.md" / "data"
    done = process("ingest", corpus, data=below)
    done.failed(4, str(below), "--data")
