"""Lists of projects: recorded answers of GitHub, GitLab, PyPI and npm, and an awesome-list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from local_web import Site
from syncs import ANN, Room

from core.errors import CarrelError

GITHUB = {
    "full_name": "Encode/httpx", "name": "httpx", "description": "A next generation HTTP client.",
    "html_url": "https://github.com/encode/httpx", "stargazers_count": 13000, "forks_count": 800,
    "license": {"spdx_id": "BSD-3-Clause"}, "language": "Python", "topics": ["http", "asyncio"],
    "owner": {"login": "encode"}, "pushed_at": "2026-10-01T10:00:00Z", "archived": False,
}  # fmt: skip
GITLAB = {
    "path_with_namespace": "inkscape/inkscape", "name": "Inkscape", "star_count": 3000,
    "description": "A vector image editor.", "web_url": "https://gitlab.com/inkscape/inkscape",
    "namespace": {"name": "Inkscape"}, "last_activity_at": "2026-11-01T00:00:00Z",
}  # fmt: skip
PYPI = {
    "info": {
        "name": "starling", "version": "1.2.0", "summary": "Small web framework.",
        "description": "# starling\n\nServes pages to birds.", "license": "MIT", "author": "Ann",
        "requires_dist": ["anyio<5,>=3.4", "jinja2; extra == 'full'"],
        "classifiers": ["Development Status :: 4 - Beta", "Operating System :: POSIX :: Linux"],
    },
    "urls": [{"upload_time_iso_8601": "2026-09-09T00:00:00Z"}],
}  # fmt: skip
NPM = {
    "name": "perch", "description": "Binds keys.", "readme": "# perch\n\nPress a key.",
    "dist-tags": {"latest": "3.0.1"}, "license": "ISC", "maintainers": [{"name": "bo"}],
    "versions": {"3.0.1": {"dependencies": {"twig": "^1"}}}, "time": {"3.0.1": "2026-01-01"},
}  # fmt: skip
AWESOME = """# Awesome birds

## Contents
- [Feeders](#feeders)

## Feeders
### Seeds
- [Nut](https://nut.example/) - Holds nuts, an alternative to Bowl. ([Demo](https://x.example)) `MIT` `Go/Docker`
- [Bare](https://bare.example)
"""  # noqa: E501


def fields(room: Room, name: str) -> dict[str, object]:
    found = room.session.catalogue.visible_collection(ANN, "main")
    row = next(one for one in room.session.catalogue.list_passages(ANN, found, name, 0, 1))
    evidence = room.session.catalogue.evidence(ANN, found.id, [row["chunk_id"]])
    return evidence[row["chunk_id"]].metadata


def test_an_export_of_github_is_read_page_by_page(room: Room, site: Site) -> None:
    api = f"{site.url}/repos/encode/httpx"
    first = json.dumps([{**GITHUB, "url": api}]).encode()
    following = {"Link": f'<{site.url}/p2>; rel="next", <{site.url}/p9>; rel="last"'}
    site.pages["/p1"] = (200, {**following, "Content-Type": "application/json"}, first)
    site.pages["/p2"] = json.dumps([GITLAB]).encode()
    site.pages["/repos/encode/httpx/readme"] = b"# HTTPX\n\nInstall it with pip."
    row = room.add(f"projects+{site.url}/p1")
    assert room.counts(row) == (4, 0, 0, 0)
    assert room.names() == [
        "github.com/encode/httpx", "gitlab.com/inkscape/inkscape", "users/Inkscape", "users/encode",
    ]  # fmt: skip
    assert "Install it with pip" in room.text("github.com/encode/httpx")
    found = fields(room, "github.com/encode/httpx")
    assert (found["stars"], found["license"]) == (13000, "BSD-3-Clause")
    assert room.counts(row) == (0, 0, 4, 0)
    site.asked.clear()
    changed = json.dumps([{**GITHUB, "url": api, "stargazers_count": 13001}]).encode()
    site.pages["/p1"] = (200, following, changed)
    assert room.counts(row) == (0, 1, 3, 0)
    site.pages["/p1"] = (200, {}, changed)
    assert room.counts(row)[3] == 2  # Inkscape and its owner are gone


def test_packages_come_with_versions_and_dependencies(room: Room, site: Site) -> None:
    site.pages["/pypi/starling/json"] = json.dumps(PYPI).encode()
    site.pages["/pypi/robin/json"] = json.dumps({**PYPI, "info": {"name": "robin"}}).encode()
    site.pages["/npm/perch"] = json.dumps(NPM).encode()
    row = room.add(f"projects+{site.url}/pypi/{{starling,robin}}/json")
    assert room.counts(row) == (3, 0, 0, 0)
    found = fields(room, "pypi.org/starling")
    assert (found["version"], found["depends_on"]) == ("1.2.0", ["anyio"])
    assert (found["maturity"], found["platforms"]) == (["4 - Beta"], ["Linux"])
    assert "Serves pages to birds" in room.text("pypi.org/starling")
    assert "starling" in room.text("users/Ann")
    other = room.add(f"projects+{site.url}/npm/perch", name="npm")
    assert room.counts(other) == (2, 0, 0, 0)
    assert fields(room, "npmjs.com/perch")["depends_on"] == ["twig"]


def test_an_awesome_list_says_topics_licence_and_platform(room: Room, tmp_path: Path) -> None:
    (tmp_path / "list.md").write_text(AWESOME, encoding="utf-8")
    row = room.add(f"projects+file://{tmp_path}/list.md")
    assert room.counts(row) == (1, 0, 0, 0)
    found = fields(room, "nut.example")
    assert found["keywords"] == ["Feeders", "Seeds"]
    assert (found["license"], found["language"], found["platforms"]) == ("MIT", "Go", ["Docker"])
    assert room.text("nut.example").endswith("Holds nuts, an alternative to Bowl.")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"Nothing of the kind.", "a list of projects is"),
        (b'[{"full_name": "a/b"', "a list of projects is"),
        (b'[{"x": 1}, 7]', "2 entries are neither"),
    ],
)
def test_what_is_no_list_is_one_line(
    room: Room, site: Site, tmp_path: Path, content: bytes, why: str
) -> None:
    """The other lists are read, and nothing is removed."""
    site.pages["/good"] = json.dumps([GITHUB]).encode()
    site.pages["/bad"] = json.dumps([GITLAB]).encode()
    row = room.add(f"projects+{site.url}/{{good,bad}}")
    assert room.counts(row) == (4, 0, 0, 0)
    site.pages["/bad"] = content
    report = room.sync(row)
    assert why in report.failed[0].reason and report.removed == 0
    assert "gitlab.com/inkscape/inkscape" in room.names()
    with pytest.raises(CarrelError, match="names a host"):
        room.add("projects+https:///x", name="none")
