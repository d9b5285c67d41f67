"""Replace whole words of a text."""

from __future__ import annotations

import re
from collections.abc import Mapping

WORD = re.compile(r"[^\W\d_]+")


def words_replaced(text: str, found: Mapping[str, str]) -> str:
    """Return the text with these words, as they are written, replaced by others."""
    return WORD.sub(lambda match: found.get(match.group(), match.group()), text)
