"""Metadata of software projects: exports of GitHub and GitLab, PyPI, npm, and awesome-lists.

What an answer looks like says what it is. Each project is one document with the fields by which it
is recommended, its relations among them, and its README as text; each owner is one of their own.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from core.errors import DocumentError
from core.language.cues import resource
from ingest.connectors.address import Address
from ingest.connectors.network import Fetcher
from ingest.connectors.types import Access, Item, Received
from ingest.loaders.text.encoding import decode
from ingest.types import LoadFailure

PAGES = 100  # of one list that names the next one; chosen, not measured
RELATED = 100  # dependencies or owners of one project that are kept; chosen, not measured
PROJECT, USER = "project", "user"  # in the field `note`: what a document is about
FORMS = "GitHub's or GitLab's projects, a package of PyPI or npm, or an awesome-list"
_CHOICE = re.compile(r"\{([^{}]*)\}")
_NEXT = re.compile(r"<([^<>]+)>\s*;[^,]*\brel=\"?next\b")
_HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*$")
_ENTRY = re.compile(
    r"^\s*[-*+]\s+\**\[(?P<name>[^\[\]]+)\]\((?P<url>https?://[^()\s]+)\)\**(?P<text>.*)$"
)
_LINKED = re.compile(r"\[([^\[\]]*)\]\([^()]*\)")
_LINKS_ALONE = re.compile(r"\((?:\[[^\[\]]*\]\([^()]*\)[\s,]*)+\)")  # "([Demo](…))"
_TAGS = re.compile(r"((?:`[^`]+`\s*)+)$")
_REQUIRED = re.compile(r"^([A-Za-z0-9][\w.-]*)(?!.*;.*\bextra\b)")

Project = dict[str, Any]


class ProjectsConnector:
    """Read lists of projects; a revision is the hash of what a list says of one.

    `{a,b}` in an address stands for either. The README of a project that has changed is asked for
    at the host of the list, and nowhere else.
    """

    def __init__(self, address: Address, access: Access) -> None:
        self._urls = list(_expanded(address.rest))
        self._local = address.is_local
        self._fetcher = Fetcher(access, self._urls[0])
        self._found: dict[str, Project] = {}
        self._read = 0
        self.complete = True
        self.failed: list[LoadFailure] = []

    @property
    def bytes_read(self) -> int:
        """Return what was received."""
        return self._read + self._fetcher.bytes_read

    def close(self) -> None:
        """Close the connections."""
        self._fetcher.close()

    def items(self, marks: Mapping[str, str]) -> Iterator[Item]:
        """Yield the projects of all lists, then those who own them."""
        owned: defaultdict[str, list[str]] = defaultdict(list)
        for url in self._urls:
            for one in self._projects(url):
                for name in one["metadata"].get("maintainers", ()):
                    owned[name].append(one["title"])
                yield self._item(one)
        for name, projects in sorted(owned.items()):
            metadata = {"note": USER, "projects": sorted(set(projects))[:RELATED]}
            yield self._item({"_id": f"users/{name}", "title": name, "metadata": metadata})

    def _item(self, one: Project) -> Item:
        key = str(one["_id"])
        self._found = {key: one}
        mark = hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()[:32]
        name = re.sub(r"[^\w./@-]+", "-", key).replace("..", ".").strip("/.")
        return Item(key, f"{name}.jsonl", mark)

    def _projects(self, url: str) -> Iterator[Project]:
        """Yield what a list and those that it names as the next ones say; note one that fails."""
        seen = 0
        for _ in range(PAGES):
            try:
                content, following = self._content(url)
                for one in read_projects(content, url):
                    seen += 1
                    yield one
            except DocumentError as error:
                self.complete = False
                self.failed.append(LoadFailure(path=url, reason=str(error)))
                return
            if not following:
                return
            url = following
        self.complete = False
        reason = f"a list has at most {PAGES} pages; {seen} projects of it were read"
        self.failed.append(LoadFailure(path=url, reason=reason))

    def _content(self, url: str) -> tuple[bytes, str]:
        if self._local:
            try:
                content = Path(unquote(urlsplit(url).path)).read_bytes()
            except OSError as error:
                raise DocumentError(f"it cannot be read ({error.strerror})", value=url) from None
            self._read += len(content)
            return content, ""
        body = io.BytesIO()
        answer = self._fetcher.get(url, body)
        found = _NEXT.search(answer.headers.get("link", ""))
        following = urljoin(answer.url, found[1]) if found else ""
        return body.getvalue(), following if _host(following) == _host(url) else ""

    def read(self, item: Item, mark: str, target: Path) -> Received:
        """Write a project as one line of JSON, with its README."""
        one = dict(self._found[item.key])
        readme = one.pop("readme", "")
        if readme.startswith("https:") or readme.startswith("http:"):
            readme = self._readme(readme)
        one["text"] = "\n\n".join(filter(None, (str(one.get("text") or ""), readme)))
        target.write_text(f"{json.dumps(one, ensure_ascii=False)}\n", encoding="utf-8")
        return Received(item.mark)

    def _readme(self, url: str) -> str:
        if self._local or _host(url) not in map(_host, self._urls):
            return ""
        body = io.BytesIO()
        with suppress(DocumentError):  # a project without one
            self._fetcher.get(url, body, {"Accept": "application/vnd.github.raw+json"})
            return decode(body.getvalue(), ".md")
        return ""


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2].casefold()


def _expanded(url: str) -> Iterator[str]:
    """Yield a URL for each choice in braces, as a shell does."""
    parts = _CHOICE.split(url)
    choices = [
        [part.strip() for part in text.split(",")] if place % 2 else [text]
        for place, text in enumerate(parts)
    ]
    yield from dict.fromkeys("".join(one) for one in product(*choices))


def read_projects(content: bytes, url: str) -> Iterator[Project]:
    """Yield the projects of an answer or a file; raises DocumentError for none."""
    text = decode(content, ".md")
    rows = _json_rows(text)
    if rows is None:
        found = list(_awesome(text))
        if not found:
            raise DocumentError(f"a list of projects is {FORMS}", value=url)
        yield from found
        return
    unknown = 0
    for row in rows:
        reader = next((read for key, read in READERS.items() if row.get(key)), None)
        if reader is None:
            unknown += 1
            continue
        one = reader(row)
        kept = {name: value for name, value in one["metadata"].items() if value not in _NOTHING}
        yield {**one, "metadata": {"note": PROJECT, **kept}}
    if unknown:
        raise DocumentError(f"{unknown} entries are neither {FORMS}", value=url)


_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _json_rows(text: str) -> list[Mapping[str, Any]] | None:
    """Return the objects of JSON or JSON lines, None for what is neither."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            found = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return None
    if isinstance(found, Mapping):
        lists = [found[name] for name in ("items", "projects", "objects") if name in found]
        found = lists[0] if lists and isinstance(lists[0], list) else [found]
    rows = [one.get("package", one) if isinstance(one, Mapping) else {} for one in found]
    return [one if isinstance(one, Mapping) else {} for one in rows]


def _texts(given: object) -> list[str]:
    """Return the texts of a list, of names of its objects, or of one text."""
    rows = given if isinstance(given, list) else [given]
    named = (one.get("name") or one.get("login") or one.get("username")
             if isinstance(one, Mapping) else one for one in rows)  # fmt: skip
    found = (str(one).strip() for one in named if isinstance(one, str | int))
    return list(dict.fromkeys(filter(None, found)))[:RELATED]


def _inner(given: object, name: str) -> Any:  # noqa: ANN401 - whatever a file says
    return given.get(name) if isinstance(given, Mapping) else None


def _github(row: Mapping[str, Any]) -> Project:
    api = str(row.get("url") or "")
    licence = _inner(row.get("license"), "spdx_id") or _inner(row.get("license"), "name")
    return {
        "_id": f"github.com/{row['full_name']}".lower(),
        "title": str(row.get("name") or row["full_name"]),
        "text": str(row.get("description") or ""),
        "readme": str(row.get("readme") or (f"{api}/readme" if "/repos/" in api else "")),
        "metadata": {
            "url": row.get("html_url"), "homepage": row.get("homepage"),
            "language": row.get("language"), "topics": _texts(row.get("topics")),
            "license": "" if licence == "NOASSERTION" else licence,
            "stars": row.get("stargazers_count"), "forks": row.get("forks_count"),
            "open_issues": row.get("open_issues_count"),
            "contributors": row.get("contributors_count"),
            "archived": row.get("archived") or None, "updated_at": row.get("pushed_at"),
            "maintainers": _texts(row.get("owner")),
        },
    }  # fmt: skip


def _gitlab(row: Mapping[str, Any]) -> Project:
    readme = str(row.get("readme") or row.get("readme_url") or "").replace("/-/blob/", "/-/raw/")
    web = str(row.get("web_url") or "")
    owner = _texts(row.get("owner")) or _texts(row.get("namespace"))
    licence = _inner(row.get("license"), "key") or _inner(row.get("license"), "name")
    return {
        "_id": f"{_host(web) or 'gitlab'}/{row['path_with_namespace']}".lower(),
        "title": str(row.get("name") or row["path_with_namespace"]),
        "text": str(row.get("description") or ""),
        "readme": readme,
        "metadata": {
            "url": web, "topics": _texts(row.get("topics") or row.get("tag_list") or []),
            "license": licence, "stars": row.get("star_count"), "forks": row.get("forks_count"),
            "open_issues": row.get("open_issues_count"), "archived": row.get("archived") or None,
            "updated_at": row.get("last_activity_at"), "maintainers": owner,
        },
    }  # fmt: skip


def _pypi(row: Mapping[str, Any]) -> Project:
    info = row["info"] if isinstance(row["info"], Mapping) else {}
    given = info.get("project_urls")
    links = given if isinstance(given, Mapping) else {}
    named = {str(name).casefold(): link for name, link in links.items()}
    classes = _texts(info.get("classifiers") or [])
    ends = {
        kind: [one.rpartition(" :: ")[2] for one in classes if one.startswith(f"{kind} :: ")]
        for kind in ("Development Status", "Operating System", "License")
    }
    files = row.get("urls")
    listed = files if isinstance(files, list) else []
    times = [str(_inner(one, "upload_time_iso_8601") or "") for one in listed]
    needs = (_REQUIRED.match(one) for one in _texts(info.get("requires_dist") or []))
    licence = str(info.get("license_expression") or info.get("license") or "")
    return {
        "_id": f"pypi.org/{info.get('name')}".lower(),
        "title": str(info.get("name") or ""),
        "text": str(info.get("summary") or ""),
        "readme": str(info.get("description") or ""),
        "metadata": {
            "url": info.get("package_url"), "version": info.get("version"), "language": "Python",
            "homepage": info.get("home_page") or named.get("homepage"),
            "documentation": info.get("docs_url") or named.get("documentation"),
            # Some packages have the whole text of their licence there.
            "license": licence if "\n" not in licence and licence else ends["License"],
            "topics": [one.strip() for one in str(info.get("keywords") or "").split(",")],
            "maturity": ends["Development Status"], "platforms": ends["Operating System"],
            "updated_at": max(times, default=""), "deprecated": info.get("yanked") or None,
            "depends_on": list(dict.fromkeys(one[1] for one in needs if one)),
            "maintainers": _texts([info.get("maintainer"), info.get("author")]),
        },
    }  # fmt: skip


def _npm(row: Mapping[str, Any]) -> Project:
    version = str(_inner(row["dist-tags"], "latest") or "")
    newest = _inner(row.get("versions"), version) or {}
    repository = _inner(row.get("repository"), "url") or row.get("repository")
    return {
        "_id": f"npmjs.com/{row.get('name')}".lower(),
        "title": str(row.get("name") or ""),
        "text": str(row.get("description") or ""),
        "readme": str(row.get("readme") or ""),
        "metadata": {
            "url": str(repository or "").removeprefix("git+"), "homepage": row.get("homepage"),
            "version": version, "language": "JavaScript",
            "license": _inner(row.get("license"), "type") or row.get("license"),
            "topics": _texts(row.get("keywords") or []),
            "updated_at": _inner(row.get("time"), version),
            "deprecated": _inner(newest, "deprecated"),
            "depends_on": list(_inner(newest, "dependencies") or {})[:RELATED],
            "maintainers": _texts(row.get("maintainers") or []),
        },
    }  # fmt: skip


# By a field that no other of them has.
READERS: dict[str, Callable[[Mapping[str, Any]], Project]] = {
    "full_name": _github,
    "path_with_namespace": _gitlab,
    "info": _pypi,
    "dist-tags": _npm,
}


def _awesome(text: str) -> Iterator[Project]:
    """Yield the entries of a list, each with the headings that it stands under as its topics."""
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            level = len(heading[1])
            path = [one for one in path if one[0] < level]
            path.append((level, _LINKED.sub(r"\1", heading[2])))
            continue
        entry = _ENTRY.match(line)
        if entry is None:
            continue
        described = entry["text"].strip()
        tags = _TAGS.search(described)
        found = re.findall(r"`([^`]+)`", tags[1]) if tags else []
        described = described[: tags.start()] if tags else described
        described = _LINKED.sub(r"\1", _LINKS_ALONE.sub("", described)).strip(" -–—:")
        if not described:
            continue  # a link to another part of the list
        metadata = _listed(entry["url"], [name for _, name in path], found)
        key = re.sub(r"^https?://(?:www\.)?", "", entry["url"]).rstrip("/").lower()
        yield {"_id": key, "title": entry["name"], "text": described, "metadata": metadata}


def _listed(url: str, topics: list[str], tags: list[str]) -> dict[str, Any]:
    """Return the fields of an entry; the first topic is the title, of two tags the licence.

    The other tag says what it is written in, what it runs on, or both.
    """
    title, *headings = topics or [""]
    found = {"note": PROJECT, "url": url, "list": title, "topics": headings}
    if len(tags) > 1:
        known = {name.casefold() for name in resource("programming")["names"]}
        others = [one.strip() for one in tags[1].split("/")]
        languages = [one for one in others if one.casefold() in known]
        found |= {
            "license": tags[0],
            "language": languages[0] if len(languages) == 1 else languages,
            "platforms": [one for one in others if one not in languages],
        }
    return {name: value for name, value in found.items() if value not in _NOTHING}
