"""What every chunker promises: exact stretches, in order, nothing lost, nothing too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from fakes import FakeEmbedder
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ingest.chunkers.chunkers import (
    UNSPLIT_FACTOR,
    FixedChunker,
    SemanticChunker,
    SentenceChunker,
    StructuralChunker,
)
from ingest.chunkers.packing import Chunker, ChunkSpan, is_torn
from ingest.enrich import split_document
from ingest.types import Block, ParsedDocument


def semantic(size: int) -> Chunker:
    return SemanticChunker(
        FakeEmbedder().embed_documents,
        SentenceChunker(size, 0),
        similarity=0.3,
        least=max(1, size // 3),
        most=size,
    )


def structural(size: int) -> Chunker:
    return StructuralChunker(size, SentenceChunker(size, 0))


# How to make each with a size and an overlap; those that never overlap ignore it.
CHUNKERS: dict[str, Callable[[int, int], Chunker]] = {
    "sentence": SentenceChunker,
    "fixed": FixedChunker,
    "semantic": lambda size, overlap: semantic(size),
    "structural": lambda size, overlap: structural(size),
}
OVERLAPPING = {"sentence", "fixed"}

TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("abXY .!?\n\n|:-#{}@г中文。，Д😀\u200d\u0301🇺🇦"),
        st.characters(codec="utf-8"),
    ),
    max_size=300,
)
BLOCKS = st.lists(
    st.builds(
        Block,
        text=TEXTS,
        kind=st.sampled_from(["text", "text", "code", "table", "annotation", "record"]),
        section=st.sampled_from(["", "A", "A › B", "C"]),
        page=st.sampled_from([None, 1, 2]),
    ),
    max_size=5,
)
UNFENCED = re.compile(r"\A```+\n|\n```+\Z|\s+\Z")  # what whole sections put around code
every_chunker = pytest.mark.parametrize("name", CHUNKERS)


def by_run(found: Sequence[ChunkSpan]) -> list[list[ChunkSpan]]:
    groups: list[list[ChunkSpan]] = []
    for cut in found:
        if not groups or groups[-1][-1].run is not cut.run:
            groups.append([])
        groups[-1].append(cut)
    return groups


cut_anyhow = given(blocks=BLOCKS, size=st.integers(1, 90), overlap=st.integers(0, 60))


@every_chunker
@settings(max_examples=examples(80))
@cut_anyhow
def test_every_character_is_in_a_chunk(
    name: str, blocks: list[Block], size: int, overlap: int
) -> None:
    overlap = min(overlap, size - 1)
    found = list(CHUNKERS[name](size, overlap).cut(blocks))
    groups = by_run(found)
    shown = [block.text for block in blocks if block.text.strip()]
    joined = [group[0].run.text[p.start : p.end] for group in groups for p in group[0].run.parts]
    assert [UNFENCED.sub("", one) for one in joined] == [UNFENCED.sub("", one) for one in shown]
    for group in groups:
        text, place = group[0].run.text, 0
        for cut in group:
            assert not text[place : cut.start].strip()  # no gap
            place = max(place, cut.end)
        assert not text[place:].strip()


@every_chunker
@settings(max_examples=examples(80))
@cut_anyhow
def test_chunks_are_bounded_ordered_and_always_the_same(
    name: str, blocks: list[Block], size: int, overlap: int
) -> None:
    overlap = min(overlap, size - 1)
    found = list(CHUNKERS[name](size, overlap).cut(blocks))
    assert found == list(CHUNKERS[name](size, overlap).cut(blocks))
    for cut in found:
        whole = UNSPLIT_FACTOR if cut.kind in ("annotation", "record") else 1
        assert 0 < len(cut.text) <= whole * size
        assert cut.text.rstrip() == cut.text
        if cut.kind not in ("code", "table"):  # these keep their indentation
            assert cut.text.strip() == cut.text
    for group in by_run(found):
        for before, after in zip(group, group[1:], strict=False):
            assert before.start < after.start and before.end < after.end
            repeated = before.end - after.start
            assert repeated <= (overlap if name in OVERLAPPING else 0)


@every_chunker
@settings(max_examples=examples(40))
@given(blocks=BLOCKS, size=st.integers(1, 90))
def test_a_document_has_no_chunk_twice(name: str, blocks: list[Block], size: int) -> None:
    document = ParsedDocument(
        document_id="d", source="d", title="D", format="md", blocks=[*blocks, *blocks]
    )
    chunks = split_document(document, CHUNKERS[name](size, 0))
    assert len({chunk.text for chunk in chunks}) == len(chunks)


@every_chunker
def test_one_page_is_never_mixed_with_the_next(name: str) -> None:
    blocks = [Block(text=f"Page {n} is short.", section="A", page=n) for n in (1, 2, 3)]
    found = list(CHUNKERS[name](500, 0).cut(blocks))
    # A run of a few characters is a heading and goes with what follows, if deeper in the outline.
    assert {(cut.text, cut.page) for cut in found} >= {("Page 3 is short.", 3)} or len(found) == 1
    long = [block.model_copy(update={"text": f"{block.text} " * 9}) for block in blocks]
    assert [cut.page for cut in CHUNKERS[name](500, 0).cut(long)] == [1, 2, 3]


@every_chunker
def test_a_document_of_any_length_takes_its_time_only(name: str) -> None:
    text = "The same words come again and again in this text, and never end. " * 3000
    found = list(CHUNKERS[name](400, 0).cut([Block(text=text)]))
    assert sum(len(cut.text) for cut in found) > 0.98 * len(text.strip())


@every_chunker
def test_nothing_gives_nothing(name: str) -> None:
    assert list(CHUNKERS[name](50, 0).cut([])) == []
    assert list(CHUNKERS[name](50, 0).cut([Block(text=" \n"), Block(text="", kind="code")])) == []


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
