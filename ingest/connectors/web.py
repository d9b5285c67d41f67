"""The web: one page, the pages of a sitemap or a feed, or a site followed below its address."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
from collections import deque
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urldefrag, urljoin, urlsplit
from urllib.robotparser import RobotFileParser
from xml.etree.ElementTree import Element

from core.errors import DocumentError
from ingest.connectors.address import Address
from ingest.connectors.network import AGENT, Fetcher, HttpAnswer
from ingest.connectors.types import (
    Access,
    GoneError,
    Item,
    LeftOutError,
    Received,
    SourceError,
    UnreachableError,
)
from ingest.loaders.formats import format_of, refusal, suffix_of
from ingest.loaders.web.xml_tree import descendants, local_name, parse_xml
from ingest.types import LoadFailure

SUFFIXES = {  # by media type
    "text/html": ".html", "application/xhtml+xml": ".html", "application/pdf": ".pdf",
    "text/plain": ".txt", "text/markdown": ".md", "text/csv": ".csv",
    "application/json": ".json", "application/epub+zip": ".epub", "application/rtf": ".rtf",
}  # fmt: skip
LINK = re.compile(
    r"<a\s[^>]{0,2000}?\bhref\s*=\s*(\"[^\"]{1,2000}\"|'[^']{1,2000}'|[^\s\"'>]+)", re.I
)
LINKS_READ = 4 * 2**20  # characters of a page that are looked at for links; chosen, not measured
SITEMAPS = 50_000  # addresses of one sitemap, as its standard has it
DEPTH = 2  # sitemaps that a sitemap names; chosen, not measured
LONGEST_DELAY_S = 30.0  # between two requests that a robots.txt may ask for; chosen
NAME_BYTES = 150  # of each part of a name; file systems take 255
SEPARATOR = "\n"


class WebConnector:
    """Read pages; a revision is ETag, Last-Modified and what a sitemap says of it."""

    def __init__(self, address: Address, access: Access) -> None:
        self._root = address.rest if urlsplit(address.rest).path else f"{address.rest}/"
        self._fetcher = Fetcher(access, self._root)
        self._most = access.settings.sources.max_items
        self._robots: dict[str, RobotFileParser] = {}
        self._modified: dict[str, str] = {}
        self._texts: dict[str, str] = {}  # of feed entries without a page
        self._described: dict[str, str] = {}  # what a feed says of an entry with one
        self._first: tuple[HttpAnswer, bytes] | None = None
        self._prefix = ""
        self._waiting: deque[str] = deque()
        self._known: set[str] = set()
        self.complete = True
        self.failed: list[LoadFailure] = []

    @property
    def bytes_read(self) -> int:
        """Return what was received."""
        return self._fetcher.bytes_read

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the pages: of the feed or sitemap that is there, else this one, or the site."""
        body = io.BytesIO()
        try:
            self._check_robots(self._root)
            answer = self._fetcher.get(self._root, body)
        except GoneError:
            yield Item(self._root, _name(self._root))  # its reading says so again
            return
        except DocumentError as error:
            raise SourceError(error.rule, value=error.value, hint=error.hint) from None
        content = body.getvalue()
        tree = _xml(content)
        kind = "" if tree is None else local_name(tree)
        if tree is not None and kind in ("urlset", "sitemapindex"):
            yield from self._of_sitemap(tree, marks)
        elif tree is not None and kind in ("rss", "feed", "RDF"):
            self.complete = False  # a feed lists what is new: what left it is not gone
            yield from self._of_feed(tree)
        else:
            self._first = (answer, content)
            yield from self._of_site(marks)

    def _of_site(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the page itself; of one that ends with a slash also those linked below it.

        A known page stays until its server says that it is gone, linked or not.
        """
        if urlsplit(self._root).path.endswith("/"):
            self._prefix = self._root
        self._add(self._root)
        for url in marks if self._prefix else ():
            self._add(url)
        while self._waiting:
            url = self._waiting.popleft()
            yield Item(url, _name(url))

    def _add(self, url: str) -> None:
        if url not in self._known and len(self._known) <= self._most:
            self._known.add(url)
            self._waiting.append(url)

    def _of_sitemap(self, tree: Element, marks: Mapping[str, str]) -> Iterator[Item]:
        waiting = [(tree, 0)]
        while waiting:
            found, depth = waiting.pop()
            entries = [_fields(one) for one in list(found)[:SITEMAPS]]
            for entry in entries:
                url = entry.get("loc", "")
                if not url.startswith(("http://", "https://")):
                    continue
                if local_name(found) == "sitemapindex":
                    below = self._sitemap(url) if depth < DEPTH and url not in self._known else None
                    if below is not None:
                        waiting.append((below, depth + 1))
                    continue
                changed = self._modified[url] = entry.get("lastmod", "")
                kept = marks.get(url, "")
                same = changed and kept.rpartition(SEPARATOR)[2] == changed
                yield Item(url, _name(url), kept if same else "")

    def _sitemap(self, url: str) -> Element | None:
        body = io.BytesIO()
        try:
            self._known.add(url)
            if len(self._known) > self._most:
                rule = f"a site has at most {self._most} sitemaps (sources.max_items)"
                raise SourceError(rule, value=self._root)
            self._fetcher.get(url, body)
            if (tree := _xml(body.getvalue())) is None:
                raise DocumentError("a sitemap is XML", value=url)
            return tree
        except DocumentError as error:
            self.complete = False
            self.failed.append(LoadFailure(path=url, reason=str(error)))
            return None

    def _of_feed(self, tree: Element) -> Iterator[Item]:
        for entry in descendants(tree, "item", "entry"):
            given = _fields(entry)
            text = given.get("content") or given.get("description") or given.get("summary")
            title = given.get("title", "")
            page = f"<title>{title}</title><h1>{title}</h1>\n{text}" if text else ""
            url = urljoin(self._root, given.get("link", ""))
            if given.get("link") and url.startswith(("http://", "https://")):
                self._modified[url] = given.get("updated") or given.get("pubDate", "")
                self._described[url] = page
                yield Item(url, _name(url))
            elif text:
                key = given.get("id") or given.get("guid") or _digest(text)
                self._texts[key] = page
                yield Item(key, f"entry-{_digest(key)}", _digest(self._texts[key]))

    def read(self, item: Item, mark: str, target: Path) -> Received | None:
        """Get a page unless its server says that it is as it was.

        Of an entry whose page is not there what its feed says is read, until it is.
        """
        try:
            return self._read(item, mark, target)
        except DocumentError as error:
            text = self._described.get(item.key)
            if not text or (mark and not isinstance(error, GoneError)):
                raise
        target.write_text(text, encoding="utf-8")
        return Received("", "" if item.name.lower().endswith(".html") else ".html")

    def _read(self, item: Item, mark: str, target: Path) -> Received | None:
        url = item.key
        if (text := self._texts.get(url)) is not None:
            target.write_text(text, encoding="utf-8")
            return Received(item.mark, ".html")
        if self._first is not None and url == self._root:
            answer, content = self._first
            self._first = None
            target.write_bytes(content)
        else:
            self._check_robots(url)
            tag, _, rest = mark.partition(SEPARATOR)
            since = rest.partition(SEPARATOR)[0]
            conditions = {"If-None-Match": tag, "If-Modified-Since": since}
            with target.open("w+b") as file:
                asked = {name: value for name, value in conditions.items() if value}
                answer = self._fetcher.get(url, file, asked)
            if answer.status == 304:
                return None
        if self._prefix and not answer.url.startswith(self._prefix):
            raise LeftOutError("it leads to a page outside this site", value=answer.url)
        suffix = _suffix(answer, item.name)
        if self._prefix and suffix == ".html":
            self._follow(answer.url, target)
        headers = (answer.headers.get(name, "") for name in ("etag", "last-modified"))
        found = SEPARATOR.join([*headers, self._modified.get(url, "")])
        ending = "" if item.name.lower().endswith(suffix) else suffix
        return Received(found, ending)

    def _follow(self, url: str, page: Path) -> None:
        text = page.read_bytes()[:LINKS_READ].decode("utf-8", "replace")
        for found in LINK.finditer(text):
            link = unescape(found[1].strip("\"'")).strip()
            try:
                whole = urldefrag(urljoin(url, link)).url
            except ValueError:
                continue
            if whole.startswith(self._prefix) and ".." not in urlsplit(whole).path:
                self._add(whole)

    def _check_robots(self, url: str) -> None:
        """Raise DocumentError where the robots.txt of a host does not want this page read."""
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        if host not in self._robots:
            self._robots[host] = rules = RobotFileParser()
            body = io.BytesIO()
            try:
                self._fetcher.get(f"{host}/robots.txt", body)
                rules.parse(body.getvalue()[:500_000].decode("utf-8", "replace").splitlines())
            except UnreachableError as error:
                if "(40" not in str(error):  # a server in trouble wants no readers; RFC 9309
                    del self._robots[host]
                    raise
                rules.parse([])
            except DocumentError:
                rules.parse([])
            delay = rules.crawl_delay(AGENT)
            if delay:
                wanted = min(float(delay), LONGEST_DELAY_S)
                self._fetcher.interval = max(self._fetcher.interval, wanted)
        if not self._robots[host].can_fetch(AGENT, url):
            raise LeftOutError("the site's robots.txt does not allow it", value=url)


def _suffix(answer: HttpAnswer, name: str) -> str:
    """Return how a file of this answer ends: as its type says, else as its name does."""
    media = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media.startswith(("image/", "audio/", "video/", "font/")):
        raise DocumentError(f"what is of type {media} is not read", value=answer.url)
    suffix = SUFFIXES.get(media)
    own = suffix_of(name)
    if suffix is None or (suffix == ".txt" and format_of(name)):
        suffix = own if format_of(name) else None
    if suffix is None:
        raise DocumentError(refusal(name if own else f"of {media or 'no type'}"), value=answer.url)
    return suffix


def _name(url: str) -> str:
    """Return the name of a page's file: host and path; of one with a query also its hash."""
    parts = urlsplit(url)
    path = PurePosixPath(parts.hostname or "", *_parts(parts.path))
    if parts.path.endswith("/") or not parts.path:
        path /= "index"
    if parts.query:
        path = path.with_name(f"{path.stem}-{_digest(parts.query)}{path.suffix}")
    return str(path)


def _parts(path: str) -> Iterator[str]:
    for part in unquote(path, errors="replace").split("/"):
        plain = "".join(
            sign if sign.isprintable() and sign not in '\\:*?"<>|' else "_" for sign in part
        )
        if plain in ("", ".", ".."):
            continue
        if len(plain.encode()) > NAME_BYTES:
            short = plain.encode()[:NAME_BYTES].decode("utf-8", "ignore")
            plain = f"{short}-{_digest(plain)}{suffix_of(plain)[:10]}"
        yield plain.lstrip(".") or "_"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _xml(content: bytes) -> Element | None:
    """Return the root of an XML document, packed or not; None for what is none."""
    if content[:2] == b"\x1f\x8b":
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = file.read(64 * 2**20)
        except (OSError, EOFError):
            return None
    if not re.match(rb"(\xef\xbb\xbf)?\s*<(\?xml|rss|feed|urlset|sitemapindex|rdf)", content, re.I):
        return None
    try:
        return parse_xml(content)
    except DocumentError:
        return None


def _fields(entry: Element) -> dict[str, str]:
    """Return the texts of an element's children by name; a link may be an attribute."""
    found: dict[str, str] = {}
    for one in entry:
        name, text = local_name(one), (one.text or "").strip()
        if name == "link" and not text:
            if one.get("rel", "alternate") != "alternate":
                continue
            text = one.get("href", "")
        found.setdefault(name, text)
    return found
