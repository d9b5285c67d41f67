"""What a parser's own error tells a person."""

from __future__ import annotations

import re

from core.errors import shorten

# Their texts speak of the parser's code, not of the file.
_INTERNAL = (
    AttributeError, TypeError, IndexError, AssertionError, NameError, NotImplementedError,
    RecursionError, StopIteration,
)  # fmt: skip
_PATH = re.compile(r"(?:/[^\s'\":,()]+)+/[^\s'\":,()]*")
_CLASS = re.compile(r"\b[A-Z]\w*(?:Error|Exception)\b:?\s*")
_MOST = 120


def because(error: BaseException) -> str:
    """Return " (what the error says)" where that can help a person, else "".

    Paths, which are those of temporary files, and names of classes are left out.
    """
    if isinstance(error, _INTERNAL):
        return ""
    said = _CLASS.sub("", _PATH.sub("the file", str(error)))
    said = shorten(said, _MOST).strip(" .")
    return f" ({said})" if any(c.isalpha() for c in said) else ""
