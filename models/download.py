"""Fetch a chat model: resumed where it was left, checked against its SHA-256, moved in place.

`hf_hub_download` (huggingface_hub 1.33) begins a download that was broken off again from its first
byte, and these files have gigabytes. Its session, token and metadata are used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import httpx
from filelock import FileLock, Timeout
from huggingface_hub import constants, get_hf_file_metadata, get_session, get_token
from huggingface_hub.errors import EntryNotFoundError, FileMetadataError, OfflineModeIsEnabled

from core.errors import ModelError, OperatorError
from models.table import ChatCard

BLOCK = 1 << 20  # bytes that are hashed at a time
SHA256 = re.compile(r"[0-9a-f]{64}")
ASK_SECONDS = 10.0  # as long as huggingface_hub waits for metadata
REFUSALS = {
    401: "it wants a login: set HF_TOKEN, or log in with `hf auth login`",
    403: "access is not granted: accept the model's terms on its page and set HF_TOKEN",
    404: "it has no such file",
    407: "the proxy wants a login: give it in HTTPS_PROXY",
    429: "too many requests: wait some minutes",
}


class HubError(ModelError):
    """Say that the hub cannot be reached or does not give the file."""

    retryable = True


def endpoint() -> str:
    """Return the hub's address: HF_ENDPOINT, which may be a mirror, or Hugging Face."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or constants.ENDPOINT


@contextmanager
def explain_errors(name: str, url: str, destination: Path) -> Iterator[None]:
    """Turn any exception of a request into one HubError: the reason, the address, what to do."""
    try:
        yield
    except OfflineModeIsEnabled:
        raise _unreachable(name, url, destination, "HF_HUB_OFFLINE is set") from None
    except httpx.HTTPError as error:  # the library's own HTTP errors are among them
        raise _unreachable(name, url, destination, _reason(error)) from None
    except json.JSONDecodeError:
        reason = "what answers there is no model hub"
        raise _unreachable(name, url, destination, reason) from None
    except (httpx.InvalidURL, ValueError) as error:
        raise _unreachable(name, url, destination, f"no valid address: {error}") from None
    except (EntryNotFoundError, FileMetadataError, RuntimeError) as error:
        raise _unreachable(name, url, destination, str(error).partition("\n")[0]) from None


def _reason(error: Exception) -> str:
    response = getattr(error, "response", None)
    if isinstance(response, httpx.Response):
        status = response.status_code
        return f"HTTP {status}" + (f", {REFUSALS[status]}" if status in REFUSALS else "")
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ProxyError):
        return f"the proxy refuses: {error}"
    return str(error) or type(error).__name__


def _unreachable(name: str, url: str, destination: Path, reason: str) -> HubError:
    return HubError(
        f"the model hub does not give {name} ({reason.rstrip('.')})",
        hint=f"for a mirror set HF_ENDPOINT; or fetch {url} on another machine, copy it to"
        f" {destination} and run `carrel models verify {name}`",
    )


def file_sha256(path: Path, advance: Callable[[str, int, int], None]) -> str:
    """Hash a file, saying how far it is: advance("check", bytes done, bytes in all)."""
    digest, done, size = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            advance("check", done, size)
    return digest.hexdigest()


def record_digest(path: Path, digest: str) -> None:
    """Write the digest beside the file."""
    partial = _beside(path).with_suffix(".part")
    partial.write_text(f"{digest}  {path.name}\n", encoding="utf-8")
    os.replace(partial, _beside(path))


def read_digest(path: Path) -> str | None:
    """Return the digest written beside the file, None when there is none."""
    try:
        found = _beside(path).read_text(encoding="utf-8", errors="replace").split()
    except OSError:
        return None
    return found[0] if found and SHA256.fullmatch(found[0]) else None


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


Advance = Callable[[str, int, int], None]  # stage, bytes done, bytes in all (0: not known)
# Times chosen, not measured: a busy hub may take long, a dead one must be noticed.
CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
TRIES = 4  # connections in a row that bring no byte
PAUSE_SECONDS = 2.0  # between two of them
SPARE_BYTES = 64 << 20  # left free on the disk
PARTIAL, RANGE_WRONG = 206, 416  # HTTP statuses (RFC 9110)


class Pulled(NamedTuple):
    """Say what a pull has done; `sha256` is that of the file as it lies there now."""

    path: Path
    bytes: int
    sha256: str
    state: Literal["fetched", "present"]


def pull_chat_model(card: ChatCard, folder: Path, advance: Advance) -> Pulled:
    """Bring a chat model into the folder, or find that it is there and complete.

    A partial file is kept and continued. Raises HubError, OperatorError for the disk, ModelError
    for a file of another digest; such a download is removed.
    """
    path = card.path(folder)
    with _alone(path):
        if path.exists():
            return _present(card, path, advance)
        url = f"{endpoint()}/{card.repository}/resolve/{card.revision}/{card.file}"
        with explain_errors(card.name, url, path):
            announced = get_hf_file_metadata(url, timeout=ASK_SECONDS, endpoint=endpoint())
        expected = _expected_digest(card, announced.etag)
        partial = path.with_name(f"{path.name}.{(expected or 'unknown')[:12]}.part")
        size = announced.size or card.bytes or 0
        there = partial.stat().st_size if partial.exists() else 0
        check_space(path.parent, size - there, "CARREL_LLAMA__MODEL_FOLDER")
        with explain_errors(card.name, url, path):
            _fetch(url, partial, size, advance)
        digest = file_sha256(partial, advance)
        if expected is not None and digest != expected:
            partial.unlink()
            raise _differs(card, expected, digest)
        os.replace(partial, path)
        record_digest(path, digest)
        return Pulled(path, path.stat().st_size, digest, "fetched")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of one file; raise OperatorError when another process fetches it."""
    lock = FileLock(path.with_name(f"{path.name}.lock"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise OperatorError(
            "another `carrel models pull` is fetching the file", value=str(path), hint="wait for it"
        ) from None
    except OSError as error:
        raise OperatorError(
            f"the model folder must be writable ({error.strerror})",
            value=str(path.parent),
            hint="set CARREL_LLAMA__MODEL_FOLDER to another folder",
        ) from error
    try:
        yield
    finally:
        lock.release()


def _present(card: ChatCard, path: Path, advance: Advance) -> Pulled:
    expected = card.sha256 or read_digest(path)
    digest = file_sha256(path, advance)
    if expected is not None and digest != expected:
        raise ModelError(
            f"the file of {card.name} must have SHA-256 {expected}, it has {digest}",
            value=str(path),
            hint="move it away and pull again",
        )
    return Pulled(path, path.stat().st_size, digest, "present")


def _expected_digest(card: ChatCard, etag: str | None) -> str | None:
    """Return the digest to hold the download to; the table's wins over the hub's word.

    The X-Linked-Etag of a large file is its SHA-256.
    """
    digest = (etag or "").lower()
    announced = digest if SHA256.fullmatch(digest) else None
    if card.sha256 and announced and card.sha256 != announced:
        raise _differs(card, card.sha256, announced)
    return card.sha256 or announced


def _differs(card: ChatCard, expected: str, found: str) -> ModelError:
    return ModelError(
        f"{card.file} must have SHA-256 {expected}, the hub gives {found}; it was not kept",
        hint=f"pull again; if it stays so, {endpoint()} serves another file than {card.repository}"
        f" at {card.revision}",
    )


def check_space(folder: Path, missing: int, setting: str) -> None:
    """Raise OperatorError when so many bytes do not fit; `setting` chooses another folder."""
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    free = shutil.disk_usage(existing).free
    if missing > 0 and free < missing + SPARE_BYTES:
        raise OperatorError(
            f"the download needs {missing:,} bytes, the disk has {free:,} free",
            value=str(folder),
            hint=f"free some space, or set {setting} to a larger disk",
        )


def _fetch(url: str, partial: Path, size: int, advance: Advance) -> None:
    """Fill the partial file; a cut connection is taken up again while any bytes arrive."""
    idle = 0
    while True:
        before = partial.stat().st_size if partial.exists() else 0
        if size and before == size:
            return
        try:
            _stream(url, partial, before if before <= size or not size else 0, size, advance)
        except httpx.TransportError:
            idle = 0 if partial.exists() and partial.stat().st_size > before else idle + 1
            if idle >= TRIES:
                raise
            time.sleep(PAUSE_SECONDS * idle)
            continue
        if not size or partial.stat().st_size == size:
            return
        raise httpx.RemoteProtocolError(
            f"{partial.stat().st_size:,} bytes came, {size:,} were announced"
        )


def _stream(url: str, partial: Path, start: int, size: int, advance: Advance) -> None:
    headers = {"Accept-Encoding": "identity"}
    if token := get_token():
        headers["Authorization"] = f"Bearer {token}"
    if start:
        headers["Range"] = f"bytes={start}-"
    times = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    with get_session().stream("GET", url, headers=headers, timeout=times) as response:
        if start and response.status_code == RANGE_WRONG:
            partial.unlink()  # longer than the file is: begin again with the next try
            raise httpx.RemoteProtocolError("the hub has no such part of the file")
        response.raise_for_status()
        if response.status_code != PARTIAL:
            start = 0  # the whole file comes, whatever was asked for
        with partial.open("r+b" if start else "wb") as file:
            file.seek(start)
            for block in response.iter_bytes():  # as they come: a cut loses nothing
                file.write(block)
                start += len(block)
                advance("download", start, size)
