"""What pages of API documentation mark: names that are explained, notices of versions."""

from __future__ import annotations

import re
from typing import Any

from selectolax.lexbor import LexborHTMLParser, LexborNode

from ingest.loaders.web.styles import above

# Sphinx names the kind of an object (function, method, class) beside its domain.
_DOMAINS = frozenset("py c cpp js rst std function class method attribute exception data".split())
_NAME = ".sig-name, .descname"
_AROUND = ".sig-prename, .descclassname"
_LINKS = ".headerlink, .viewcode-link, .sphinx-bs-badge"
_SINCE = re.compile(r"(?<![\w.])v?(\d[\w.]*\w|\d)")
_MOST_NOTICE = 300  # characters of a notice; chosen, not measured


def is_definition_list(node: LexborNode) -> bool:
    """Tell whether a list explains names of an API, as Sphinx writes it."""
    classes = set((node.attributes.get("class") or "").split())
    return bool(classes & _DOMAINS) and "field-list" not in classes


def defined_name(term: LexborNode) -> str:
    """Return the full name that a <dt> explains, "" for any other term."""
    named = term.css_first(_NAME)
    if named is None:
        return ""
    name = "".join(named.text(deep=True).split())
    anchor = term.attributes.get("id") or ""
    if anchor == name or anchor.endswith(f".{name}"):
        return anchor
    around = term.css_first(_AROUND)
    before = "" if around is None else "".join(around.text(deep=True).split())
    return f"{before}{name}"


def signature_of(term: LexborNode) -> str:
    """Return the signature that a <dt> shows, on one line, without the links beside it."""
    for link in term.css(_LINKS):
        link.decompose()
    text = " ".join(term.text(deep=True).split())
    return re.sub(r"\s+([,)\]])", r"\1", re.sub(r"([(\[])\s+", r"\1", text))


def read_notices(tree: LexborHTMLParser) -> dict[str, Any]:
    """Return what a page says of versions, as metadata: deprecated, since.

    `deprecated_names` are those of a page that explains others beside them, `deprecations` the
    notice of each; where all of it is deprecated, `deprecated` is true, `deprecation` the notice.
    """
    terms = [term for term in tree.css("dt") if defined_name(term)]
    first = defined_name(terms[0]) if terms else ""
    found: dict[str, Any] = {}
    names: dict[str, str] = {}
    for node in tree.css("div.deprecated, .admonition.deprecated, .admonition-deprecated"):
        name = _of(node)
        notice = " ".join(node.text(deep=True, separator=" ").split())[:_MOST_NOTICE]
        if name in ("", first) and "deprecated" not in found:
            found |= {"deprecated": True, "deprecation": notice}
        elif name and name != first:
            names.setdefault(name, notice)
    if names:
        found |= {"deprecated_names": list(names), "deprecations": list(names.values())}
    for node in tree.css("div.versionadded"):
        version = _SINCE.search(node.text(deep=True))
        if version and _of(node) in ("", first):
            return {"since": version[1], **found}
    return found


def _of(notice: LexborNode) -> str | None:
    """Return the name that a notice is about, "" for the page, None for a parameter of a name."""
    for node in above(notice):
        if node.tag == "li" or "field-list" in (node.attributes.get("class") or ""):
            return None
        if node.tag == "dd":
            term = node.prev
            while term is not None and term.tag != "dt":
                term = term.prev
            return (defined_name(term) or None) if term is not None else None
    return ""
