"""Which project, of which version, a page of documentation is of: its generator's words for it."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from ingest.types import Loaded, ParsedDocument

Site = dict[str, str]  # framework and version, where known

_MOST = 200_000  # characters of a configuration that are looked at; chosen, not measured
_LONGEST = 100  # characters of a name; chosen, not measured
_GENERATORS = re.compile(r"mkdocs|docusaurus|sphinx|vitepress|vuepress|gitbook|doxygen", re.I)
_OF_SPHINX = re.compile(r"documentation_options", re.I)
_OPTION = re.compile(r"DOCUMENTATION_OPTIONS\b.{0,200}?\bVERSION\s*:\s*['\"]v?(\d[\w.]*)", re.S)
_SEPARATOR = re.compile(r".*\s(?:[—–|·]|::|-)\s+", re.S)
_SUFFIX = re.compile(r"\s+(?:documentation|docs)$", re.I)
_RELEASE = re.compile(
    r"(.*?[^\W\d_].*?)[\s_-]+v?(?:ersion\s)?(\d{1,2}|\d+(?:\.\d+)+(?:[-.]?(?:rc|a|b|dev|post)\d*)?)",
    re.I,
)
# What names a project, and its version, in the files by which sites are built.
_FILES = {
    "conf.py": (r"^project\s*=\s*u?['\"]([^'\"\n]+)", r"^release\s*=\s*u?['\"]([^'\"\n]+)",
                r"^version\s*=\s*u?['\"]([^'\"\n]+)"),
    "mkdocs.yml": (r"^site_name:\s*['\"]?([^'\"#\n]+)",),
    **dict.fromkeys(("docusaurus.config.js", "docusaurus.config.ts"),
                    (r"^\s*title:\s*['\"`]([^'\"`\n]+)",)),
}  # fmt: skip
_FORMATS = frozenset(("text", "markdown", "notebook", "python", "html"))


def split_release(text: str) -> tuple[str, str]:
    """Return a name without the version behind it, and that: "Kite 2.1" is of "Kite", "2.1"."""
    name = _SUFFIX.sub("", " ".join(text.split()))
    match = _RELEASE.fullmatch(name)
    return (match[1], match[2]) if match else (name, "")


def _site(name: str, version: str = "") -> Site:
    framework, release = split_release(name)
    found = {"framework": framework[:_LONGEST], "version": (version or release)[:_LONGEST]}
    return {key: value for key, value in found.items() if value}


def read_site(tree: LexborHTMLParser, text: str, relative: str) -> Site:
    """Return what a page of HTML says of its site, nothing where no such program made it."""
    generator = tree.css_first('meta[name="generator"]')
    made = generator.attributes.get("content") if generator is not None else ""
    known = _GENERATORS.search(made or "") or _OF_SPHINX.search(text)
    if not known and tree.css_first('meta[name="docusaurus_version"]') is None:
        return {}
    version = _OPTION.search(text)
    named = tree.css_first('meta[property="og:site_name"]')
    name = named.attributes.get("content") if named is not None else ""
    title = tree.css_first("head > title")
    shown = " ".join(title.text(deep=True).split()) if title is not None else ""
    if not name and (before := _SEPARATOR.match(shown)):
        name = shown[before.end() :]
    elif not name and (PurePosixPath(relative).stem == "index" or _SUFFIX.search(shown)):
        name = shown  # of the first page, which is called as the site is
    return _site(name, version[1] if version else "") if name else {}


def configured_site(path: Path, relative: str) -> Site:
    """Return what the configuration in the folder of a file says, or in one above it.

    `relative` is the name of the file below what was given; folders above that are not looked at.
    """
    for folder in [*path.parents][: len(PurePosixPath(relative).parts)]:
        for name, patterns in _FILES.items():
            if text := _beginning(folder / name):
                found = [_stated(pattern, text) for pattern in patterns]
                if found[0]:
                    return _site(found[0], next(filter(None, found[1:]), ""))
    return {}


def _stated(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.M)
    return match[1].strip() if match else ""


def _beginning(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as handle:
            return handle.read(_MOST)
    except OSError:
        return ""


def with_site(item: Loaded, site: Site) -> Loaded:
    """Return a page with what is known of its site; what it says itself goes first."""
    if not isinstance(item, ParsedDocument) or item.is_record or item.format not in _FORMATS:
        return item
    described: dict[str, Any] = {**site, **item.metadata}
    if "framework" in described:
        described.setdefault("type", ["guide"])
    return item.model_copy(update={"metadata": described})
