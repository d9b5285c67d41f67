"""The talk between a server and the command line of its operator: a line of JSON per frame.

It is spoken over loopback, which every user of the machine can reach, so both sides first prove
that they can read the owner's note; the secret itself is never sent. The server speaks first, in no
words of HTTP, and takes nothing but the proof from who has not proved anything: a browser, whose
first words are always a request, gets nowhere.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import threading
import time
from typing import Any

LOOPBACK = "127.0.0.1"
VERSION = 1
NONCE_BYTES = 32  # as many as the secret has
PIECE = 65_536  # bytes read at once, chosen
PROOF_BYTES = 1024  # of a frame before the proof, which has about 150
Frame = dict[str, Any]


class FrameError(Exception):
    """Say that the other side does not keep to the talk, or cannot prove who it is."""


class Channel:
    """Send and receive frames over one connection; threads may send at once."""

    def __init__(self, connection: socket.socket, *, most_bytes: int, seconds: float) -> None:
        """Take frames of up to `most_bytes`; the other side accepts a piece within `seconds`."""
        self._connection = connection
        self.allow(seconds)
        self.most_bytes = most_bytes
        self._buffer = bytearray()
        self._lock = threading.RLock()  # a signal's handler may send while its thread does

    def allow(self, seconds: float) -> None:
        """Give the other side this long for a piece from now on."""
        self._connection.settimeout(seconds)

    def send(self, **frame: Any) -> None:  # noqa: ANN401 - anything JSON can hold
        """Send a frame; raises OSError when the other side is gone or does not read."""
        data = json.dumps(frame).encode("ascii") + b"\n"
        with self._lock:
            self._connection.sendall(data)

    def receive(self, *, patient: bool = True) -> Frame | None:
        """Return the next frame, None at the end; raises FrameError, or OSError when it breaks.

        Without `patient` all of it must come within the seconds of the channel.
        """
        deadline = time.monotonic() + (self._connection.gettimeout() or 0)
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > self.most_bytes:
                raise FrameError(f"a frame has at most {self.most_bytes} bytes")
            if not patient and time.monotonic() > deadline:
                raise TimeoutError
            try:
                piece = self._connection.recv(PIECE)
            except TimeoutError:
                if patient:
                    continue
                raise
            if not piece:
                return None
            self._buffer += piece
        if end > self.most_bytes:
            raise FrameError(f"a frame has at most {self.most_bytes} bytes")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return _frame(line)

    def close(self) -> None:
        """End the connection for both sides, and every thread that waits for a frame of it."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return
        finally:
            self._connection.close()


def _frame(line: bytes) -> Frame:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise FrameError("a frame is a line of JSON") from None
    if not isinstance(found, dict):
        raise FrameError("a frame is an object")
    return found


def admit(channel: Channel, secret: str) -> None:
    """Let a client prove that it knows the secret, and prove it to the client.

    Raises FrameError when it cannot.
    """
    nonce = secrets.token_hex(NONCE_BYTES)
    most, channel.most_bytes = channel.most_bytes, PROOF_BYTES
    channel.send(carrel=VERSION, nonce=nonce)
    reply = channel.receive(patient=False) or {}
    theirs, proof = str(reply.get("nonce")), str(reply.get("proof"))
    if not hmac.compare_digest(proof.encode(), _proof(secret, "client", nonce, theirs).encode()):
        raise FrameError("the client does not know the secret of this server")
    channel.most_bytes = most
    channel.send(proof=_proof(secret, "server", nonce, theirs))


def enter(channel: Channel, secret: str) -> None:
    """Prove to a server that the secret is known, and have it prove the same.

    Raises FrameError when this is not the server that wrote the note.
    """
    greeting = channel.receive(patient=False) or {}
    if greeting.get("carrel") != VERSION:
        raise FrameError("the server speaks another version")
    theirs, nonce = str(greeting.get("nonce")), secrets.token_hex(NONCE_BYTES)
    channel.send(nonce=nonce, proof=_proof(secret, "client", theirs, nonce))
    proof = str((channel.receive(patient=False) or {}).get("proof"))
    if not hmac.compare_digest(proof.encode(), _proof(secret, "server", theirs, nonce).encode()):
        raise FrameError("what answers does not know the secret of the server")


def _proof(secret: str, side: str, server: str, client: str) -> str:
    words = f"{side}:{server}:{client}".encode("utf-8", "replace")
    return hmac.new(secret.encode(), words, "sha256").hexdigest()
