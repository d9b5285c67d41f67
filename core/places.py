"""How the place of a passage in its document is told."""

from __future__ import annotations


def page_of(section: str, page: int | None) -> str:
    """Return "p. 3" or nothing: a section that begins with "Slide 3" says it already."""
    return f"p. {page}" if page and not is_slide(section, page) else ""


def place_of(section: str, page: int | None) -> str:
    """Return where a passage stands in its document: section and page, as far as known."""
    return " · ".join(part for part in (section, page_of(section, page)) if part)


def is_slide(section: str, page: int) -> bool:
    """Tell whether a section names its slide ("Slide 3 › Results"), which is its page."""
    return f"{section} ".startswith(f"Slide {page} ")
