"""What pages of API documentation mark: names that are explained, notices of versions."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from ingest.loaders.web.styles import above

_DOMAINS = frozenset("py c cpp js rst std".split())
# Sphinx names the kind of an object beside its domain.
_KINDS = frozenset(
    "function class method attribute exception data property decorator classmethod staticmethod"
    " macro struct type enum option".split()
)
_NOTICES = {"deprecated": "deprecated", "admonition-deprecated": "deprecated",
            "versionadded": "versionadded"}  # fmt: skip
_NAME = ".sig-name, .descname"
_AROUND = ".sig-prename, .descclassname"
_LINKS = ".headerlink, .viewcode-link, .sphinx-bs-badge"


def is_definition_list(node: LexborNode) -> bool:
    """Tell whether a list explains names of an API, as Sphinx writes it."""
    classes = set(_classes(node))
    return bool(classes & (_DOMAINS | _KINDS)) and "field-list" not in classes


def kind_of(term: LexborNode) -> str:
    """Return what Sphinx calls what a <dt> explains, as "function", "" where it does not say."""
    around = term.parent
    return next((one for one in _classes(around) if one in _KINDS), "") if around else ""


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


def notice_of(node: LexborNode) -> str:
    """Return what directive a notice of versions is of, "" for another node or a parameter's."""
    classes = _classes(node)
    directive = next((_NOTICES[one] for one in classes if one in _NOTICES), "")
    parameter = directive and any(
        up.tag == "li" or "field-list" in _classes(up) for up in above(node)
    )
    return "" if parameter else directive


def _classes(node: LexborNode) -> list[str]:
    return (node.attributes.get("class") or "").split()
