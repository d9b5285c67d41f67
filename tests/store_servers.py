"""Servers of files and mail on loopback: IMAP, Git over HTTP, a bucket, WebDAV."""

from __future__ import annotations

import datetime
import hashlib
import os
import re
import socketserver
import ssl
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
from cheroot.ssl.builtin import BuiltinSSLAdapter
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from wsgidav.wsgidav_app import WsgiDAVApp


class Tls:
    """Hold a certificate for this machine, which whoever trusts `file` takes."""

    def __init__(self, folder: Path, *hosts: str) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName(one) for one in hosts or ("localhost",)]
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(key, hashes.SHA256())
        )
        pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
        self.file, self.key = folder / "cert.pem", folder / "key.pem"
        self.file.write_bytes(made.public_bytes(pem))
        self.key.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.file, self.key)


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
        self.offers = b""

    def answer(self, line: str) -> Iterator[bytes]:
        tag, command, rest = (*line.split(" ", 2), "")[:3]
        match command.upper():
            case "CAPABILITY":
                yield b"* CAPABILITY IMAP4rev1 " + self.offers + b"\r\n"
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
def imap(box: Mailbox, tls: Tls | None = None, *, at_once: bool = True) -> Iterator[int]:
    """Serve a mailbox; with `tls` from the first byte on, or once the client asks for it."""

    class Handler(socketserver.StreamRequestHandler):
        def setup_files(self) -> None:
            self.rfile = self.connection.makefile("rb", self.rbufsize)
            self.wfile = socketserver._SocketWriter(self.connection)  # type: ignore[attr-defined]

        def setup(self) -> None:
            super().setup()
            if tls is not None and at_once:
                self._wrap()

        def _wrap(self) -> None:
            assert tls is not None
            self.connection = tls.context.wrap_socket(self.request, server_side=True)
            self.setup_files()

        def finish(self) -> None:
            super().finish()
            self.rfile.close()
            self.connection.close()

        def handle(self) -> None:
            self.wfile.write(b"* OK ready\r\n")
            while line := self.rfile.readline().decode().strip():
                for answer in box.answer(line):
                    self.wfile.write(answer)
                if line.upper().endswith("STARTTLS"):
                    self._wrap()
                if line.upper().endswith("LOGOUT"):
                    return

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *given: None  # type: ignore[method-assign]
    with served(server) as port:
        yield port


@contextmanager
def webdav(folder: Path, tls: Tls | None = None) -> Iterator[int]:
    config = {
        "provider_mapping": {"/dav": str(folder)},
        "simple_dc": {"user_mapping": {"*": {"ann": {"password": "pw"}}}},
        "verbose": 0,
        "logging": {"enable": False},
    }
    server = wsgi.Server(("127.0.0.1", 0), WsgiDAVApp(config))
    if tls is not None:
        server.ssl_adapter = BuiltinSSLAdapter(str(tls.file), str(tls.key))
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
