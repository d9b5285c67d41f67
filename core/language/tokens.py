"""How many tokens a model reads in a text."""

from __future__ import annotations

BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Estimate model tokens: a quarter of the UTF-8 bytes, which is close for all our scripts."""
    return max(1, len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)
