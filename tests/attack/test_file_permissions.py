"""A data directory is closed to other users of the machine, whatever it was made with."""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from commands import ROOT, Carrel, copied, process

from core.errors import OperatorError
from core.settings import Settings
from stores import folder as folders
from stores.folder import make_private, open_places
from stores.lock import OwnerLock, locked

NOBODY = 65_534
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
FLAG = "--insecure-permissions"


@pytest.fixture
def data(data: Path) -> Path:
    """Return a data directory that everybody can read."""
    (data / "uploads" / "1").mkdir(parents=True)
    (data / "uploads" / "1" / "secret.txt").write_text("secret")
    open_up(data)
    return data


@pytest.fixture
def careless() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_up(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def readable(folder: Path) -> list[str]:
    """Return everything that has a right for group or others, reachable or not."""
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if path.lstat().st_mode & 0o077 and not path.is_symlink()]


def settings(data: Path, **more: object) -> Settings:
    return Settings(**{"data": data, **more})


def test_a_directory_made_beforehand_is_closed_and_said_once(
    tmp_path: Path, careless: None
) -> None:
    data, file = tmp_path / "data", tmp_path / "legal.txt"
    data.mkdir(mode=0o755)
    file.write_text("SECRETLEGALZQ is the word of the lawyers.")
    done = process("ingest", file, "--acl", "legal", data=data)
    assert done.code == 0
    assert "open to other users of this machine (mode 755); it is closed now" in done.err
    assert readable(data) == []
    asked = process("search", "lawyers", "--role", "legal", data=data)
    assert "SECRETLEGALZQ" in asked.out and asked.err == ""
    assert readable(data) == []


@AS_ROOT
def test_another_user_reads_nothing(data: Path, carrel: Carrel) -> None:
    with TemporaryDirectory() as place:  # where others get to
        Path(place).chmod(0o755)
        there = copied(data, Path(place) / "data")
        look = ["grep", "-c", "candle", str(there / "catalogue.sqlite3")]
        before = subprocess.run(look, user=NOBODY, check=False, capture_output=True)
        assert int(before.stdout) > 0
        assert carrel("search", "candle", data=there).code == 0
        after = subprocess.run(look, user=NOBODY, check=False, capture_output=True)
    assert (after.stdout, b"denied" in after.stderr) == (b"", True)


@pytest.mark.parametrize(
    "command",
    ["doctor", "search candle", "keys list", "audit verify", "conversations list", "trace last"],
)
def test_every_command_closes_what_is_open(
    data: Path, carrel: Carrel, caplog: pytest.LogCaptureFixture, command: str
) -> None:
    with caplog.at_level(logging.WARNING, "carrel.data"):
        carrel(*command.split(), data=data)
        assert readable(data) == []
        carrel(*command.split(), data=data)
    assert [bool(re.search("open to other users", one)) for one in caplog.messages] == [True]


def test_one_open_file_of_a_closed_directory_is_closed(data: Path) -> None:
    locked(settings(data)).release()
    (data / "catalogue.sqlite3").chmod(0o640)
    (data / "audit.key").write_text("")
    (data / "audit.key").chmod(0o602)
    locked(settings(data)).release()
    assert readable(data) == []


@pytest.fixture
def server(data: Path, careless: None) -> Iterator[httpx.Client]:
    """A server whose files could be everybody's."""
    command = [sys.executable, "-c", "from cli.app import main; main()"]
    command += ["serve", "--port", "0", "--allow-anonymous", "--data", str(data)]
    environment = {**os.environ, "CARREL_REASONER": "rules"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        try:
            assert child.stdout is not None
            url = child.stdout.readline().decode().strip()
            with httpx.Client(base_url=url, timeout=60) as client:
                yield client
        finally:
            child.terminate()


def test_files_of_a_server_are_private_whatever_the_umask(server: httpx.Client, data: Path) -> None:
    sent = server.post("/api/v1/documents?name=a.txt", content=b"The owl hunts mice.")
    assert sent.status_code == 202
    made = server.post("/api/v1/conversations", json={"collection": "default"}).json()
    asked = {"question": "What sleeps in the sea?", "conversation_id": made["conversation_id"]}
    assert server.post("/api/v1/chat", json=asked).status_code == 200
    assert process("reindex", data=data).code == 0  # within the server
    assert readable(data) == []
    assert (data / "conversations.sqlite3").exists()


def test_files_of_commands_are_private_whatever_the_umask(
    data: Path, tmp_path: Path, carrel: Carrel, careless: None
) -> None:
    backup, again = tmp_path / "b.carrel", tmp_path / "again"
    assert carrel("backup", backup, data=data).code == 0
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert carrel("restore", backup, data=again).code == 0
    assert carrel("keys", "create", data=tmp_path / "keys").code == 0
    for folder in (data, again, tmp_path / "keys"):
        assert readable(folder) == []
        assert any(folder.iterdir())


def test_a_link_leads_nowhere(data: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "file").write_text("x")
    open_up(outside)
    (data / "link").symlink_to(outside)
    (data / "file").symlink_to(outside / "file")
    (data / "nothing").symlink_to(tmp_path / "nothing")
    (data / "segments").mkdir(mode=0o700, exist_ok=True)
    (data / "segments" / "below").symlink_to(outside)
    locked(settings(data)).release()
    assert readable(data) == []
    assert len(readable(outside)) == 2


def test_a_directory_named_by_a_link_is_closed(data: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(data)
    locked(settings(tmp_path / "link")).release()
    assert readable(data) == []


@AS_ROOT
@pytest.mark.parametrize("name", ["", "catalogue.sqlite3", "catalogue.commits"])
def test_what_is_somebody_elses_is_refused(data: Path, carrel: Carrel, name: str) -> None:
    os.chown(data / name, NOBODY, NOBODY)
    for command in (("search", "candle"), ("keys", "list")):
        carrel(*command, data=data).failed(4, "other users", str(NOBODY), FLAG)
    assert data.joinpath(name).stat().st_mode & 0o044
    with OwnerLock(data, wait_s=0):  # it was given back
        pass
    assert carrel("search", "candle", FLAG, data=data).code == 0


@AS_ROOT
def test_a_closed_directory_of_a_service_is_opened_by_root(data: Path, carrel: Carrel) -> None:
    assert carrel("search", "candle", data=data).code == 0
    for path in (data, *data.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    assert carrel("search", "candle", data=data).code == 0


@pytest.mark.parametrize("problem", ["silent", "refused"])
def test_a_file_system_without_modes_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    def fchmod(handle: int, mode: int) -> None:
        if problem == "refused":
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(folders.os, "fchmod", fchmod)
    with pytest.raises(OperatorError, match="other users of this machine can read") as caught:
        locked(settings(data))
    assert "mode 755" in str(caught.value) and str(data) in str(caught.value)
    locked(settings(data, insecure_permissions=True)).release()


def test_the_flag_is_also_a_setting_and_changes_nothing(
    data: Path, carrel: Carrel, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(readable(data)) - {str(data / "seal.json")}  # which each command writes
    assert carrel("search", "candle", FLAG, data=data).code == 0
    monkeypatch.setenv("CARREL_STORAGE__INSECURE_PERMISSIONS", "1")
    assert carrel("keys", "list", data=data).code == 0
    monkeypatch.delenv("CARREL_STORAGE__INSECURE_PERMISSIONS")
    assert before and before <= set(readable(data))
    assert carrel("search", "candle", data=data).code == 0  # it held for that command alone
    assert readable(data) == []


def test_doctor_names_what_is_open(data: Path, carrel: Carrel) -> None:
    done = carrel("doctor", "--json", FLAG, data=data)
    problems = "\n".join(done.json["problems"])
    assert done.code == 1 and f"{data}/catalogue.sqlite3 (mode 644)" in problems
    done = carrel("doctor", "--json", data=data)
    assert (done.code, done.json["problems"]) == (0, [])


def test_a_closed_folder_is_not_looked_into(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(data)
    (data / "segments").mkdir(parents=True)
    for number in range(2000):
        (data / "segments" / str(number)).touch(0o644)
    make_private(data)
    assert readable(data) == []
    looked: list[Path] = []
    monkeypatch.setattr(folders, "_listed", lambda folder: looked.append(folder) or [])
    assert list(open_places(data)) == [] and looked == [data]


def test_what_vanishes_meanwhile_is_no_problem(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = data / "gone.part"
    monkeypatch.setattr(folders, "open_places", lambda folder: iter([(gone, data.stat())]))
    make_private(data)


def test_a_link_to_what_others_can_read_is_refused(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir(mode=0o700)
    outside.write_text("text")
    outside.chmod(0o644)
    (data / "catalogue.sqlite3").symlink_to(outside)
    with pytest.raises(OperatorError, match="mode 644"):
        make_private(data)
    assert outside.stat().st_mode & 0o777 == 0o644  # nothing outside is changed
    outside.chmod(0o600)
    make_private(data)
