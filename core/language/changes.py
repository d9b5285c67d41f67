"""Tell whether a statement says that something changed: "I now live in Oslo"."""

from __future__ import annotations

import re
from functools import cache

from languages.language import find_language


def marks_change(text: str, language: str) -> bool:
    """Tell whether a text says that what it states was otherwise before."""
    return _changed(language).search(text.replace("’", "'")) is not None


@cache
def _changed(language: str) -> re.Pattern[str]:
    known = find_language(language).read("recall") or find_language(None).read("recall")
    return re.compile(known["changed"], re.IGNORECASE)
