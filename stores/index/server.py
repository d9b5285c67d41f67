"""What a Chroma server did in place of answering, in words; and whether any server answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from stores.folder import CHROMA, MILVUS
from stores.index.port import IndexUnavailableError

GLANCE_S = 2.0  # for a look whether it answers; chosen, not measured: a person waits for it
HINT = (
    "start it (`chroma run`), see chroma.url and chroma.timeout_s, or `carrel reindex --index"
    " memmap` does without it"
)


def too_slow(url: str, reason: str) -> IndexUnavailableError:
    """Return what to raise where a server did not answer in time."""
    return _unavailable("the Chroma server must answer in time", url, reason)


def no_answer(url: str, error: BaseException) -> IndexUnavailableError:
    """Return what to raise for an error of the client: what happened, without its types."""
    import httpx  # late: only who asks a server has loaded it

    for one in _causes(error):
        if isinstance(one, httpx.TimeoutException):
            return too_slow(url, "it did not")
        if isinstance(one, httpx.TransportError):
            return _unavailable("the Chroma server was not reached", url, str(one) or "no reply")
        if isinstance(one, httpx.HTTPStatusError):
            return _failed(url, f"HTTP {one.response.status_code}")
        if isinstance(one, json.JSONDecodeError):
            return _failed(url, "its reply is no JSON: another program may be there")
    return _failed(url, str(error) or "it says no more")


def glance(place: str) -> str:
    """Say why the server of an index does not answer, "" where it does or there is none.

    `place` is what the catalogue records of the index: its name, and its address if any.
    """
    index, _, url = place.partition(" ")
    if index == MILVUS and "://" in url:
        return _glance_at_milvus(url)
    if index != CHROMA or not url:
        return ""
    import httpx

    try:
        httpx.get(f"{url}/api/v2/heartbeat", timeout=GLANCE_S).raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        return str(no_answer(url, error))
    return ""


def _glance_at_milvus(url: str) -> str:
    """Say why nothing takes connections there: Milvus' own client is loaded where it is asked."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 19530), GLANCE_S).close()
    except OSError as error:
        return f"the Milvus server was not reached: {url} ({error}); see milvus.uri"
    return ""


def _failed(url: str, reason: str) -> IndexUnavailableError:
    return _unavailable("the Chroma server answered with an error", url, reason)


def _unavailable(rule: str, url: str, reason: str) -> IndexUnavailableError:
    return IndexUnavailableError(rule, value=f"{url} ({reason})", hint=HINT)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
