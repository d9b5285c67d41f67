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
