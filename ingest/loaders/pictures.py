"""What documents say of their pictures."""

from __future__ import annotations

import re

# The program that put the picture in left its name or its path.
_PATH = re.compile(r"://|^\S*[\\/]|^[A-Za-z]:\\|\.\w{2,5}$")
_WORD = re.compile(r"[^\W\d_]+")
_MIN_WORDS = 2


def picture_text(description: str) -> str:
    """Return a description as " [words]", or "" when it is a name, a path or nothing."""
    text = " ".join(description.split())
    if _PATH.search(text) or (text.isascii() and len(_WORD.findall(text)) < _MIN_WORDS):
        return ""
    return f" [{text}]" if text else ""
