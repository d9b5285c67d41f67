"""The one way of connectors to a network: bounded, polite, and to public addresses alone.

Every connection is to an address that was checked after its name was resolved, on each redirect
again, so that no name can lead to a machine of the inside.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from urllib.parse import urljoin, urlsplit

import httpcore
import httpx

from core.distribution import program_version
from core.errors import CallerError, DocumentError
from ingest.connectors.types import (
    Access,
    Credential,
    GoneError,
    SourceError,
    UnreachableError,
)

ALLOW = "`carrel source add … --allow-private` takes it, for a network that is yours"
OTHERS = "--allow-private is for the host and port of the source's own address, and no other"
AGENT = "carrel"  # by which a robots.txt names this program
REDIRECTS = 5  # one after the other; chosen, not measured
LATER = frozenset({429, 500, 502, 503, 504})  # worth another try
LONGEST_WAIT_S = 60.0  # that a server may ask for; chosen, not measured
CONNECT_S = 10.0  # chosen, not measured
PIECE = 1 << 16  # bytes unpacked at once
NAT64 = ipaddress.ip_network("64:ff9b::/96")
METADATA = ipaddress.ip_network("fd00:ec2::/64")  # where a cloud gives them over IPv6
OWN_PORTS = frozenset({80, 443})  # of a private host beside the one that its address names


def _unwrapped(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return inner or address
    return address


def is_public(text: str) -> bool:
    """Tell whether an IP address is one of the public internet, whatever it is wrapped in."""
    address = _unwrapped(text)
    return address.is_global and not address.is_multicast


def is_link_local(text: str) -> bool:
    """Tell whether an IP address is one of a single link: there machines keep their secrets."""
    address = _unwrapped(text)
    return address.is_link_local or address in METADATA


def resolve(host: str, port: int, *, private: bool, hint: str = ALLOW) -> list[str]:
    """Return the addresses of a host; raises CallerError where one is not public, unless allowed.

    One of a single link is never allowed. Raises OSError for a name without any.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    for one in addresses:
        shown = host if host == one else f"{host} ({one})"
        if not is_public(one) and is_link_local(one):
            rule = "a source has a public address, and one of a link is never allowed"
            raise CallerError(rule, value=shown, hint="give another address")
        if not private and not is_public(one):
            raise CallerError("a source has a public address", value=shown, hint=hint)
    return addresses


def check_host(host: str, *, private: bool = False) -> None:
    """Raise CallerError for a host as `resolve` does; one that cannot be resolved now passes."""
    with suppress(OSError, UnicodeError):
        resolve(host, 0, private=private)


def may_be_private(host: str, port: int, origin: str) -> bool:
    """Tell whether a source whose address may be private may connect here: to its own host.

    Subdomains are its own, and so are the usual ports of the web beside the one that it names.
    """
    own, at = (urlsplit(origin).hostname or "").lower(), urlsplit(origin).port
    name = host.lower().strip("[]")
    is_own = name == own or (name.endswith(f".{own}") and not own.replace(".", "").isdigit())
    return is_own and (port == at or port in OWN_PORTS)


def connect(host: str, port: int, *, private: bool, timeout: float | None) -> socket.socket:
    """Return a connection to a host, after its addresses were checked."""
    addresses = resolve(host, port, private=private)
    for one in addresses[:-1]:
        with suppress(OSError):
            return socket.create_connection((one, port), timeout)
    return socket.create_connection((addresses[-1], port), timeout)


class _Backend(httpcore.NetworkBackend):
    """Connect to addresses that were checked; the certificate is still that of the name."""

    def __init__(self, own: str) -> None:
        self._own = own  # address whose host may be private, "" for none
        self._real = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            allowed = bool(self._own) and may_be_private(host, port, self._own)
            hint = OTHERS if self._own else ALLOW
            addresses = resolve(host, port, private=allowed, hint=hint)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host}: {error}") from None
        rest = (port, timeout, local_address, socket_options)
        for one in addresses[:-1]:
            with suppress(httpcore.ConnectError, httpcore.ConnectTimeout):
                return self._real.connect_tcp(one, *rest)
        return self._real.connect_tcp(addresses[-1], *rest)


class _Transport(httpx.HTTPTransport):
    def __init__(self, own: str) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=2,
            keepalive_expiry=30,
            network_backend=_Backend(own),
        )


@dataclass(frozen=True)
class HttpAnswer:
    """Hold how a request was answered, after redirects; `headers` have lower-case names."""

    status: int
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


class Fetcher:
    """Send the requests of one source, one after the other.

    `origin` is the address that its secrets are for: no other host and no other scheme gets them,
    and no other one may be private. Raises SourceError where they would be sent in the clear.
    """

    def __init__(self, access: Access, origin: str, auth: httpx.Auth | None = None) -> None:
        limits = access.settings.sources
        self.bytes_read = 0
        self.interval = 1 / limits.requests_per_s
        self._limits, self._pause = limits, access.pause
        self._most = access.most_bytes
        self._next = 0.0
        self._origin = _origin(origin)
        self._auth = auth or _auth(access.credential)
        self._variable = access.variable
        if self._auth is not None and auth is None:
            check_encryption(origin, private=access.private)
        self._client = httpx.Client(
            transport=_Transport(origin if access.private else ""),
            headers={
                "User-Agent": f"{AGENT}/{program_version()}",
                "Accept-Encoding": "identity",
            },
            timeout=httpx.Timeout(min(limits.timeout_s, CONNECT_S * 3), connect=CONNECT_S),
            follow_redirects=False,
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, url: str, into: BinaryIO, headers: Mapping[str, str] | None = None) -> HttpAnswer:
        """Write what is at a URL; raises GoneError, UnreachableError or DocumentError.

        An answer 304, to `headers` that ask for it, has no body.
        """
        return self.send("GET", url, into, headers or {})

    def send(
        self, method: str, url: str, into: BinaryIO, headers: Mapping[str, str], body: bytes = b""
    ) -> HttpAnswer:
        """Send a request, with redirects followed, and again where that can help."""
        first = url
        for _ in range(REDIRECTS + 1):
            answer = self._tried(method, url, into, headers, body)
            target = answer.headers.get("location", "")
            if answer.status not in (301, 302, 303, 307, 308) or not target:
                return _judged(answer, self._variable)
            url = urljoin(url, target)
            if urlsplit(url).scheme not in ("http", "https"):
                raise DocumentError("a redirect leads to another web address", value=url)
        rule = f"at most {REDIRECTS} redirects are followed, and this goes on"
        raise DocumentError(rule, value=first, hint="correct the address")

    def _tried(
        self, method: str, url: str, into: BinaryIO, headers: Mapping[str, str], body: bytes
    ) -> HttpAnswer:
        wait = 1.0
        for attempt in range(self._limits.retries + 1):
            into.seek(0)
            into.truncate()
            asked = ""
            try:
                answer = self._once(method, url, into, headers, body)
                if answer.status not in LATER:
                    return answer
                why, asked = f"answers {answer.status}", answer.headers.get("retry-after", "")
            except (httpx.TransportError, zlib.error) as error:
                why = f"{type(error).__name__}: {error}"
            except httpx.InvalidURL as error:
                raise DocumentError("an address must be a valid URL", value=str(error)) from None
            if attempt < self._limits.retries:
                self._sleep(min(float(asked) if asked.isdigit() else wait, LONGEST_WAIT_S))
                wait *= 2
        rule = "the source does not answer"
        raise UnreachableError(rule, value=f"{url} ({why})", hint="the next sync tries again")

    def _once(
        self, method: str, url: str, into: BinaryIO, headers: Mapping[str, str], body: bytes
    ) -> HttpAnswer:
        self._sleep(self._next - time.monotonic())
        self._next = time.monotonic() + self.interval
        deadline = time.monotonic() + self._limits.timeout_s
        auth = self._auth if _origin(url) == self._origin else None
        request = self._client.build_request(
            method, url, headers=dict(headers), content=body or None
        )
        response = self._client.send(request, stream=True, auth=auth)
        try:
            answer = HttpAnswer(response.status_code, str(response.url), _lower(response.headers))
            if answer.status < 300:
                self._check_length(answer)
                for piece in self._unpacked(response, deadline):
                    into.write(piece)
            return answer
        finally:
            response.close()

    def _check_length(self, answer: HttpAnswer) -> None:
        length = answer.headers.get("content-length", "")
        if length.isdigit() and int(length) > self._most:
            raise self._too_large(answer.url)

    def _unpacked(self, response: httpx.Response, deadline: float) -> Iterator[bytes]:
        """Yield the body, unpacked piece by piece: a small answer may hold gigabytes."""
        coding = response.headers.get("content-encoding", "identity").lower()
        if coding not in ("identity", "gzip", "x-gzip", "deflate"):
            raise DocumentError("the server packs its answer in a way not asked for", value=coding)
        unpack = None if coding == "identity" else zlib.decompressobj(47)
        size = 0
        for raw in response.iter_raw():
            self.bytes_read += len(raw)
            if time.monotonic() > deadline:
                rule = f"an item arrives within {self._limits.timeout_s:g} s (sources.timeout_s)"
                raise UnreachableError(rule, value=str(response.url))
            while raw:
                piece = raw if unpack is None else unpack.decompress(raw, PIECE)
                raw = b"" if unpack is None else unpack.unconsumed_tail
                size += len(piece)
                if size > self._most:
                    raise self._too_large(str(response.url))
                yield piece

    def _too_large(self, url: str) -> DocumentError:
        rule = f"an item has at most {self._most >> 20} MB (ingest.max_file_mb)"
        return DocumentError(rule, value=url)

    def _sleep(self, seconds: float) -> None:
        """Wait, and notice meanwhile when nobody waits any more."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._pause()
            time.sleep(min(left, 0.5))


def check_encryption(url: str, *, private: bool) -> None:
    """Raise SourceError where a secret would be sent in the clear over a network of others."""
    scheme = urlsplit(url).scheme.removeprefix("git+")
    if scheme in ("http", "webdav") and not private:
        hint = f"write {scheme}s://, or add it with --allow-private for a network that is yours"
        raise SourceError("a password or token is sent over TLS alone", value=url, hint=hint)


def _judged(answer: HttpAnswer, variable: str) -> HttpAnswer:
    if answer.status in (404, 410):
        raise GoneError("the source no longer has it", value=f"{answer.url} ({answer.status})")
    if answer.status in (401, 403):
        hint = f"set {variable}_PASSWORD or {variable}_TOKEN, which may have expired"
        raise UnreachableError(
            "the source lets nobody in", value=f"{answer.url} ({answer.status})", hint=hint
        )
    if answer.status >= 300 and answer.status != 304:
        raise DocumentError("the source refuses", value=f"{answer.url} ({answer.status})")
    return answer


def _auth(credential: Credential) -> httpx.Auth | None:
    if credential.token:
        return _Bearer(credential.token)
    if credential.password:
        return httpx.BasicAuth(credential.user, credential.password)
    return None


class _Bearer(httpx.Auth):
    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port


def _lower(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
