"""Ingest and ingest again: what is unchanged, changed, removed, doubled, unreadable or guarded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from commands import DOCUMENTS, FILES, Index, index_of, pdf, query, write_files
from fakes import FakeEmbedder

from core.errors import OperatorError
from core.settings import Settings
from ingest.pipeline import Pipeline
from ingest.steps import Batch, Steps
from ingest.summary import Summary
from stores.store import Store

Ingest = Callable[..., Summary]


def texts(store: Store) -> str:
    return "\n".join(row[0] for row in query(store.folder, "SELECT text FROM chunks"))


def names(store: Store) -> set[str]:
    return {row[0] for row in query(store.folder, "SELECT document_id FROM documents")}


def reasons(summary: Summary) -> dict[str, str]:
    return {failure.path: failure.reason for failure in summary.failed}


def test_all_is_indexed_once(ingest: Ingest, corpus: Path, store: Store) -> None:
    first = ingest(corpus)
    assert (first.files, first.indexed, first.unchanged, first.failed) == (6, 6, 0, [])
    assert (first.documents, first.ok) == (DOCUMENTS, True)
    before = index_of(store.folder)
    assert first.chunks == len(before.chunks)
    version = store.catalogue.index_version()
    (corpus / "books.csv").touch()
    second = ingest(corpus)
    assert (second.indexed, second.unchanged, second.ok) == (0, 6, True)
    assert (second.documents, second.chunks) == (first.documents, first.chunks)
    assert index_of(store.folder) == before
    assert store.catalogue.index_version() == version


def test_files_that_end_before_the_last_portion_stay_known(
    ingest: Ingest, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided = Steps.portions

    def one_chunk_each(steps: Steps, batches: Iterable[Batch]) -> Iterable[Batch]:
        steps.portion = 1
        yield from divided(steps, batches)

    monkeypatch.setattr(Steps, "portions", one_chunk_each)
    monkeypatch.setattr("ingest.steps.PORTION_S", 0)
    (corpus / "blank.md").write_text("\ufeff\u200b\n", encoding="utf-8")
    assert reasons(ingest(corpus)) == {"blank.md": "no text is left after cleaning"}
    again = ingest(corpus)
    assert (again.indexed, again.unchanged, again.notes) == (0, 6, [])


def test_a_changed_file_replaces_its_chunks(ingest: Ingest, corpus: Path, store: Store) -> None:
    ingest(corpus)
    others = index_of(store.folder).documents
    path = corpus / "guide" / "candle.md"
    path.write_text("# Candles\n\nA torch of tallow smokes.\n", encoding="utf-8")
    summary = ingest(corpus)
    assert (summary.indexed, summary.unchanged, summary.documents) == (1, 5, DOCUMENTS)
    assert "tallow" in texts(store) and "42 mm" not in texts(store)
    rows = query(store.folder, "SELECT * FROM fts_1_content")
    assert "wick" not in str(rows) and "tallow" in str(rows)
    changed = index_of(store.folder).documents - others
    assert {row[0] for row in changed} == {"guide/candle.md"}


def test_what_an_interrupted_ingest_has_embedded_is_kept(
    ingest: Ingest, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents are written after seconds, not batches; a second run embeds none of them again."""
    corpus = write_files(tmp_path / "many", {f"{n}.md": f"Ship {n} is here.\n" for n in range(99)})
    embedded: list[str] = []
    embed = FakeEmbedder.embed_documents

    def noting(model: FakeEmbedder, texts: list[str]) -> np.ndarray:
        embedded.extend(texts)
        return embed(model, texts)

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "files" and done:  # counted when its documents are written
            raise KeyboardInterrupt

    monkeypatch.setattr(FakeEmbedder, "embed_documents", noting)
    with pytest.raises(KeyboardInterrupt):
        ingest(corpus, progress=stop)
    assert 0 < len(names(store)) < 99
    assert ingest(corpus).documents == 99
    assert len(embedded) == len(set(embedded)) == 99


def test_a_record_that_is_gone_disappears(ingest: Ingest, corpus: Path, store: Store) -> None:
    ingest(corpus)
    notes = corpus / "notes.jsonl"
    notes.write_text(notes.read_text(encoding="utf-8").split("\n")[0] + "\n", encoding="utf-8")
    summary = ingest(corpus)
    assert (summary.indexed, summary.documents) == (1, DOCUMENTS - 1)
    assert "n1" in names(store) and "n2" not in names(store)
    assert "owl" not in texts(store).lower()


def test_only_the_changed_record_is_written_again(
    ingest: Ingest, corpus: Path, store: Store
) -> None:
    ingest(corpus)
    before = dict(query(store.folder, "SELECT document_id, id FROM documents"))
    notes = corpus / "notes.jsonl"
    notes.write_text(notes.read_text(encoding="utf-8").replace("at night", "by day"))
    ingest(corpus)
    after = dict(query(store.folder, "SELECT document_id, id FROM documents"))
    assert {name for name, row in after.items() if before[name] != row} == {"n2"}


def test_a_removed_file_stays_until_it_is_pruned(
    ingest: Ingest, corpus: Path, store: Store
) -> None:
    ingest(corpus)
    (corpus / "guide" / "tea.md").unlink()
    summary = ingest(corpus)
    assert (summary.removed, summary.documents) == (0, DOCUMENTS - 1)
    assert "guide/tea.md" in names(store)
    pruned = ingest(corpus, prune=True)
    assert (pruned.removed, pruned.unchanged) == (1, 5)
    assert "guide/tea.md" not in names(store)
    assert ingest(corpus, prune=True).removed == 0


def test_a_moved_file_is_one_document(ingest: Ingest, corpus: Path, store: Store) -> None:
    ingest(corpus)
    corpus.rename(corpus.parent / "moved")
    summary = ingest(corpus.parent / "moved", prune=True)
    assert (summary.unchanged, summary.documents, summary.removed) == (6, DOCUMENTS, 0)
    assert len(names(store)) == DOCUMENTS


@pytest.mark.parametrize("renamed", [False, True])
def test_a_copy_takes_the_place_of_what_is_pruned(
    ingest: Ingest, corpus: Path, store: Store, renamed: bool
) -> None:
    """Also where documents come from a file of another name."""
    ingest(corpus)
    kept, copy = names(store), corpus.parent / "copy"
    shutil.copytree(corpus, copy)
    for path in [*copy.rglob("*.jsonl"), *copy.rglob("*.csv")] if renamed else []:
        path.rename(path.with_stem(f"new-{path.stem}"))
    summary = ingest(copy, prune=True)
    assert (summary.failed, summary.documents, names(store)) == ([], DOCUMENTS, kept)
    if not renamed:
        assert (summary.removed, summary.unchanged) == (0, 6)
        paths = query(store.folder, "SELECT path FROM files")
        assert all(Path(path).is_relative_to(copy.resolve()) for (path,) in paths)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02\xff" * 500])
def test_a_file_that_breaks_keeps_its_old_documents(
    ingest: Ingest, corpus: Path, store: Store, content: bytes
) -> None:
    ingest(corpus)
    before = index_of(store.folder)
    path = corpus / "guide" / "candle.md"
    path.write_bytes(content)
    for _ in range(2):
        summary = ingest(corpus, prune=True)
        assert list(reasons(summary)) == ["guide/candle.md"]
        assert (summary.indexed, summary.unchanged, summary.ok) == (0, 5, True)
        assert summary.documents == DOCUMENTS
        assert index_of(store.folder) == before
    path.write_text(FILES["guide/candle.md"], encoding="utf-8")
    assert ingest(corpus).failed == []
    assert index_of(store.folder) == before


def test_a_bad_record_does_not_cost_the_good_ones(
    ingest: Ingest, corpus: Path, store: Store
) -> None:
    with (corpus / "notes.jsonl").open("a", encoding="utf-8") as notes:
        notes.write('not json\n[1]\n{"_id": "n1", "text": "twice"}\n{"_id": "n3", "text": "ok"}\n')
    summary = ingest(corpus)
    assert summary.indexed == 6
    assert sorted(reasons(summary)) == ["notes.jsonl:3", "notes.jsonl:4", "notes.jsonl:5"]
    assert "'n1' is already used on line 1" in reasons(summary)["notes.jsonl:5"]
    assert {"n1", "n2", "n3"} <= names(store)
    again = ingest(corpus)  # what failed is told again, though the file is unchanged
    assert (again.unchanged, reasons(again)) == (6, reasons(summary))


def test_an_id_that_another_file_has_is_reported(
    ingest: Ingest, corpus: Path, store: Store
) -> None:
    line = json.dumps({"_id": "n1", "text": "A seal is not a walrus."})
    (corpus / "zoo.jsonl").write_text(line + "\n" + line.replace("n1", "z1") + "\n")
    summary = ingest(corpus)
    ((where, reason),) = reasons(summary).items()
    assert where == "zoo.jsonl#n1"
    assert "'n1'" in reason and "notes.jsonl" in reason
    assert "z1" in names(store)
    assert "walrus sleeps" in texts(store)


def test_the_same_name_in_two_folders_is_two_documents(
    ingest: Ingest, tmp_path: Path, store: Store
) -> None:
    one = write_files(tmp_path / "one", {"a.md": "# One\n\nThe first text.\n"})
    two = write_files(tmp_path / "two", {"a.md": "# Two\n\nThe second text.\n"})
    ingest(one)
    ingest(two)
    assert names(store) == {"a.md", "two/a.md"}
    assert "first text" in texts(store) and "second text" in texts(store)
    assert ingest(one).unchanged == ingest(two).unchanged == 1
    both = ingest(one, two)
    assert both.ok and both.documents >= 2


def test_a_new_access_list_is_written(ingest: Ingest, corpus: Path, store: Store) -> None:
    def guarded() -> set[str]:
        return {row[0] for row in query(store.folder, "SELECT principal FROM document_acl")}

    ingest(corpus)
    assert guarded() == set()
    summary = ingest(corpus, acl=["editor", "chief"])
    assert (summary.indexed, summary.unchanged) == (6, 0)
    assert guarded() == {"editor", "chief"}
    assert query(store.folder, "SELECT count(*) FROM documents WHERE is_open = 1") == [(0,)]
    assert ingest(corpus, acl=["chief", "editor"]).unchanged == 6
    ingest(corpus)
    assert guarded() == set()


def test_other_settings_write_again(ingest: Ingest, corpus: Path) -> None:
    change = {"chunk_size": 120, "chunk_overlap": 20}
    ingest(corpus)
    assert ingest(corpus, **change).unchanged == 0
    assert ingest(corpus, **change).unchanged == 6


def test_ids_are_the_same_everywhere(
    ingest: Ingest, corpus: Path, store: Store, open_store: Callable[..., Store], tmp_path: Path
) -> None:
    ingest(corpus)
    ingest(corpus, ingest_batch=1)
    other = open_store(data=tmp_path / "other")
    target = other.intake.open_collection("acme", "main", None)
    settings = Settings(data=other.folder, ingest_batch=2, vector_batch=1)
    Pipeline(other, FakeEmbedder(), settings, target).run([corpus])
    assert index_of(other.folder) == index_of(store.folder)


def test_tenants_and_collections_share_no_ids(ingest: Ingest, corpus: Path, store: Store) -> None:
    ingest(corpus)
    for tenant, name in (("zoo", "main"), ("acme", "second")):
        summary = ingest(corpus, into=store.intake.open_collection(tenant, name, None))
        assert (summary.indexed, summary.documents) == (6, DOCUMENTS)
    assert query(store.folder, "SELECT count(*), count(DISTINCT key) FROM documents") == [
        (3 * DOCUMENTS, 3 * DOCUMENTS)
    ]


def test_what_describes_a_document_is_kept(ingest: Ingest, corpus: Path, store: Store) -> None:
    ingest(corpus)
    rows = query(
        store.folder,
        "SELECT document_id, title, language, format, is_record, metadata, version FROM documents",
    )
    found = {row[0]: row[1:] for row in rows}
    assert found["guide/candle.md"][:4] == ("Candles", "en", "markdown", 0)
    assert json.loads(found["guide/candle.md"][4])["authors"] == ["Ann Wick"]
    assert found["guide/bread.html"][:3] == ("Хліб", "uk", "html")
    assert found["guide/чайник.txt"][1] == "ru"
    assert found["guide/tea.md"][:2] == ("茶", "zh")
    assert found["b1"][0] == "The Chemical History of a Candle" and found["b1"][3] == 1
    assert found["n1"][5] == "2"
    sections = query(store.folder, "SELECT section FROM chunks WHERE text LIKE '%42 mm%'")
    assert sections == [("Candles › Burning",)]
    years = query(store.folder, "SELECT number FROM record_fields WHERE name = 'year'")
    assert sorted(years) == [(1704.0,), (1861.0,)]


def test_chunks_of_a_pdf_know_their_page(ingest: Ingest, tmp_path: Path, store: Store) -> None:
    heron = "The grey heron stands in the shallow water and waits for fish. " * 3
    stork = "The white stork walks over the wet meadow and looks for frogs. " * 3
    (tmp_path / "birds.pdf").write_bytes(pdf(heron, stork))
    ingest(tmp_path / "birds.pdf", chunk_size=200, chunk_overlap=0)
    found = query(store.folder, "SELECT page, text FROM chunks ORDER BY ordinal")
    assert {page for page, text in found if "heron" in text} == {1}
    assert {page for page, text in found if "stork" in text} == {2}


def test_too_little_disk_stops_before_anything_is_written(
    ingest: Ingest, corpus: Path, store: Store
) -> None:
    before: Index = index_of(store.folder)
    with pytest.raises(OperatorError, match="MB free at"):
        ingest(corpus, min_free_mb=10**9)
    assert index_of(store.folder) == before


def test_progress_counts_files(ingest: Ingest, corpus: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    ingest(corpus, progress=lambda stage, done, total: seen.append((stage, done, total)))
    files = [done for stage, done, total in seen if stage == "files" and total == 6]
    assert files == sorted(files) and files[-1] == 6
