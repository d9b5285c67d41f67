"""The model hub: its address, what it says of a file, and what to do when it cannot be reached."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from huggingface_hub import constants, get_hf_file_metadata
from huggingface_hub.errors import EntryNotFoundError, FileMetadataError, OfflineModeIsEnabled

from core.errors import ModelError

SHA256 = re.compile(r"[0-9a-f]{64}")
ASK_SECONDS = 10.0
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


@dataclass(frozen=True)
class Announced:
    """Hold what the hub says of a file before it is fetched; None for what it does not say."""

    url: str
    bytes: int | None
    sha256: str | None


def endpoint() -> str:
    """Return the hub's address: HF_ENDPOINT, which may be a mirror, or Hugging Face."""
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or constants.ENDPOINT


def announced_file(url: str) -> Announced:
    """Ask for size and SHA-256 of a file; its X-Linked-Etag is the digest of a large file."""
    found = get_hf_file_metadata(url, timeout=ASK_SECONDS, endpoint=endpoint())
    digest = (found.etag or "").lower()
    return Announced(url, found.size, digest if SHA256.fullmatch(digest) else None)


@contextmanager
def explained(name: str, url: str, destination: Path) -> Iterator[None]:
    """Turn whatever a request raises into one HubError: the reason, the address, what to do."""
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
