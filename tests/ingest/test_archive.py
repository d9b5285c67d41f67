"""A ZIP archive is a folder of documents; what is wrong with a member costs that member."""

from __future__ import annotations

import json
import stat
import tempfile
import zipfile
from pathlib import Path

import loading
import pytest
from commands import pdf

from ingest.discover import SourceFile, discover
from ingest.loaders.limits import LoadLimits
from ingest.sandbox.pool import ChildEndedError, ParserProcess, Sandbox
from ingest.types import LoadFailure
from ingest.usable import load
from tests.ingest.test_zip_safe import encrypted, of_kind, packed

LIMITS = loading.LIMITS.model_copy(
    update={"max_file_mb": 4, "zip_entries": 50, "zip_total_mb": 4, "zip_depth": 2}
)


class OldName(zipfile.ZipInfo):
    """A name written in a code page, as programs of Windows do."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        return self.filename.encode("cp437"), self.flag_bits


def read(
    path: Path, content: bytes, limits: LoadLimits = LIMITS
) -> tuple[list[str], dict[str, str]]:
    """Return the sources of the documents, and the reasons of the failures by path."""
    path.write_bytes(content)
    items = list(load(SourceFile(path, path.name), limits, loading.SHARED))
    failures = {item.path: item.reason for item in items if isinstance(item, LoadFailure)}
    return [item.source for item in items if not isinstance(item, LoadFailure)], failures


def test_members_are_read_by_the_loaders_of_their_formats(tmp_path: Path) -> None:
    rows = "\n".join(json.dumps({"_id": name, "text": "x"}) for name in "ab")
    documents, failures = read(
        tmp_path / "a.zip",
        packed(
            ("docs/one.md", b"# One\n\ntext"),
            ("docs/two.pdf", pdf("page one", "page two")),
            ("книги.jsonl", rows.encode()),
            ("docs/logo.png", b"\x89PNG"),
            ("docs/.hidden.md", b"x"),
            ("__MACOSX/docs/._one.md", b"x"),
            ("more.zip", packed(("deep/three.txt", b"three"))),
        ),
    )
    assert documents == [
        "a.zip/docs/one.md", "a.zip/docs/two.pdf", "a.zip/книги.jsonl#a", "a.zip/книги.jsonl#b",
        "a.zip/more.zip/deep/three.txt",
    ]  # fmt: skip
    assert failures == {}


def test_a_bad_member_fails_alone(tmp_path: Path) -> None:
    documents, failures = read(
        tmp_path / "a.zip",
        packed(
            ("good.md", b"text"),
            ("../../evil.md", b"x"),
            ("/etc/evil.md", b"x"),
            (of_kind("link.md", stat.S_IFLNK | 0o777), b"/etc/passwd"),
            ("bomb.txt", bytes(2**21)),
            ("m.pkl", b"cos\nsystem\n."),
            ("empty.md", b""),
            ("torn.pdf", b"%PDF-1.4 x"),
            ("torn.zip", b"PK\x03\x04" + bytes(40)),
            ("last.md", b"text"),
        ),
    )
    assert documents == ["a.zip/good.md", "a.zip/last.md"]
    expected = {
        "../../evil.md": "leaves its folder", "/etc/evil.md": "absolute path",
        "link.md": "symbolic link", "bomb.txt": "zip_ratio", "m.pkl": "a pickle runs code",
        "empty.md": "the file is empty", "torn.pdf": "the PDF is damaged",
        "torn.zip": "damaged or no ZIP",
    }  # fmt: skip
    assert set(failures) == {f"a.zip/{name}" for name in expected}
    for name, reason in expected.items():
        assert reason in failures[f"a.zip/{name}"]
    assert list(Path(tempfile.gettempdir()).glob("evil*")) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04" + bytes(99), "damaged or no ZIP"),
        (packed(("logo.png", b"x")), "no document in the archive"),
        (packed(), "no document in the archive"),
        (packed(*((f"{n}.md", b"x") for n in range(51))), "zip_entries"),
        (packed(*((f"{n}.md", bytes(2**20)) for n in range(5))), "zip_total_mb"),
    ],
)
def test_an_archive_refused_as_a_whole(tmp_path: Path, content: bytes, reason: str) -> None:
    documents, failures = read(tmp_path / "a.zip", content)
    assert documents == [] and list(failures) == ["a.zip"]
    assert reason in failures["a.zip"]


def test_an_encrypted_member_is_named(tmp_path: Path) -> None:
    _, failures = read(tmp_path / "a.zip", encrypted(packed(("x.md", b"x"))))
    assert "encrypted" in failures["a.zip/x.md"]


def test_of_two_members_of_a_name_the_last_is_read_and_it_is_said(tmp_path: Path) -> None:
    documents, failures = read(tmp_path / "a.zip", packed(("x.md", b"one"), ("x.md", b"two")))
    assert documents == ["a.zip/x.md"]
    assert "several members" in failures["a.zip/x.md"]


def test_nesting_is_bounded_by_depth_and_by_one_budget(tmp_path: Path) -> None:
    content = packed(("x.md", b"x"))
    for _ in range(3):
        content = packed(("in.zip", content), ("y.md", b"y"))
    documents, failures = read(tmp_path / "a.zip", content)
    assert documents == ["a.zip/in.zip/y.md", "a.zip/y.md"]
    assert "zip_depth" in failures["a.zip/in.zip/in.zip"]
    noise = bytes(range(256)) * 2**12  # 1 MB each, 6 MB together with the packed forms
    inner = packed(*((f"{n}.md", noise) for n in range(3)))
    _, failures = read(tmp_path / "b.zip", packed(("1.zip", inner), ("2.zip", inner)))
    assert "zip_total_mb" in failures["b.zip"]


def test_names_in_old_code_pages(tmp_path: Path) -> None:
    names = ["Отчёт за первый квартал.md", "Протокол собрания.md", "Список литературы.md"]
    members = [(OldName(name.encode("cp866").decode("cp437")), b"text") for name in names]
    documents, _ = read(tmp_path / "a.zip", packed(*members))
    assert documents == [f"a.zip/{name}" for name in names]


def test_temporary_files_go_even_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(packed(("x.md", b"text"), ("y.md", b"text")))
    with Sandbox() as sandbox:
        items = load(SourceFile(path, "a.zip"), LIMITS, sandbox)
        next(items)
        del items
    child = ParserProcess()
    scratch = Path(child._scratch)
    (scratch / "left.md").write_text("x")
    child.close()
    assert not scratch.exists()


def test_archives_are_found_in_folders(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(packed(("x.md", b"x")))
    (tmp_path / "a.rar").write_bytes(b"Rar!")
    files, failures = discover([tmp_path])
    assert [file.relative for file in files] == ["a.zip"]
    assert "pack the files as ZIP" in failures[0].reason


def test_a_member_that_kills_the_process_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process dies over the member called "deadly" that it comes to."""
    inner = packed(("x.md", b"x"), ("deadly.md", b"x"), ("y.md", b"y"))
    mail = (
        b"Subject: s\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nbody\n--b\n"
        b'Content-Disposition: attachment; filename="deadly.txt"\n\nx\n--b\n'
        b'Content-Disposition: attachment; filename="z.txt"\n\nlast\n--b--'
    )
    path = tmp_path / "a.zip"
    path.write_bytes(packed(("a.md", b"a"), ("in.zip", inner), ("m.eml", mail), ("end.md", b"e")))
    line = ParserProcess.line

    dying: set[ParserProcess] = set()

    def kill_at(child: ParserProcess, seconds: float, most: int) -> bytearray:
        if child in dying:
            child.close()
            raise ChildEndedError
        found = line(child, seconds, most)
        if found.startswith(b"A") and b"deadly" in found:
            dying.add(child)
        return found

    monkeypatch.setattr(ParserProcess, "line", kill_at)
    with Sandbox() as sandbox:
        items = list(load(SourceFile(path, "a.zip"), LIMITS, sandbox))
    failed = [item.path for item in items if isinstance(item, LoadFailure)]
    read = [item.source for item in items if not isinstance(item, LoadFailure)]
    assert failed == ["a.zip/in.zip/deadly.md", "a.zip/m.eml/deadly.txt"]
    assert read == [
        "a.zip/a.md", "a.zip/in.zip/x.md", "a.zip/in.zip/y.md", "a.zip/m.eml",
        "a.zip/m.eml/z.txt", "a.zip/end.md",
    ]  # fmt: skip
