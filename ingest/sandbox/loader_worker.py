"""The process that runs a document loader of LangChain: it answers with a JSON line per document.

What loaders print goes nowhere. `E` ends the answer; a line with `error` says why there is none.
"""

from __future__ import annotations

import inspect
import json
import os
import resource
import sys
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from ingest.connectors.network import is_link_local, is_public
from ingest.loaders.limits import MB
from ingest.sandbox.confine import Confinement, RefusedError
from ingest.sandbox.worker import private_stdout

# What a client of the network needs beside what a parser may do.
ALLOWED = ("socket.", "http.client.", "urllib.", "ftplib.", "imaplib.", "poplib.", "smtplib.")
CERTIFICATES = ("/etc/ssl", "/etc/pki", "/etc/mime.types")
OPEN_FILES = 256  # chosen, not measured


class LoaderConfinement(Confinement):
    """Allow connections, to public addresses unless `private`, and the paths that are named."""

    def __init__(self, paths: Iterable[str], *, private: bool) -> None:
        super().__init__()
        self._private = private
        named = (os.path.realpath(path) for path in (*paths, *CERTIFICATES))
        self._roots = (*self._roots, *named)

    def enter(self) -> None:
        """Confine this process, for as long as it lives."""
        for kind, value in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_NOFILE, OPEN_FILES)):
            with suppress(ValueError, OSError):
                resource.setrlimit(kind, (value, value))
        sys.addaudithook(self._judge)

    def _judge(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.sendto"):
            address = arguments[1]
            host = address[0] if isinstance(address, tuple) else ""
            if isinstance(host, str) and not self._may_reach(host):
                raise RefusedError(f"a loader may not connect to {host or address}")
        if not event.startswith(ALLOWED):
            super()._judge(event, arguments)

    def _may_reach(self, host: str) -> bool:
        if not _is_address(host):
            return self._private
        return is_public(host) or (self._private and not is_link_local(host))


def _is_address(host: str) -> bool:
    return host.replace(".", "").isdigit() or ":" in host


def main() -> None:
    """Run the one job that is given, and end."""
    answers = private_stdout()
    answers.write(b"ready\n")
    answers.flush()
    job = json.loads(sys.stdin.buffer.readline())
    with suppress(ValueError, OSError):
        most = job["memory_mb"] * MB
        resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        _run(job, answers)
        _write(answers, b"E")
    except BaseException as error:  # whatever a loader raises, SystemExit too
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:500]
        _write(answers, json.dumps({"error": reason}).encode())
    os._exit(0)


def _run(job: dict[str, Any], answers: BinaryIO) -> None:
    parameters = job["parameters"]
    paths = [one for one in parameters.values() if isinstance(one, str) and Path(one).is_absolute()]
    LoaderConfinement(paths, private=job["private"]).enter()
    module, _, name = job["loader"].rpartition(".")
    made = getattr(import_module(module), name)
    if not (isinstance(made, type) and callable(getattr(made, "lazy_load", None))):
        raise TypeError(f"{name} is no document loader of LangChain")
    inspect.signature(made).bind(**parameters)
    if job["check"]:
        return
    for document in made(**parameters).lazy_load():
        found = {
            "id": str(document.id or ""),
            "text": str(document.page_content),
            "metadata": {str(key): value for key, value in document.metadata.items()},
        }
        line = json.dumps(found, default=str, ensure_ascii=True).encode()
        if len(line) > job["longest"]:
            named = str(document.metadata.get("source") or document.id or "a document")
            reason = f"it has more than {job['longest'] >> 20} MB (ingest.max_file_mb)"
            line = json.dumps({"refused": named, "reason": reason}).encode()
        _write(answers, line)


def _write(answers: BinaryIO, line: bytes) -> None:
    answers.write(line + b"\n")
    answers.flush()


if __name__ == "__main__":
    main()
