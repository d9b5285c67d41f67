"""Where a server listens, which names and origins it accepts, and what prod mode insists on."""

from __future__ import annotations

import errno
import ipaddress
import re
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from core.errors import OperatorError
from core.settings import Settings
from serve.errors import Refused
from stores.folder import data_folder, open_to_others


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


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# RFC 9110 section 7.2, without the forms of names that nobody's machine has: no user, path or list.
HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_][a-z0-9_.-]*))(?::[0-9]{1,5})?", re.ASCII)
READING = frozenset({"GET", "HEAD", "OPTIONS"})


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches a server that listens on `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class HostRule:
    """Let requests in that name this server by an allowed name.

    A page of another site that makes its own name point here (DNS rebinding) is thereby refused.
    Addresses cannot be rebound, so a server that listens on all of them allows any address.
    """

    def __init__(self, listening: str, more: list[str]) -> None:
        """Allow the name listened on, those of this machine, and `more`."""
        self._names = LOOPBACK | {listening.lower()} | {name.lower() for name in more}
        self._any_address = listening in ("0.0.0.0", "::", "")
        if self._any_address:
            self._names |= {socket.gethostname().lower()}

    def check(self, given: str) -> None:
        """Raise Refused (400) for a Host header, or a target's host, without an allowed name."""
        name = host_name(given)
        if name in self._names or (self._any_address and _is_address(name)):
            return
        raise Refused(
            400,
            "wrong_host",
            "a request names this server as it is known",
            value=given,
            hint="the operator allows more names with CARREL_SERVE__HOSTS",
        )


class OriginRule:
    """Let a browser write only from this server's own pages, or those of named origins."""

    def __init__(self, allowed: list[str]) -> None:
        """Allow these origins beside the server's own."""
        self._allowed = {origin.rstrip("/").lower() for origin in allowed}

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Raise Refused (403) for a write that another site's page sends."""
        origin = headers.get("origin")
        if method in READING or (origin or "").lower() in self._allowed:
            return
        crossing = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if origin is None and not crossing:
            return  # no browser: those name the origin of every write
        if origin is not None and _is_own(origin, headers.get("host", "")):
            return
        raise Refused(
            403,
            "wrong_origin",
            "a page of another site may not write here",
            value=origin,
            hint="the operator allows origins with CARREL_SERVE__ORIGINS",
        )


def host_name(host: str) -> str:
    """Return the name of a Host header, without port and brackets; empty when it is none."""
    match = HOST.fullmatch(host.lower())
    return (match[1] or match[2]) if match else ""


def _is_own(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_mode(settings: Settings, *, allow_anonymous: bool, nobody_has_a_key: bool) -> None:
    """Raise OperatorError, naming everything that is left open, unless the mode allows it."""
    if settings.serve.mode != "prod":
        return
    problems = list(_open_doors(settings))
    if allow_anonymous:
        problems.insert(0, "--allow-anonymous lets callers in without a key")
    elif nobody_has_a_key:
        problems.insert(0, "there is no good key (`carrel keys create`) and no signed token")
    if problems:
        raise OperatorError(
            f"prod does not start with these settings ({len(problems)}): {'; '.join(problems)}",
            hint="correct them, or use --mode dev on your own machine",
        )


def _open_doors(settings: Settings) -> Iterator[str]:
    if settings.jwt.public_key or settings.jwt.key:
        if not settings.jwt.audience:
            yield "jwt.audience is empty: tokens of other services would be good here"
        if not settings.jwt.issuer:
            yield "jwt.issuer is empty: anybody whom the key signs for would be good here"
    for name in ("serve.ask_rate", "serve.rate", "serve.wrong_keys"):
        if not settings.value(name):
            yield f"{name} is 0: nothing limits a caller"
    if not settings.audit.enabled:
        yield "audit is off"
    folder = data_folder(settings)
    if mode := open_to_others(folder):
        yield f"other users of this machine may enter the data directory (mode {mode}; chmod 700)"
    for origin in settings.serve.origins:
        if urlsplit(origin).scheme != "https" and not is_loopback(urlsplit(origin).hostname or ""):
            yield f"serve.origins has {origin}, which is not https"
    url = urlsplit(settings.llm.url)
    if url.scheme == "http" and not is_loopback(url.hostname or ""):
        yield "llm.url is another machine without https: questions and documents could be read"
