"""Discovery lists what a person meant, under stable names."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import CallerError
from ingest.discover import discover


def _make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_a_folder_is_walked_in_order_and_noise_is_left_out(tmp_path: Path) -> None:
    _make(
        tmp_path, "b/z.md", "a.txt", "b/a.html", ".git/x.md", ".hidden.md", "logo.png", "Makefile"
    )
    others: list[str] = []
    files, failures = discover([tmp_path], others)
    assert [file.relative for file in files] == ["a.txt", "b/a.html", "b/z.md"]
    assert (failures, others) == ([], ["Makefile", "logo.png"])


def test_unsupported_documents_are_reported_with_advice(tmp_path: Path) -> None:
    _make(tmp_path, "t.djvu", "d/m.mobi", "d/w.pkl")
    files, failures = discover([tmp_path])
    assert files == []
    assert {failure.path for failure in failures} == {"t.djvu", "d/m.mobi", "d/w.pkl"}
    reasons = {failure.path: failure.reason for failure in failures}
    assert "format .djvu is not read; convert it to PDF" in reasons["t.djvu"]
    assert "a pickle runs code" in reasons["d/w.pkl"]


def test_a_named_file_is_always_reported(tmp_path: Path) -> None:
    _make(tmp_path, "logo.png", "x.md")
    files, failures = discover([tmp_path / "logo.png", tmp_path / "x.md"])
    assert not failures and [one.relative for one in files] == ["logo.png", "x.md"]


def test_a_missing_path_is_the_callers_error(tmp_path: Path) -> None:
    with pytest.raises(CallerError, match="no such file or folder"):
        discover([tmp_path / "nowhere"])


def test_equal_names_below_two_folders_get_the_folder_in_front(tmp_path: Path) -> None:
    _make(tmp_path, "one/a.md", "two/a.md", "two/b.md", "three/c.md")
    files, _ = discover([tmp_path / name for name in ("one", "two", "three")])
    assert [file.relative for file in files] == ["one/a.md", "two/a.md", "two/b.md", "c.md"]


def test_folders_of_one_name_are_told_apart_by_their_parents(tmp_path: Path) -> None:
    _make(tmp_path, "p/docs/a.md", "q/docs/a.md", "r/a.md", "s/a.md")
    paths = ["p/docs", "q/docs", "r/a.md", "s/a.md"]
    files, _ = discover([tmp_path / path for path in paths])
    names = [file.relative for file in files]
    assert names[:2] == ["p/docs/a.md", "q/docs/a.md"]
    assert len(set(names)) == 4


def test_a_file_reached_twice_is_listed_once(tmp_path: Path) -> None:
    _make(tmp_path, "d/a.md")
    files, _ = discover([tmp_path / "d", tmp_path / "d" / "a.md", tmp_path / "d"])
    assert [file.relative for file in files] == ["a.md"]


def test_links_stay_inside_the_folder(tmp_path: Path) -> None:
    _make(tmp_path, "secret/s.md", "d/a.md")
    folder = tmp_path / "d"
    (folder / "out.md").symlink_to(tmp_path / "secret" / "s.md")
    (folder / "outside").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to(folder)
    (folder / "again.md").symlink_to(folder / "a.md")
    (folder / "broken.md").symlink_to(folder / "gone.md")
    files, failures = discover([folder])
    assert [file.relative for file in files] == ["a.md"]
    reasons = {failure.path: failure.reason for failure in failures}
    assert set(reasons) == {"out.md", "outside", "broken.md"}
    assert "leaves the folder" in reasons["out.md"]


def test_a_data_directory_is_no_document(tmp_path: Path) -> None:
    """It may lie in the folder that is read, and keeps uploads of other people."""
    (tmp_path / "a.md").write_text("text")
    uploads = tmp_path / "data" / "uploads" / "1"
    uploads.mkdir(parents=True)
    (tmp_path / "data" / "catalogue.sqlite3").touch()
    (tmp_path / "data" / "owner.json").write_text("{}")
    (uploads / "secret.md").write_text("another tenant's")
    found, _ = discover([tmp_path])
    assert [one.relative for one in found] == ["a.md"]


def test_what_a_generator_adds_to_a_site_is_left_out(tmp_path: Path) -> None:
    _make(tmp_path, "one/searchindex.js", "one/index.html", "one/genindex.html", "one/search.html")
    _make(tmp_path, "one/_sources/index.rst.txt", "one/py-modindex.html", "two/404.html")
    _make(tmp_path, "two/search/search_index.json", "two/index.html", "three/search.html")
    _make(tmp_path, "two/search/index.html", "three/objects.inv")  # pages that people wrote
    files, failures = discover([tmp_path])
    found = [file.relative for file in files]
    pages = ["one/index.html", "three/search.html", "two/index.html", "two/search/index.html"]
    assert found == pages and not failures
