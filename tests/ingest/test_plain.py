"""Hyperlinks and marks of formatting leave a text; everything else stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.clean import plain_prose


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("See https://x.example/a?b=1#c, then go on.", "See, then go on."),
        ("Ссылка: http://lib.example/ВОЙНА Текст", "Ссылка: Текст"),
        ("见https://t.example/x的书。", "见的书。"),
        ("Read (https://x.example) now", "Read now"),
        ("[the book](https://x.example/a_(b)) is here", "the book is here"),
        ("A **bold** and _slanted_ ***word***", "A bold and slanted word"),
        ("[b]bold[/b] [url=http://x.example]site[/url]", "bold site"),
        ("## Heading\nText", "Heading\nText"),
        ("2*3*4, a*b and snake_case_name", "2*3*4, a*b and snake_case_name"),
        ("C# and F# [1] are fine", "C# and F# [1] are fine"),
    ],
)
def test_what_goes_and_what_stays(text: str, plain: str) -> None:
    assert " ".join(plain_prose(text).split(" ")).replace("  ", " ") == plain


@given(st.text(max_size=200))
def test_nothing_is_made_up(text: str) -> None:
    left = plain_prose(text)
    assert len(left) <= len(text) and set(left) <= set(text)


@pytest.mark.parametrize("part", ["*", "_", "[b]", "![", "[a](", "www.", "(", "https://", "# "])
def test_hostile_runs_are_quick(part: str) -> None:
    assert len(plain_prose(part * 20_000)) <= len(part) * 20_000
