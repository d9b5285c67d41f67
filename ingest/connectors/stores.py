"""Stores of files over HTTP: WebDAV folders, and buckets that speak the protocol of S3."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit
from xml.etree.ElementTree import Element

from core.distribution import install_command
from core.errors import DocumentError
from ingest.connectors.address import Address, endpoint_of
from ingest.connectors.network import Fetcher
from ingest.connectors.types import Access, Item, Received, SourceError
from ingest.loaders.formats import format_of, is_unsupported_document, refusal
from ingest.loaders.web.xml_tree import parse_xml
from ingest.types import LoadFailure

WANTED = (
    b'<?xml version="1.0"?><propfind xmlns="DAV:"><prop><getetag/><getlastmodified/>'
    b"<getcontentlength/><resourcetype/></prop></propfind>"
)


class _FileStore:
    """Read files by address, once a list has said their revisions."""

    def __init__(self, fetcher: Fetcher, access: Access) -> None:
        self._fetcher = fetcher
        self._lists, self._most_lists = 0, access.settings.sources.max_items
        self._urls: dict[str, str] = {}
        self.complete = True
        self.failed: list[LoadFailure] = []

    @property
    def bytes_read(self) -> int:
        """Return what was received."""
        return self._fetcher.bytes_read

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()

    def read(self, item: Item, mark: str, target: Path) -> Received:
        """Get a file."""
        with target.open("w+b") as file:
            self._fetcher.get(self._urls[item.key], file)
        return Received(item.mark)

    def _ask(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Element:
        """Return the XML that a request is answered with; raises SourceError."""
        self._lists += 1
        if self._lists > self._most_lists:  # folders in folders without an end, or pages of keys
            rule = f"a store is listed in {self._most_lists} requests at most (sources.max_items)"
            raise SourceError(rule, value=url)
        answer = io.BytesIO()
        try:
            self._fetcher.send(method, url, answer, headers, body)
            return parse_xml(answer.getvalue())
        except DocumentError as error:
            raise SourceError(error.rule, value=error.value, hint=error.hint) from None

    def _item(self, name: str, url: str, mark: str) -> Iterator[Item]:
        """Yield a file that can be read; note a document that cannot."""
        if any(part.startswith(".") for part in name.split("/")):
            return
        if is_unsupported_document(name):
            self.failed.append(LoadFailure(path=name, reason=refusal(name)))
        elif format_of(name):
            self._urls[name] = url
            yield Item(name, name, mark)


class WebDavConnector(_FileStore):
    """Walk the folders below an address; a revision is ETag or time, with the size."""

    def __init__(self, address: Address, access: Access) -> None:
        scheme = "https" if address.parts.scheme == "webdavs" else "http"
        self._root = f"{scheme}://{urlsplit(address.rest).netloc}{address.parts.path.rstrip('/')}/"
        super().__init__(Fetcher(access, self._root), access)

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the files."""
        base = unquote(urlsplit(self._root).path)
        waiting, seen = [self._root], {base}
        while waiting:
            folder = waiting.pop()
            headers = {"Depth": "1", "Content-Type": "application/xml"}
            for one in self._ask("PROPFIND", folder, headers, WANTED).iter("{DAV:}response"):
                url = urljoin(folder, one.findtext("{DAV:}href", ""))
                path = unquote(urlsplit(url).path)
                if not path.startswith(base) or ".." in path.split("/"):
                    continue
                if one.find(".//{DAV:}collection") is not None:
                    if (below := path.rstrip("/") + "/") not in seen:
                        seen.add(below)
                        waiting.append(url.rstrip("/") + "/")
                    continue
                named = ("getetag", "getlastmodified", "getcontentlength")
                facts = [one.findtext(f".//{{DAV:}}{name}") or "" for name in named]
                yield from self._item(path.removeprefix(base), url, "\n".join(facts))


class BucketConnector(_FileStore):
    """List a bucket below a prefix; a revision is the ETag.

    The address may name `endpoint` and `region`: s3://KEY-ID@BUCKET/PREFIX?endpoint=https://….
    """

    def __init__(self, address: Address, access: Access) -> None:
        endpoint, region = endpoint_of(address.parts)
        self._bucket = f"{endpoint}/{address.parts.hostname}"
        self._prefix = unquote(address.parts.path.lstrip("/"))
        auth = None
        secret = access.credential
        if secret.user:
            if not secret.password:
                hint = f"set {access.variable}_PASSWORD to the secret key, or leave the key id out"
                raise SourceError("a key id needs its secret key", value=address.text, hint=hint)
            try:
                made = import_module("httpx_auth").AWS4Auth
            except ImportError:
                hint = f"run `{install_command('connectors')}`"
                raise SourceError("a signed bucket needs httpx-auth", hint=hint) from None
            auth = made(secret.user, secret.password, region, "s3")
        super().__init__(Fetcher(access, endpoint, auth), access)

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the objects, a page of the list after the other."""
        token = ""
        while True:
            query = f"list-type=2&prefix={quote(self._prefix, safe='')}"
            if token:
                query = f"continuation-token={quote(token, safe='')}&{query}"
            tree = self._ask("GET", f"{self._bucket}?{query}", {})
            space = tree.tag.partition("}")[0] + "}" if tree.tag.startswith("{") else ""
            for one in tree.iter(f"{space}Contents"):
                key = one.findtext(f"{space}Key", "")
                mark = one.findtext(f"{space}ETag", "")
                name = key.removeprefix(self._prefix).lstrip("/") or key.rpartition("/")[2]
                if key and not key.endswith("/") and ".." not in key.split("/"):
                    yield from self._item(name, f"{self._bucket}/{quote(key)}", mark)
            following = tree.findtext(f"{space}NextContinuationToken", "")
            if not following or following == token:
                return
            token = following
