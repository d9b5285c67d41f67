"""Servers of files and mail on loopback: IMAP, Git over HTTP, a bucket, WebDAV."""

from __future__ import annotations

import hashlib
import os
import re
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp


@contextmanager
def served(server: Any) -> Iterator[int]:
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Mailbox:
    """Hold the messages of one folder by number, and what was fetched."""

    def __init__(self) -> None:
        self.messages: dict[int, bytes] = {}
        self.validity = 7
        self.password = "pw"
        self.fetched: list[int] = []

    def answer(self, line: str) -> Iterator[bytes]:
        tag, command, rest = (*line.split(" ", 2), "")[:3]
        match command.upper():
            case "CAPABILITY":
                yield b"* CAPABILITY IMAP4rev1\r\n"
            case "LOGIN" if f'"{self.password}"' not in rest:
                yield f"{tag} NO [AUTHENTICATIONFAILED] wrong password\r\n".encode()
                return
            case "EXAMINE" if "Archive" not in rest:
                yield f"{tag} NO no such mailbox\r\n".encode()
                return
            case "EXAMINE":
                yield f"* {len(self.messages)} EXISTS\r\n".encode()
                yield f"* OK [UIDVALIDITY {self.validity}] UIDs valid\r\n".encode()
            case "UID" if rest.upper().startswith("SEARCH"):
                yield f"* SEARCH {' '.join(map(str, self.messages))}\r\n".encode()
            case "UID":
                yield from self._fetch(rest)
            case "LOGOUT":
                yield b"* BYE\r\n"
        yield f"{tag} OK done\r\n".encode()

    def _fetch(self, rest: str) -> Iterator[bytes]:
        uid = int(rest.split()[1])
        body = self.messages.get(uid)
        if body is None:
            return
        if "RFC822.SIZE" in rest:
            yield f"* 1 FETCH (UID {uid} RFC822.SIZE {len(body)})\r\n".encode()
        else:
            self.fetched.append(uid)
            yield f"* 1 FETCH (UID {uid} BODY[] {{{len(body)}}}\r\n".encode() + body + b")\r\n"


@contextmanager
def imap(box: Mailbox) -> Iterator[int]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"* OK ready\r\n")
            while line := self.rfile.readline().decode().strip():
                for answer in box.answer(line):
                    self.wfile.write(answer)
                if line.upper().endswith("LOGOUT"):
                    return

    with served(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


@contextmanager
def webdav(folder: Path) -> Iterator[int]:
    config = {
        "provider_mapping": {"/dav": str(folder)},
        "simple_dc": {"user_mapping": {"*": {"ann": {"password": "pw"}}}},
        "verbose": 0,
        "logging": {"enable": False},
    }
    server = wsgi.Server(("127.0.0.1", 0), WsgiDAVApp(config))
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server.bind_addr[1]
    finally:
        server.stop()
        thread.join()


@contextmanager
def bucket(objects: dict[str, bytes], asked: list[str]) -> Iterator[int]:
    """Serve a bucket "papers", two keys a page, to signed requests alone."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            given = {name: values[0] for name, values in parse_qs(parts.query).items()}
            signed = (
                r"AWS4-HMAC-SHA256 Credential=KEY/\d{8}/us-east-1/s3/aws4_request.*Signature=\w{64}"
            )
            if not re.match(signed, self.headers.get("Authorization", "")):
                return self._send(403, b"")
            asked.append(unquote(parts.path))
            if parts.path == "/papers":
                return self._send(200, self._listed(given))
            body = objects.get(unquote(parts.path).removeprefix("/papers/"))
            return self._send(404, b"") if body is None else self._send(200, body)

        def _listed(self, given: dict[str, str]) -> bytes:
            keys = [one for one in sorted(objects) if one.startswith(given.get("prefix", ""))]
            first = int(given.get("continuation-token", 0))
            rows = "".join(
                f"<Contents><Key>{escape(key)}</Key>"
                f"<ETag>&quot;{hashlib.md5(objects[key]).hexdigest()}&quot;</ETag></Contents>"
                for key in keys[first : first + 2]
            )
            if first + 2 < len(keys):
                rows += f"<NextContinuationToken>{first + 2}</NextContinuationToken>"
            space = "http://s3.amazonaws.com/doc/2006-03-01/"
            return f'<ListBucketResult xmlns="{space}">{rows}</ListBucketResult>'.encode()

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield port


@contextmanager
def git_http(folder: Path, sent: list[int]) -> Iterator[int]:
    """Serve the repositories below a folder; "/moved/…" leads to another address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *given: object) -> None:
            pass

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path.startswith("/moved/"):
                self.send_response(301)
                self.send_header(
                    "Location", f"http://127.0.0.1:{self.server.server_port}/repo/info"
                )  # type: ignore[attr-defined]
                self.end_headers()
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            names = {"HTTP_CONTENT_ENCODING": "Content-Encoding", "CONTENT_TYPE": "Content-Type"}
            done = subprocess.run(
                ["git", "http-backend"],
                input=body,
                capture_output=True,
                env={
                    "PATH": os.environ["PATH"],
                    "GIT_PROJECT_ROOT": str(folder),
                    "GIT_HTTP_EXPORT_ALL": "1",
                    "GIT_CONFIG_COUNT": "1",
                    "GIT_CONFIG_KEY_0": "safe.directory",
                    "GIT_CONFIG_VALUE_0": "*",
                    "PATH_INFO": parts.path,
                    "QUERY_STRING": parts.query,
                    "REQUEST_METHOD": self.command,
                    "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                    **{name: self.headers.get(given, "") for name, given in names.items()},
                },
            )
            head, _, rest = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            sent.append(len(rest))
            self.wfile.write(rest)

        do_POST = do_GET

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield port
