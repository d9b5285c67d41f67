"""What a connector lists and hands over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from core.errors import CarrelError, DocumentError
from core.settings import Settings
from ingest.types import LoadFailure


class GoneError(DocumentError):
    """Say that an item is no longer at its source."""


class LeftOutError(DocumentError):
    """Say that an item is none that this source wants to be read, or none of its own."""


class UnreachableError(DocumentError):
    """Say that a source does not answer, or not as it should: trying again later can help."""

    retryable = True


class SourceError(CarrelError):
    """Say why a source as a whole cannot be synced; the others go on."""


@dataclass(frozen=True)
class Item:
    """Name one item of a source.

    `key` is its name there; `name` that of its file, which stays the same; `mark` its revision as
    the list gives it, "" where only reading tells.
    """

    key: str
    name: str
    mark: str = ""


@dataclass(frozen=True)
class Received:
    """Say what was read of an item: its revision, and what is added to the name of its file.

    `path` is where the file is, None for the one that was to be written.
    """

    mark: str
    suffix: str = ""
    path: Path | None = None


@dataclass(frozen=True)
class Credential:
    """Hold what a source wants to see, from the environment or the keyring."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True)
class Access:
    """Hold what a connector needs beside the address: limits, rights, secrets, a folder to use."""

    settings: Settings
    credential: Credential
    private: bool
    scratch: Path
    pause: Callable[[], None] = lambda: None
    variable: str = "CARREL_SOURCE_NAME"  # how the environment variables of its source begin

    @property
    def most_bytes(self) -> int:
        """Return the bytes of one item at most."""
        return self.settings.ingest.max_file_mb * 2**20


class Connector(Protocol):
    """List the items of one source and read them, one after the other.

    `complete` says after the list that nothing was left out, so that what it lacks is gone;
    `bytes_read` counts what was read of the source; `failed` names what the list could not look at.
    """

    complete: bool
    bytes_read: int
    failed: list[LoadFailure]

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield all items; `marks` are the revisions that are known, by key."""

    def read(self, item: Item, mark: str, target: Path) -> Received | None:
        """Read an item, into `target` where it is not a file yet; None where it is as it was.

        `mark` is the known revision, "" for a new item. Raises GoneError, or DocumentError for one
        that cannot be read.
        """

    def close(self) -> None:
        """Give everything back."""
