"""Open the connector that an address wants."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from ingest.connectors.address import Address
from ingest.connectors.folder import FolderConnector
from ingest.connectors.types import Access, Connector

# By kind: the module, which is loaded when it is wanted, and the class.
PLACES = {
    "web": ("web", "WebConnector"),
    "git": ("git", "GitConnector"),
    "imap": ("imap", "MailConnector"),
    "webdav": ("stores", "WebDavConnector"),
    "s3": ("stores", "BucketConnector"),
    "loader": ("loader", "LoaderConnector"),
}


def open_connector(address: Address, access: Access, parameters: Mapping[str, Any]) -> Connector:
    """Return the connector of an address; raises a CarrelError where it lacks something."""
    if address.kind == "folder":
        return FolderConnector(Path(address.rest))
    module, name = PLACES[address.kind]
    made = getattr(import_module(f"ingest.connectors.{module}"), name)
    given = (address, access, parameters) if address.kind == "loader" else (address, access)
    return cast(Connector, made(*given))
