"""GET / and /page/…: the files of the page, read once, and nothing else of the disk."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated

from fastapi import APIRouter, Header, Path, Response

from serve.errors import NotFound

FOLDER = "page"
INDEX = "index.html"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
CACHING = "no-cache"  # kept, but asked for again each time: a new version is seen at once

router = APIRouter(tags=["page"])

FileName = Annotated[str, Path(max_length=64)]
Known = Annotated[str, Header(alias="If-None-Match", max_length=1000)]


@dataclass(frozen=True)
class PageFile:
    """Hold one file of the page as it is sent."""

    content: bytes
    media_type: str
    etag: str


@cache
def page_files() -> dict[str, PageFile]:
    """Return the files by their path below the folder, such as "views/ask.js"."""
    return dict(_read(resources.files("serve") / FOLDER, ""))


def _read(folder: Traversable, prefix: str) -> list[tuple[str, PageFile]]:
    found: list[tuple[str, PageFile]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _read(entry, f"{prefix}{entry.name}/")
            continue
        media_type = TYPES.get(f".{entry.name.rpartition('.')[2]}")
        if media_type:
            content = entry.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found.append((prefix + entry.name, PageFile(content, media_type, etag)))
    return found


@router.get("/", response_class=Response)
async def index(known: Known = "") -> Response:
    """Return the page."""
    return _send_file(INDEX, known)


@router.get("/page/{name}", response_class=Response)
async def page_file(name: FileName, known: Known = "") -> Response:
    """Return a file of the page."""
    return _send_file(name, known)


@router.get("/page/{folder}/{name}", response_class=Response)
async def nested_page_file(folder: FileName, name: FileName, known: Known = "") -> Response:
    """Return a file of a folder of the page."""
    return _send_file(f"{folder}/{name}", known)


def _send_file(name: str, known: str) -> Response:
    file = page_files().get(name)
    if file is None:
        raise NotFound("the page has no such file", value=name)
    headers = {"ETag": file.etag, "Cache-Control": CACHING}
    if file.etag in (tag.strip().removeprefix("W/") for tag in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
