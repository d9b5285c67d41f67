"""Which addresses are this machine, and which proxy leads to the others."""

from __future__ import annotations

import ipaddress
import urllib.request
from contextlib import suppress
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address is this machine."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a server, never for this machine itself."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if is_loopback(host) or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(parts.scheme)
