"""A loop is seen soon, an ordinary text never is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.chat.wire import SHORTEST_RUN, find_repeated_piece


@given(st.text(max_size=50), st.text(min_size=1, max_size=40))
def test_copies_of_a_piece_are_found(before: str, piece: str) -> None:
    copies = max(6, -(-SHORTEST_RUN // len(piece)))
    size = find_repeated_piece(before + piece * copies, 6)
    assert 0 < size <= len(piece)


@given(st.text(alphabet="abc", max_size=400), st.integers(2, 8))
def test_what_is_found_is_there(text: str, copies: int) -> None:
    size = find_repeated_piece(text, copies)
    if size:
        assert text.endswith(text[-size:] * copies)


@pytest.mark.parametrize("path", ["README.md", "docs/explanation/design.md", "core/settings.py"])
def test_no_prefix_of_a_real_text_is_a_loop(path: str) -> None:
    text = (Path(__file__).resolve().parents[2] / path).read_text(encoding="utf-8")[:6000]
    assert not any(find_repeated_piece(text[:end], 6) for end in range(0, len(text), 7))


@pytest.mark.parametrize("text", ["-" * 80, "| 0 | 0 | 0 | 0 | 0 | 0 |", "....", "", "no no no no"])
def test_short_runs_are_no_loop(text: str) -> None:
    assert find_repeated_piece(text, 6) == 0
