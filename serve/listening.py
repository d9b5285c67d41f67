"""The socket that a server listens on, bound before anything is loaded for it."""

from __future__ import annotations

import errno
import socket

from core.errors import OperatorError


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to the address, which refuses connections until the server is ready.

    Raises OperatorError when the address cannot be had.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _unusable(host, port, error) from None
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _unusable(host, port, error) from None
    bound.set_inheritable(True)
    return bound


def address_of(bound: socket.socket, host: str) -> str:
    """Return the URL of a socket, with the port it really has."""
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{bound.getsockname()[1]}"


def _unusable(host: str, port: int, error: OSError) -> OperatorError:
    if error.errno == errno.EADDRINUSE:
        hint = "give another one with --port, or end the program that has it"
        return OperatorError("the port must be free", value=f"{host}:{port}", hint=hint)
    return OperatorError(
        "the server must be able to listen on its address",
        value=f"{host}:{port} ({error.strerror or error})",
        hint="give another one with --host and --port",
    )
