"""Open the connector that an address wants; that of a folder, whose files are read in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from core.errors import CallerError
from core.settings import Settings
from ingest.connectors.address import Address, find_credential
from ingest.connectors.network import check_encryption, check_host
from ingest.connectors.types import Access, Connector, GoneError, Item, Received, SourceError
from ingest.discover import discover, size_of
from ingest.loaders.formats import source_files
from ingest.types import LoadFailure


class FolderConnector:
    """List the files below a path as `carrel ingest` does; a revision is time and size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._paths: dict[str, Path] = {}
        self.complete = True
        self.bytes_read = 0
        self.failed: list[LoadFailure] = []

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the files."""
        try:
            found, self.failed = discover([self._path])
        except CallerError as error:
            raise SourceError(error.rule, value=error.value, hint="nothing was removed") from None
        self.complete = not any(self._is_unread(one) for one in self.failed)
        for one in found:
            self._paths[one.relative] = one.path
            try:
                yield Item(one.relative, one.relative, _mark(one.path))
            except OSError:
                continue  # deleted since the listing

    def _is_unread(self, failure: LoadFailure) -> bool:
        """Tell whether a folder could not be listed, so that what is in it is not known."""
        return (self._path / failure.path).is_dir()

    def read(self, item: Item, mark: str, target: Path) -> Received:
        """Return where the file is."""
        path = self._paths[item.key]
        if not path.exists():
            raise GoneError("the file is no longer there", value=item.key)
        self.bytes_read += size_of(path)
        return Received(item.mark, path=path)

    def close(self) -> None:
        """Do nothing."""


def _mark(path: Path) -> str:
    """Return the times and sizes of a file, or of all files of a docset."""
    times = [(file.stat().st_mtime_ns, file.stat().st_size) for file in source_files(path)]
    return f"{max(time for time, _ in times)}:{sum(size for _, size in times)}:{len(times)}"


# By kind: the module, which is loaded when it is wanted, and the class.
Options = Mapping[str, Any]  # of a source: private, parameters
CLEAR = {"http": "https", "webdav": "webdavs", "git+http": "git+https"}
PLACES = {
    "web": ("web", "WebConnector"),
    "git": ("git", "GitConnector"),
    "imap": ("imap", "MailConnector"),
    "webdav": ("stores", "WebDavConnector"),
    "s3": ("stores", "BucketConnector"),
    "loader": ("loader", "LoaderConnector"),
    "projects": ("projects", "ProjectsConnector"),
}


def check_source(name: str, address: Address, settings: Settings, options: Options) -> str:
    """Check what can be known of a new source before it is read; return a warning, "" for none.

    Raises a CarrelError for a host, a loader or parameters that it may not have, or a secret that
    would be sent in the clear.
    """
    private = bool(options["private"])
    if address.host:
        check_host(address.host, private=private)
    credential = find_credential(name, address.user)
    if address.kind == "loader":
        access = Access(settings, credential, private, Path())
        made = open_connector(address, access, options["parameters"])
        try:
            cast(Any, made).check()
        finally:
            made.close()
    secret = bool(address.user or credential.password or credential.token)
    if secret and address.parts.scheme in CLEAR:
        check_encryption(address.text, private=private)
        return f"what it is asked with goes unencrypted: {CLEAR[address.parts.scheme]}:// is safer"
    return ""


def open_connector(address: Address, access: Access, parameters: Mapping[str, Any]) -> Connector:
    """Return the connector of an address; raises a CarrelError where it lacks something."""
    if address.kind == "folder":
        return FolderConnector(Path(address.rest))
    module, name = PLACES[address.kind]
    made = getattr(import_module(f"ingest.connectors.{module}"), name)
    given = (address, access, parameters) if address.kind == "loader" else (address, access)
    return cast(Connector, made(*given))
