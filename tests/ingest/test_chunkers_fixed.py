"""Fixed windows: word boundaries, whole characters, bounded overlap."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ingest.chunkers.chunkers import FixedChunker
from ingest.chunkers.packing import is_torn
from ingest.types import Block

TEXT = " ".join(f"word{n:03}" for n in range(60))
FAMILY, FLAG, ACCENT = "👩\u200d👩\u200d👧", "🇺🇦", "e\u0301"


def texts(text: str, size: int, overlap: int = 0) -> list[str]:
    return [cut.text for cut in FixedChunker(size, overlap).cut([Block(text=text)])]


def test_windows_end_between_words() -> None:
    windows = texts(TEXT, 50)
    assert all(word in TEXT.split() for window in windows for word in window.split())
    assert [word for window in windows for word in window.split()] == TEXT.split()
    assert all(len(window) > 40 for window in windows[:-1])


def test_windows_share_whole_words() -> None:
    windows = texts(TEXT, 50, 16)
    for before, after in zip(windows, windows[1:], strict=False):
        shared = [word for word in after.split() if word in before.split()]
        assert shared == before.split()[-2:] == after.split()[:2]


def test_sentences_do_not_matter() -> None:
    assert texts("One. Two three four five six.", 14) == ["One. Two three", "four five six."]


@pytest.mark.parametrize("character", [FAMILY, FLAG, ACCENT, "क्षि"])
def test_a_visible_character_is_not_torn(character: str) -> None:
    text = character * 40
    for window in texts(text, 25, 8):
        assert window.replace(character, "") == "", window


@settings(max_examples=examples(100))
@given(st.text("ab \n中🇺🇦👩\u200d\u0301🏽", max_size=120), st.integers(8, 40), st.integers(0, 7))
def test_windows_begin_and_end_at_whole_characters(text: str, size: int, overlap: int) -> None:
    for cut in FixedChunker(size, overlap).cut([Block(text=text)]):
        stretch = text[max(0, cut.start - 40) : cut.start + 40]
        if len(stretch.replace("\u0301", "").replace("\u200d", "")) > 60:  # no endless cluster
            assert not is_torn(text, cut.end) or len(cut.text) == size


def test_code_is_cut_like_text_and_records_stay_whole() -> None:
    code = Block(text="x = 1\n" * 30, kind="code")
    assert len(list(FixedChunker(40, 0).cut([code]))) > 3
    record = Block(text="Name: Bob. " * 10, kind="record")
    assert [cut.text for cut in FixedChunker(40, 0).cut([record])] == [record.text.strip()]
