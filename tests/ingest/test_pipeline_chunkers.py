"""Chunkers, the context of short documents and a second model as an ingest stores them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from behind import full_text_hits
from commands import index_of, query, write_files
from fakes import FakeEmbedder, Shelf
from hypothesis import given
from hypothesis import strategies as st

from core.auth import AuthContext
from core.errors import ModelError
from core.settings import Settings
from ingest.enrich import embedded_text
from ingest.reading import with_context
from ingest.summary import Summary
from ingest.types import Block, ParsedDocument
from ingest.vectors import rebuild
from stores.sqlite.rows import NEXT, PREVIOUS, digest
from stores.store import Store, parts

Ingest = Callable[..., Summary]
TURNS = {"t1": "A walrus swam.", "t2": "It was cold.", "t3": "Nobody saw it.", "t4": "An owl came."}


def turns(path: Path, texts: dict[str, str] = TURNS, **more: object) -> Path:
    lines = [{"_id": key, "title": "", "text": text, **more} for key, text in texts.items()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def contexts(store: Store) -> dict[str, str]:
    joined = "chunks c JOIN documents d ON d.id = c.document"
    return dict(query(store.folder, f"SELECT d.document_id, c.context FROM {joined}"))


def test_each_chunker_stores_its_own_chunks(ingest: Ingest, store: Store, tmp_path: Path) -> None:
    text = "# Guide\n\n" + "A heron stands in the river. Bread bakes in the oven. " * 12
    (tmp_path / "guide.md").write_text(
        text + "\n\n## Code\n\nRun this:\n\n```\nrun()\n```\n\nThen wait.\n"
    )
    sizes = {}
    for chunker in ("sentence", "fixed", "semantic", "structural"):
        values = {"chunker": chunker, "chunk_size": 300, "chunk_overlap": 60}
        assert ingest(tmp_path / "guide.md", **values).indexed == 1
        assert ingest(tmp_path / "guide.md", **values).unchanged == 1
        chunks = query(store.folder, "SELECT text FROM chunks ORDER BY ordinal")
        sizes[chunker] = [len(chunk) for (chunk,) in chunks]
        whole = "Run this:\n\n```\nrun()\n```\n\nThen wait."
        assert ((whole,) in chunks) is (chunker == "structural")
    assert max(sizes["sentence"]) <= 300 and max(sizes["fixed"]) <= 300
    assert max(sizes["semantic"]) <= 500 and max(sizes["structural"]) > 500
    assert len({str(value) for value in sizes.values()}) == 4


def test_the_summary_says_where_sentences_had_to_do(ingest: Ingest, tmp_path: Path) -> None:
    corpus, english = write_files(tmp_path / "corpus"), FakeEmbedder(frozenset({"en"}))
    summary = ingest(corpus, model=english, chunker="semantic")
    assert summary.indexed == 6
    (note,) = summary.notes
    assert all(language in note for language in ("ru", "uk", "zh"))
    assert ingest(corpus, chunker="sentence").notes == []


def test_a_broken_model_is_no_fault_of_a_document(ingest: Ingest, tmp_path: Path) -> None:
    class Broken(FakeEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> np.ndarray:
            raise ModelError("the model broke")

    path = turns(tmp_path / "turns.jsonl", {"t": "One heron stands. Two storks walk. " * 9})
    with pytest.raises(ModelError, match="broke"):
        ingest(path, model=Broken(), chunker="semantic")


def test_short_documents_are_searched_with_their_neighbours(
    shelf: Shelf, ingest: Ingest, tmp_path: Path
) -> None:
    ingest(turns(tmp_path / "turns.jsonl"), merge_short=True)
    assert contexts(shelf.store) == {
        "t1": "→ It was cold.",
        "t2": "← A walrus swam.\n→ Nobody saw it.",
        "t3": "← It was cold.\n→ An owl came.",
        "t4": "← Nobody saw it.",
    }
    auth = AuthContext(tenant="acme")
    found = full_text_hits(shelf.store, shelf.id, [{"walrus"}], 9)
    evidence = shelf.catalogue.evidence(auth, shelf.id, [key for key, _ in found])
    assert [evidence[key].document_id for key, _ in found] == ["t1", "t2"]  # its own word first
    assert [evidence[key].text for key, _ in found] == ["A walrus swam.", "It was cold."]
    text = embedded_text("", "", "A walrus swam.", "→ It was cold.")
    rows = query(shelf.store.folder, "SELECT content_hash, vector FROM embeddings")
    assert dict(rows)[digest(text)] == shelf.embedder.embed_query(text).astype("<f4").tobytes()


def test_a_changed_neighbour_changes_the_context(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    path = turns(tmp_path / "turns.jsonl")
    ingest(path, merge_short=True)
    before = dict(query(store.folder, "SELECT document_id, id FROM documents"))
    assert ingest(path, merge_short=True).unchanged == 1
    turns(path, {**TURNS, "t4": "A hen came."})
    ingest(path, merge_short=True)
    after = dict(query(store.folder, "SELECT document_id, id FROM documents"))
    assert {name for name in TURNS if after[name] != before[name]} == {"t3", "t4"}
    assert contexts(store)["t3"].endswith("→ A hen came.")
    ingest(path)  # the merging is switched off
    assert set(contexts(store).values()) == {""}


def test_neighbours_are_of_the_same_file(ingest: Ingest, store: Store, tmp_path: Path) -> None:
    for name in ("one", "two"):
        turns(tmp_path / f"{name}.jsonl", {f"{name}{n}": f"{name} {n} text." for n in range(2)})
        (tmp_path / f"{name}.md").write_text(f"The page {name} is short.\n")
    ingest(tmp_path, merge_short=True)
    found = contexts(store)
    assert found["one.md"] == found["two.md"] == ""
    assert found["one1"] == "← one 0 text." and found["two0"] == "→ two 1 text."


def test_records_have_no_context(ingest: Ingest, store: Store, tmp_path: Path) -> None:
    ingest(turns(tmp_path / "rows.jsonl", author="Ann"), merge_short=True)
    assert set(contexts(store).values()) == {""}


def test_context_is_bounded_and_made_of_whole_words(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    long = " ".join(f"word{n:03}" for n in range(200))
    texts = {"a": long, "b": "Short one.", "c": long, "d": "Short two.", "e": "Brief."}
    ingest(turns(tmp_path / "t.jsonl", texts), merge_short=True, merge_max=300)
    found = contexts(store)
    assert found["a"] == found["c"] == ""  # not short
    before, after = found["b"].split("\n")
    assert before.endswith("word199") and after.startswith("→ word000")
    assert abs(len(before) - len(after)) < 12
    for name in ("b", "d", "e"):
        assert 250 < len(texts[name]) + len(found[name]) + 1 <= 300 or name == "e"
        assert {word for word in found[name].split() if word.startswith("word")} <= set(
            long.split()
        )
    assert len(found["d"].split("\n")[0]) > 200  # what the other side leaves is used


def test_a_rebuild_searches_the_context_again(shelf: Shelf, ingest: Ingest, tmp_path: Path) -> None:
    ingest(turns(tmp_path / "turns.jsonl"), merge_short=True)
    whole = index_of(shelf.store.folder)
    with parts(shelf.store).database.write() as connection:
        connection.execute("DELETE FROM embeddings")
    report = rebuild(
        shelf.store, shelf.embedder, Settings(data=shelf.store.folder), lambda *_: None
    )
    assert report["embedded"] == 4
    assert index_of(shelf.store.folder) == whole
    found = full_text_hits(shelf.store, shelf.id, [{"walrus"}], 9)
    assert len(found) == 2


def vectors(store: Store) -> list[tuple[str, int]]:
    counted = "SELECT model, count(*) FROM embeddings GROUP BY model ORDER BY model"
    return query(store.folder, counted)


def test_a_second_model_keeps_vectors_of_its_own(
    ingest: Ingest, store: Store, tmp_path: Path
) -> None:
    path, second = turns(tmp_path / "turns.jsonl"), FakeEmbedder(model_id="second")
    ingest(path, second=second, ingest_batch=3)
    assert vectors(store) == [("fake", 4), ("second", 4)]
    turns(path, {**TURNS, "t5": "A hen came."})
    ingest(path, second=second)
    assert vectors(store) == [("fake", 5), ("second", 5)]
    turns(path)  # no text is left that the fifth vectors are of
    ingest(path, second=second)
    assert vectors(store) == [("fake", 4), ("second", 4)]


def test_a_second_model_learns_what_was_there_before(
    ingest: Ingest, store: Store, embedder: FakeEmbedder, tmp_path: Path
) -> None:
    path, second = turns(tmp_path / "turns.jsonl"), FakeEmbedder(model_id="second")
    ingest(path)
    assert ingest(path, second=second).unchanged == 1
    assert vectors(store) == [("fake", 4), ("second", 4)]
    third = FakeEmbedder(model_id="third")
    settings = Settings(data=store.folder, ingest_batch=3)
    assert rebuild(store, embedder, settings, lambda *_: None, third)["embedded"] == 4
    assert rebuild(store, embedder, settings, lambda *_: None, third)["embedded"] == 0
    assert ("third", 4) in vectors(store)


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
