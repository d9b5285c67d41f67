"""One process owns a data directory; a second is told which, and a dead one owns nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.errors import DataLockedError
from core.settings import Settings
from stores.lock import OwnerLock
from stores.store import Store

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
    began = time.monotonic()
    command = [sys.executable, "-c", TRY, str(store.folder)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"process {os.getpid()} " in said
    assert "--data" in said
    assert time.monotonic() - began < 2.5 + 2  # the wait, and starting Python on a busy machine


def test_the_wait_ends_in_time(owner: subprocess.Popen[str], tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(DataLockedError, match=f"process {owner.pid} ") as caught:
        OwnerLock(tmp_path, wait_s=Settings(data=tmp_path).lock_wait_s).acquire()
    assert time.monotonic() - began < 2.5
    assert caught.value.retryable


def test_a_killed_owner_owns_nothing(owner: subprocess.Popen[str], tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, wait_s=0)
    with pytest.raises(DataLockedError):
        lock.acquire()
    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=10)
    with lock:
        assert str(os.getpid()) in (tmp_path / "owner.json").read_text()
    assert not (tmp_path / "owner.json").exists()


def test_a_lock_can_be_given_back_by_another_thread(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, wait_s=0)
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    with OwnerLock(tmp_path, wait_s=0):
        pass


def test_releasing_twice_is_harmless(tmp_path: Path) -> None:
    lock = OwnerLock(tmp_path, wait_s=0)
    lock.acquire()
    lock.release()
    lock.release()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_an_unreadable_owner_file_still_gives_a_clear_error(
    owner: subprocess.Popen[str], tmp_path: Path, content: str
) -> None:
    (tmp_path / "owner.json").write_text(content)
    with pytest.raises(DataLockedError, match="another process"):
        OwnerLock(tmp_path, wait_s=0).acquire()
