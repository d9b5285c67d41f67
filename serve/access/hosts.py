"""Which names a request may call this server by, and which pages may write to it."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from serve.errors import Refused

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
