"""The files of the page: what is sent, how, and what they may not hold."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from serving import Served, error_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "serve" / "page"
FILES = sorted(path for path in PAGE.rglob("*") if path.is_file())
NAMES = [path.relative_to(PAGE).as_posix() for path in FILES]
MAX_BYTES = 200_000
TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml", "html": "text/html"}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_sent_as_it_is(served: Served, name: str) -> None:
    with served.client("no key") as client:
        response = client.get(f"/page/{name}")
        known = {"If-None-Match": f'"x", W/{response.headers["etag"]}'}
        again = client.get(f"/page/{name}", headers=known)
    assert response.content == (PAGE / name).read_bytes()
    assert response.headers["content-type"].split(";")[0] == TYPES[name.rpartition(".")[2]]
    assert response.headers["cache-control"] == again.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_itself_is_the_index(served: Served) -> None:
    with served.client("no key") as client:
        response = client.get("/")
    assert response.content == (PAGE / "index.html").read_bytes()
    policy = response.headers["content-security-policy"]
    assert "unsafe" not in policy and "default-src 'none'" in policy


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "../guard.py",
        "%2e%2e%2fguard.py",
        "views",
        "views/..%2fapp.js",
        "%00",
    ],
)
def test_nothing_else_is_sent(served: Served, name: str) -> None:
    with served.client("no key") as client:
        response = client.get(f"/page/{name}")
    assert response.status_code == 404
    assert error_of(response)["code"] == "not_found"


def test_a_browser_at_an_unknown_address_gets_the_page(served: Served) -> None:
    with served.client("no key") as client:
        page = client.get("/nowhere", headers={"Accept": "text/html,*/*"})
        other = client.get("/nowhere")
    assert (page.status_code, page.content) == (404, (PAGE / "index.html").read_bytes())
    assert error_of(other)["code"] == "not_found"


def test_the_first_load_is_small() -> None:
    assert sum(path.stat().st_size for path in FILES) <= MAX_BYTES


def test_every_file_is_packaged() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    patterns = listed["tool"]["setuptools"]["package-data"]["serve"]
    for name in NAMES:
        depth = name.count("/")
        assert any(
            pattern.count("/") == depth + 1 and fnmatch(f"page/{name}", pattern)
            for pattern in patterns
        ), name


@pytest.mark.parametrize("name", NAMES)
def test_no_file_names_another_place_or_makes_html_of_text(name: str) -> None:
    text = (PAGE / name).read_text(encoding="utf-8")
    addresses = set(re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z0-9.-]+", text))
    assert addresses <= {"http://www.w3.org"}
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
    assert not re.search(r"\sstyle=|\son[a-z]+=\"", text)


@pytest.mark.parametrize(
    ("kind", "write", "admin"),
    [("reader", False, False), ("writer", True, False), ("admin", True, True)],
)
def test_me_says_who_is_asking(served: Served, kind: str, write: bool, admin: bool) -> None:
    with served.client(kind) as client:
        me = client.get("/api/v1/me").json()
    assert me["may"] == {"write": write, "admin": admin}
    assert (me["tenant"], me["anonymous"]) == ("acme", False)
    assert me["limits"]["steps"] == served.services.settings.budget.steps
