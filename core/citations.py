"""Numbers of cited sources, the same wherever an answer is shown."""

from __future__ import annotations

from collections.abc import Sequence

from core.types import Claim


def numbered_sources(claims: Sequence[Claim]) -> dict[str, int]:
    """Number the cited chunks in the order in which the claims cite them, from 1."""
    numbers: dict[str, int] = {}
    for claim in claims:
        for citation in claim.citations:
            numbers.setdefault(citation.chunk_id, len(numbers) + 1)
    return numbers


def citation_marks(claim: Claim, numbers: dict[str, int]) -> str:
    """Return the marks that follow a claim, as in "[1][3]"."""
    own = dict.fromkeys(numbers[citation.chunk_id] for citation in claim.citations)
    return "".join(f"[{number}]" for number in own)


def page_of(section: str, page: int | None) -> str:
    """Return "p. 3" or nothing: a section that begins with "Slide 3" says it already."""
    return f"p. {page}" if page and not is_slide(section, page) else ""


def place_of(section: str, page: int | None) -> str:
    """Return where a passage stands in its document: section and page, as far as known."""
    return " · ".join(part for part in (section, page_of(section, page)) if part)


def is_slide(section: str, page: int) -> bool:
    """Tell whether a section names its slide ("Slide 3 › Results"), which is its page."""
    return f"{section} ".startswith(f"Slide {page} ")
