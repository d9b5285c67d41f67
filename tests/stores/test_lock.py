"""One process owns a data directory, a dead one nothing; long work in it waits for its turn."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.errors import DataLockedError
from core.settings import Settings
from stores.folder import check_folder, open_to_others
from stores.lock import Ingesting, OwnedError, OwnerLock, read_owner, this_process, write_owner
from stores.store import Store, parts

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys, time
from pathlib import Path
from stores.lock import OwnerLock
lock = OwnerLock(Path(sys.argv[1]), wait_s=0)
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""
TRY = """
import sys
from pathlib import Path
from core.errors import DataLockedError
from core.settings import Settings
from stores.store import Store
try:
    Store(Settings(data=Path(sys.argv[1])), "fake")
except DataLockedError as error:
    print(error)
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process that holds the lock of `tmp_path`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_told_who_owns_the_directory(store: Store) -> None:
    command = [sys.executable, "-c", TRY, str(store.folder)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"process {os.getpid()} " in said
    assert "--data" in said


def test_the_wait_ends(owner: subprocess.Popen[str], tmp_path: Path) -> None:
    with pytest.raises(DataLockedError, match=f"process {owner.pid} ") as caught:
        OwnerLock(tmp_path, wait_s=Settings(data=tmp_path).lock_wait_s).acquire()
    assert caught.value.retryable


def test_a_killed_owner_owns_nothing(owner: subprocess.Popen[str], tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, wait_s=0)
    with pytest.raises(DataLockedError):
        lock.acquire()
    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=60)
    with lock:
        assert str(os.getpid()) in (tmp_path / "owner.json").read_text()
    assert not (tmp_path / "owner.json").exists()


def test_a_lock_can_be_given_back_by_another_thread(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, wait_s=0)
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    lock.release()  # twice is harmless
    with OwnerLock(tmp_path, wait_s=0):
        pass


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_an_unreadable_owner_file_still_gives_a_clear_error(
    owner: subprocess.Popen[str], tmp_path: Path, content: str
) -> None:
    (tmp_path / "owner.json").write_text(content)
    with pytest.raises(DataLockedError, match="another process"):
        OwnerLock(tmp_path, wait_s=0).acquire()


def test_a_deleted_lock_file_does_not_let_a_second_one_in(
    owner: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "owner.lock").unlink()
    for _ in range(2):  # the first try made the file again
        with pytest.raises(DataLockedError, match=f"process {owner.pid} "):
            OwnerLock(tmp_path, wait_s=0).acquire()


def test_every_path_to_a_directory_is_the_same(
    owner: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path.parent / f"{tmp_path.name}.link"
    link.symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path.parent)
    for path in (link, Path(tmp_path.name), tmp_path / ".." / tmp_path.name):
        with pytest.raises(DataLockedError, match=f"process {owner.pid} "):
            OwnerLock(path, wait_s=0).acquire()


def test_a_copied_directory_is_nobodys(owner: subprocess.Popen[str], tmp_path: Path) -> None:
    copy = shutil.copytree(tmp_path, tmp_path.parent / f"{tmp_path.name}.copy")
    assert read_owner(copy) is not None  # the note came along
    with OwnerLock(copy, wait_s=0):
        assert f'"pid": {os.getpid()}' in (copy / "owner.json").read_text()


def test_many_openers_are_all_refused(store: Store) -> None:
    parts(store).lock.announce("http://127.0.0.1:1", 0)
    command = [sys.executable, "-c", TRY, str(store.folder)]
    children = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(8)
    ]
    said = [child.communicate(timeout=60)[0] for child in children]
    assert [f"process {os.getpid()} " in one for one in said] == [True] * 8
    assert ["at http://127.0.0.1:1;" in one for one in said] == [True] * 8
    assert store.catalogue.collections() == []


def test_a_server_is_not_waited_for(tmp_path: Path) -> None:
    waiting = OwnerLock(tmp_path, wait_s=600)
    with OwnerLock(tmp_path, wait_s=0) as lock:
        secret = lock.announce("http://127.0.0.1:8400", 5).secret
        with pytest.raises(OwnedError, match=r"at http://127\.0\.0\.1:8400") as caught:
            waiting.acquire()
        assert caught.value.owner is not None and caught.value.owner.secret == secret
        assert secret not in str(caught.value)
        assert (tmp_path / "owner.json").stat().st_mode & 0o777 == 0o600
        lock.withdraw()  # the server stops: now it is worth waiting
        thread = threading.Timer(0.2, lock.release)
        thread.start()
        waiting.acquire()
        thread.join()
    assert waiting.held
    waiting.release()


def test_a_forked_child_neither_owns_nor_holds_the_directory(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, wait_s=0)
    lock.acquire()
    context = multiprocessing.get_context("fork")
    go, told = context.Event(), context.Queue()

    def child() -> None:
        told.put(lock.held)
        lock.release()  # as every `with` that it inherited would
        told.put((tmp_path / "owner.json").exists())
        go.wait(60)

    process = context.Process(target=child)
    process.start()
    assert (told.get(timeout=60), told.get(timeout=60)) == (False, True)
    with pytest.raises(DataLockedError, match="this process"):
        OwnerLock(tmp_path, wait_s=0).acquire()
    lock.release()
    with OwnerLock(tmp_path, wait_s=0):  # though the child lives on
        assert process.is_alive()
    go.set()
    process.join(60)
    told.close()


@pytest.mark.parametrize(
    "note",
    [
        *({"pid": pid} for pid in (2**22 + 1, -1, "1", True)),
        *({"port": 70_000}, {"url": 5}, {"more": 1}),
    ],
)
def test_a_note_that_cannot_be_true_names_nobody(tmp_path: Path, note: dict[str, Any]) -> None:
    write_owner(tmp_path, this_process())
    assert read_owner(tmp_path) == this_process()
    held = json.loads((tmp_path / "owner.json").read_text())
    (tmp_path / "owner.json").write_text(json.dumps({**held, **note}))
    assert read_owner(tmp_path) is None


def test_an_owner_of_another_machine_is_named_with_it(tmp_path: Path) -> None:
    away = replace(this_process(), host="another", pid=2**22 + 1)
    write_owner(tmp_path, away)
    found = read_owner(tmp_path)
    assert found == away and found is not None and not found.is_here
    assert found.describe().endswith(" on another")


def test_a_full_disk_leaves_no_old_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_owner(tmp_path, this_process())

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with OwnerLock(tmp_path, wait_s=0):
        assert not (tmp_path / "owner.json").exists()


def test_a_data_directory_is_its_users_alone(tmp_path: Path) -> None:
    folder = tmp_path / "above" / "data"
    check_folder(folder, create=True)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert open_to_others(folder) == ""
    folder.chmod(0o750)
    check_folder(folder, create=True)  # what the operator chose stays
    assert open_to_others(folder) == "750"


def test_one_after_the_other_and_who_waits_is_told_of_whom() -> None:
    lock, told, go = Ingesting(), threading.Semaphore(0), threading.Event()
    heard: list[str] = []
    done: list[str] = []

    def waiting(other: str) -> None:
        heard.append(other)
        told.release()

    def second() -> None:
        with lock.turn("the second", waiting):
            done.append("second")

    with lock.turn("the first", waiting):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.acquire(timeout=60)
        with lock, lock.turn("a part of the first", waiting):  # again, by its own thread
            done.append("first")
    thread.join(60)
    assert done == ["first", "second"]
    assert set(heard) == {"the first"}
    go.set()


def test_what_is_raised_while_waiting_ends_the_wait() -> None:
    lock = Ingesting()
    ended: list[BaseException] = []

    def waiting(other: str) -> None:
        raise KeyboardInterrupt(other)

    def second() -> None:
        try:
            with lock.turn("the second", waiting):
                ended.append(AssertionError())
        except KeyboardInterrupt as error:
            ended.append(error)

    with pytest.raises(ZeroDivisionError), lock.turn("the first", waiting):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(60)
        raise ZeroDivisionError
    assert str(ended[0]) == "the first"
    with lock:  # free again, both times
        pass
