"""Gaps within the lines of a PDF page that are as wide as those between columns of a table."""

from __future__ import annotations

import re
from typing import Any

# A space of justified text is far narrower than a line is high.
_MIN_GAP = 1.3
_SPACE = re.compile(r"(?<=\S) (?=\S)")


def with_tabs(text_page: Any, text: str) -> str:  # noqa: ANN401 (a text page of pypdfium2)
    """Return the text of a page with a tab instead of a space in each such gap."""
    if text_page.count_chars() != len(text):
        return text  # its characters cannot be told apart by their place
    parts: list[str] = []
    done = 0
    for match in _SPACE.finditer(text):
        at = match.start()
        left = text_page.get_charbox(at - 1, loose=True)
        right = text_page.get_charbox(at + 1, loose=True)
        height = min(left[3] - left[1], right[3] - right[1])
        if height > 0 and right[0] - left[2] > _MIN_GAP * height:
            parts += [text[done:at], "\t"]
            done = at + 1
    return "".join([*parts, text[done:]])
