"""A folder of a mailbox over IMAP: each message is a file, which never changes."""

from __future__ import annotations

import imaplib
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from core.errors import CarrelError, DocumentError
from ingest.connectors.address import Address
from ingest.connectors.network import connect
from ingest.connectors.types import Access, GoneError, Item, Received, SourceError, UnreachableError
from ingest.types import LoadFailure

FAILS = (imaplib.IMAP4.error, OSError, EOFError)
SPARE = 2**20  # bytes of an answer beside the message in it; chosen, not measured


class _Bounded(imaplib.IMAP4):
    """Take no more than `most` bytes of answers to one command, for which `taken` begins again."""

    private = False
    most = taken = 0

    def read(self, size: int) -> bytes:
        """Read a literal; the library makes room for all of it before any has come."""
        self._take(size)
        return super().read(size)

    def readline(self) -> bytes:
        """Read a line."""
        line = super().readline()
        self._take(len(line))
        return line

    def _take(self, size: int) -> None:
        self.taken += size
        if self.taken > self.most:
            raise imaplib.IMAP4.abort(f"it answers with more than {self.most >> 20} MB")


class _Plain(_Bounded):
    def _create_socket(self, timeout: float | None) -> socket.socket:
        return connect(self.host, self.port, private=self.private, timeout=timeout)


class _Tls(_Bounded, imaplib.IMAP4_SSL):
    def _create_socket(self, timeout: float | None) -> socket.socket:
        plain = connect(self.host, self.port, private=self.private, timeout=timeout)
        return self.ssl_context.wrap_socket(plain, server_hostname=self.host)  # type: ignore[no-any-return]


class MailConnector:
    """List and read messages by number; a revision is the validity of the numbers."""

    def __init__(self, address: Address, access: Access) -> None:
        self._access = access
        self._folder = unquote(address.parts.path.strip("/")) or "INBOX"
        self._seconds = access.settings.sources.timeout_s
        self.complete = True
        self.bytes_read = 0
        self.failed: list[LoadFailure] = []
        if not access.credential.password:
            hint = f"set {access.variable}_PASSWORD, or use a keyring"
            raise SourceError("a mailbox needs a password", value=address.text, hint=hint)
        try:
            self._server = self._open(address)
        except (*FAILS, CarrelError) as error:
            if isinstance(error, CarrelError):
                raise
            hint = "check the address and the password, which may have expired"
            raise SourceError(
                "the mailbox does not open", value=f"{address.text}: {_why(error)}", hint=hint
            ) from None

    def _open(self, address: Address) -> _Bounded:
        tls = address.parts.scheme == "imaps"
        kind = _Tls if tls else _Plain
        # Of the class, as the constructor connects already.
        bounds = {"private": self._access.private, "most": self._access.most_bytes + SPARE}
        made = type("Checked", (kind,), bounds)
        port = address.parts.port or (993 if tls else 143)
        host = address.parts.hostname or ""
        context = ssl.create_default_context()
        if tls:
            server = made(host, port, ssl_context=context, timeout=self._seconds)
        else:
            server = made(host, port, timeout=self._seconds)
        opened: _Bounded = server
        try:
            if not tls and "STARTTLS" in opened.capabilities:
                opened.starttls(context)
            elif not tls and not self._access.private:
                raise SourceError("a password is sent over TLS alone", value=address.text)
            opened.login(self._access.credential.user, self._access.credential.password)
        except BaseException:
            with suppress(OSError):  # a handshake that failed has closed it
                opened.shutdown()
            raise
        return opened

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the messages."""
        try:
            quoted = self._folder.replace("\\", "\\\\").replace('"', '\\"')
            state, answer = self._server.select(f'"{quoted}"', readonly=True)
            if state != "OK":
                reason = (answer[0] or b"").decode("utf-8", "replace")
                raise SourceError(
                    "the mailbox has no such folder", value=f"{self._folder} ({reason})"
                )
            validity = (self._server.response("UIDVALIDITY")[1] or [b""])[0] or b""
            found = self._server.uid("search", "ALL")[1]
        except FAILS as error:
            raise SourceError("the mailbox does not answer", value=_why(error)) from None
        for number in (found[0] or b"").split():
            uid = number.decode()
            yield Item(uid, f"{uid}.eml", validity.decode())

    def read(self, item: Item, mark: str, target: Path) -> Received:
        """Write a message, which stays as unread as it was."""
        most = self._access.most_bytes
        self._server.taken = 0
        try:
            _, sizes = self._server.uid("fetch", item.key, "(RFC822.SIZE)")
            size = re.search(rb"RFC822\.SIZE (\d+)", sizes[0] or b"" if sizes else b"")
            if size and int(size[1]) > most:
                rule = f"a message has at most {most >> 20} MB (ingest.max_file_mb)"
                raise DocumentError(rule, value=item.key)
            _, parts = self._server.uid("fetch", item.key, "(BODY.PEEK[])")
        except FAILS as error:
            raise UnreachableError("the mailbox does not answer", value=_why(error)) from None
        bodies = [part[1] for part in parts or [] if isinstance(part, tuple)]
        if not bodies:
            raise GoneError("the message is no longer there", value=item.key)
        self.bytes_read += len(bodies[0])
        target.write_bytes(bodies[0])
        return Received(item.mark)

    def close(self) -> None:
        """Leave the mailbox."""
        try:
            self._server.logout()
        except FAILS:  # it has left already, or says other things
            with suppress(OSError):
                self._server.shutdown()


def _why(error: Exception) -> str:
    if isinstance(error, OSError):  # whose first argument is a number
        return str(error)
    text = error.args[0] if error.args else error
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
