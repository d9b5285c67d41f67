"""The context of short documents: bounded, from the right side, one file's documents at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from core.settings import Settings
from ingest.reading import with_context
from ingest.types import Block, ParsedDocument
from stores.sqlite.rows import NEXT, PREVIOUS

WORDS = st.text("ab 中🇺🇦\u0301\n", min_size=1, max_size=160)


def document(name: str, text: str, *, is_record: bool = False) -> ParsedDocument:
    return ParsedDocument(
        document_id=name, source=name, title="", format="jsonl", blocks=[Block(text=text)],
        is_record=is_record,
    )  # fmt: skip


def merging(**values: int) -> Settings:
    return Settings(
        data=Path("unused"),
        merge_short=True,
        **{"merge_max": 120, **values},  # type: ignore[arg-type]
    )


@given(st.lists(WORDS, max_size=6), st.integers(100, 400))
def test_context_is_bounded_and_comes_from_the_neighbours(texts: list[str], most: int) -> None:
    documents = [document(str(n), text) for n, text in enumerate(texts)]
    found = list(with_context(documents, merging(merge_max=most)))
    assert [item for item, _ in found] == documents
    flat = ["", *(" ".join(text.split()) for text in texts), ""]
    for n, (item, context) in enumerate(found):
        assert len(item.blocks[0].text) + len(context) + bool(context) <= max(most, len(texts[n]))
        lines = context.split("\n") if context else []
        for line in lines:
            if line.startswith(PREVIOUS):
                assert flat[n].endswith(line.removeprefix(PREVIOUS))
            else:
                assert line.startswith(NEXT) and flat[n + 2].startswith(line.removeprefix(NEXT))


def test_three_documents_are_held_at_a_time() -> None:
    taken = 0

    def documents() -> Iterator[ParsedDocument]:
        nonlocal taken
        for n in range(1000):
            taken += 1
            yield document(str(n), f"Turn {n}.")

    for given_out, _ in enumerate(with_context(documents(), merging())):
        assert taken <= given_out + 2


def test_without_the_setting_nothing_is_merged() -> None:
    documents = [document(name, "Short.") for name in "abc"]
    settings = Settings(data=Path("unused"))
    assert [context for _, context in with_context(documents, settings)] == ["", "", ""]


def test_a_record_between_two_documents_gives_nothing() -> None:
    documents = [
        document("a", "First."), document("r", "Row.", is_record=True), document("b", "Last.")
    ]  # fmt: skip
    assert [context for _, context in with_context(documents, merging())] == ["", "", ""]


def test_a_document_of_the_limit_is_not_short() -> None:
    for length, merged in ((9, True), (10, False)):
        documents = [document("a", "x" * length), document("b", "Next.")]
        (_, context), _ = with_context(documents, merging(merge_short_chars=10))
        assert bool(context) is merged
