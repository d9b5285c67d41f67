"""Chunking: nothing lost, nothing too long, seams where a reader would put them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from ingest.chunkers.chunkers import SentenceChunker
from ingest.chunkers.packing import ChunkSpan
from ingest.enrich import split_document
from ingest.types import Block, BlockKind, ParsedDocument

PROSE = {
    "en": "The river floods the valley. People move their boats. They wait for the summer. ",
    "ru": "Река заливает долину. Люди уводят лодки. Они ждут лета, т. е. тепла. ",
    "uk": "Річка заливає долину. Люди відводять човни. Вони чекають літа. ",
    "zh": "河水淹没了山谷。人们把船移走。他们等待夏天的到来！",
    "emoji": "👩‍👩‍👧 said 😀! Then 🎉. ",
}


def document(*blocks: Block) -> ParsedDocument:
    return ParsedDocument(
        document_id="d", source="d.md", title="D", format="md", blocks=list(blocks)
    )


def split(*blocks: Block, size: int = 60, overlap: int = 0) -> list[ChunkSpan]:
    return split_document(document(*blocks), SentenceChunker(size, overlap))


def squeeze(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE.keys())
def test_prose_is_cut_between_sentences(text: str) -> None:
    numbered = "".join(f"{text.strip()} {n}! " for n in range(12))
    chunks = split(Block(text=numbered), size=120)
    assert len(chunks) > 2
    assert all(len(chunk.text) <= 120 and chunk.text in numbered for chunk in chunks)
    assert all(chunk.text[-1] in ".!。！" for chunk in chunks)
    assert squeeze("".join(chunk.text for chunk in chunks)) == squeeze(numbered)


def test_overlap_repeats_whole_sentences() -> None:
    text = " ".join(f"Sentence number {n} is here." for n in range(10))
    chunks = split(Block(text=text), size=90, overlap=30)
    for before, after in zip(chunks, chunks[1:], strict=False):
        repeated = after.text.split(". ")[0] + "."
        assert before.text.endswith(repeated)
    assert split(Block(text=text), size=90, overlap=20)[1].text.startswith("Sentence number 3")


def test_blocks_of_one_section_and_page_are_packed() -> None:
    chunks = split(
        Block(text="One paragraph of text that is not so tiny.", section="A", page=1),
        Block(text="Two.", section="A", page=1),
        Block(text="Three is on the next page.", section="A", page=2),
        Block(text="Four is elsewhere.", section="B", page=2),
    )
    assert [(chunk.text, chunk.run.section, chunk.page) for chunk in chunks] == [
        ("One paragraph of text that is not so tiny.\n\nTwo.", "A", 1),
        ("Three is on the next page.", "A", 2),
        ("Four is elsewhere.", "B", 2),
    ]


def test_a_heading_goes_with_the_text_of_its_section() -> None:
    chunks = split(
        Block(text="Guide", section="Guide", page=1),
        Block(text="The limits are strict.", section="Guide › Limits", page=2),
        Block(text="Other", section="Other", page=3),
    )
    assert [(chunk.text, chunk.run.section, chunk.page) for chunk in chunks] == [
        ("Guide\n\nThe limits are strict.", "Guide › Limits", 1),
        ("Other", "Other", 3),
    ]


@pytest.mark.parametrize("kind", ["annotation", "record"])
def test_annotations_and_records_stay_whole_up_to_four_sizes(kind: BlockKind) -> None:
    whole = "Name: Bob. " * 20
    assert [chunk.text for chunk in split(Block(text=whole, kind=kind))] == [whole.strip()]
    longer = " ".join(f"Field {n} is set." for n in range(40))
    chunks = split(Block(text=longer, kind=kind))
    assert len(chunks) > 4
    assert all(len(chunk.text) <= 60 and chunk.kind == kind for chunk in chunks)


def test_code_is_cut_between_definitions_and_keeps_its_lines() -> None:
    code = (
        "import os\n\n@cache\ndef first(a):\n    x = a\n\n    return x\n\n"
        "def second(b):\n    y = b\n    return y\n"
    )
    chunks = split(Block(text=code, kind="code"), size=70)
    assert [chunk.text for chunk in chunks] == [
        "import os\n\n@cache\ndef first(a):\n    x = a\n\n    return x",
        "def second(b):\n    y = b\n    return y",
    ]
    assert [chunk.text for chunk in split(Block(text="  indented\n", kind="code"))] == [
        "  indented"
    ]


def test_a_long_definition_is_cut_between_lines() -> None:
    code = "def f():\n" + "".join(f"    value_{n} = compute({n})\n" for n in range(20))
    chunks = split(Block(text=code, kind="code"), size=80, overlap=40)
    lines = [line for chunk in chunks for line in chunk.text.split("\n")]
    assert lines == code.strip().split("\n")


def test_tables_are_cut_between_rows() -> None:
    rows = [f"| row {n} | value. {n} |" for n in range(9)]
    chunks = split(Block(text="\n".join(rows), kind="table"))
    assert [row for chunk in chunks for row in chunk.text.split("\n")] == rows
    assert len(chunks) > 1


def test_repeated_chunks_are_dropped() -> None:
    chunks = split(
        Block(text="Same footer.", section="A"),
        Block(text="Body text.", section="B"),
        Block(text="Same footer.", section="C"),
    )
    assert [chunk.text for chunk in chunks] == ["Same footer.", "Body text."]


@pytest.mark.parametrize("kind", ["text", "code", "table", "record", "annotation"])
@pytest.mark.parametrize("word", ["abcdefghij" * 5000, "漢字" * 25_000])
def test_one_huge_word(kind: BlockKind, word: str) -> None:
    text = "".join(chr(ord(c) + n // 600 % 20) for n, c in enumerate(word))
    chunks = split(Block(text=text, kind=kind), size=600, overlap=50)
    assert all(0 < len(chunk.text) <= 600 for chunk in chunks)
    assert set("".join(chunk.text for chunk in chunks)) == set(text)


TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("abcXYZ .!?\n\n|:-#г中文。，Д😀\u200d\u0301"), st.characters(codec="utf-8")
    ),
    max_size=300,
)


@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(TEXTS, st.integers(2, 90))
def test_without_overlap_the_chunks_are_the_text(text: str, size: int) -> None:
    chunks = split(Block(text=text), size=size)
    remaining = squeeze(text)
    seen: set[str] = set()
    for chunk in chunks:
        assert chunk.text in text
        piece = squeeze(chunk.text)
        while not remaining.startswith(piece):
            dropped = next((old for old in seen if old and remaining.startswith(old)), None)
            assert dropped is not None
            remaining = remaining[len(dropped) :]
        remaining = remaining[len(piece) :]
        seen.add(piece)
    while remaining:
        dropped = next((old for old in seen if remaining.startswith(old)), None)
        assert dropped is not None
        remaining = remaining[len(dropped) :]
