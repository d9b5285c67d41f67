"""Whatever a document makes its parser do, the process has no network, no programs, no files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFINED = """
import ctypes, json, os, pickle, shutil, socket, subprocess, sys, tempfile, urllib.request
from ingest.sandbox.confine import Confinement
given, attempts = json.loads(sys.argv[1])
other = given + ".x"
box = Confinement()
box.file = given
box.enter()
said = {}
for name, attempt in attempts.items():
    try:
        exec(attempt)
        said[name] = "done"
    except PermissionError as error:
        said[name] = f"refused: {error}"
print(json.dumps(said))
"""
REFUSED = {
    "connect": "socket.create_connection(('127.0.0.1', 9))",
    "datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "name": "socket.getaddrinfo('localhost', 80)",
    "fetch": "urllib.request.urlopen('http://127.0.0.1:9/')",
    "fetch a file": "urllib.request.urlopen('file:///etc/hosts')",
    "program": "subprocess.run(['true'])",
    "shell": "os.system('true')",
    "fork": "os.fork()",
    "exec": "os.execv('/bin/true', ['true'])",
    "spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "kill": "os.kill(os.getppid(), 0)",
    "unpickle": "pickle.loads(b'cos\\nsystem\\n.')",
    "read": "open('/etc/passwd').read()",
    "read bytes": "os.open(b'/etc/passwd', os.O_RDONLY)",
    "write": "open(other, 'w')",
    "append": "open(other, 'a')",
    "truncate": "os.open(given, os.O_RDWR)",
    "remove": "os.remove(given)",
    "rename": "os.rename(given, other)",
    "remove all": "shutil.rmtree(os.path.dirname(given))",
    "folder": "os.mkdir(other)",
    "link": "os.symlink('/etc/passwd', other)",
    "mode": "os.chmod(given, 0)",
}
ALLOWED = {
    "the file": "open(given).read()",
    "temporary": "tempfile.TemporaryFile().write(b'x')",
    "named": "os.remove(tempfile.mkstemp()[1])",
    "imports": "import wave, charset_normalizer, lxml.etree, pypdf",
    "nowhere": "open(os.devnull, 'w').write('x')",
    "chance": "os.urandom(4)",
    "kinds of files": "import mimetypes; mimetypes.init()",
}


def confined(folder: Path, attempts: dict[str, str]) -> dict[str, str]:
    """Return how each attempt ended in a confined process, which leaves no trace."""
    scratch, given = folder / "scratch", folder / "given.md"
    scratch.mkdir()
    given.write_text("given")
    ended = subprocess.run(
        [sys.executable, "-c", CONFINED, json.dumps([str(given), attempts])],
        capture_output=True, text=True, env=os.environ | {"TMPDIR": str(scratch)}, cwd=ROOT,
        check=False,
    )  # fmt: skip
    assert given.read_text() == "given"
    assert {path.name for path in folder.iterdir()} == {"given.md", "scratch"}
    assert list(scratch.iterdir()) == []
    assert ended.returncode == 0, ended.stderr
    said: dict[str, str] = json.loads(ended.stdout)
    return said


def test_refused_and_allowed(tmp_path: Path) -> None:
    said = confined(tmp_path, REFUSED | ALLOWED)
    assert [name for name in REFUSED if not said[name].startswith("refused: a parser may")] == []
    assert [name for name in ALLOWED if said[name] != "done"] == []


def test_native_code_has_no_network(tmp_path: Path) -> None:
    tried = [["unshare", "-n", "true"], ["unshare", "-Urn", "true"]]
    if not shutil.which("unshare") or all(subprocess.run(t, check=False).returncode for t in tried):
        pytest.skip("this system lets no process leave its network namespace")
    routes = "assert len(open('/proc/self/net/route').readlines()) < 2"
    assert confined(tmp_path, {"routes": routes}) == {"routes": "done"}
