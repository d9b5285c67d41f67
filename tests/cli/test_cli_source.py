"""`carrel source`: add, list, sync and remove, and what is refused leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Carrel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (made := tmp_path / "birds").mkdir()
    (made / "heron.md").write_text("The heron wades in the marsh.")
    return made


def test_a_source_comes_syncs_and_goes(carrel: Carrel, data: Path, folder: Path) -> None:
    command = (
        "source",
        "add",
        "birds",
        str(folder),
        "-c",
        "birds",
        "--every",
        "1h",
        "--acl",
        "a,b",
    )
    added = carrel(*command, "--json", data=data).json
    assert (added["every"], added["acl"], added["state"]) == (3600, ["a", "b"], "new")
    done = carrel("source", "sync", "birds", "--json", data=data).json
    assert (done["new"], done["failed"]) == (1, [])
    events = carrel("audit", "list", "--kind", "upload", "--json", data=data).json["events"]
    assert events[0]["facts"]["source"] == "birds"
    listed = carrel("source", "list", "--json", data=data).json["sources"]
    assert [(one["name"], one["state"]) for one in listed] == [("birds", "ok")]
    assert "1 unchanged" in carrel("source", "sync", data=data).out
    carrel("source", "remove", "birds", "--documents", data=data).failed(2, "Add -y")
    gone = carrel("source", "remove", "birds", "--documents", "-y", "--json", data=data).json
    assert gone == {"removed": "birds", "documents": 1}
    carrel("source", "remove", "birds", data=data).failed(2, "no such source")
    assert "no source yet" in carrel("source", "list", data=data).out


def test_a_source_that_fails_stops_no_other(carrel: Carrel, data: Path, folder: Path) -> None:
    (other := folder.parent / "a").mkdir()
    carrel("source", "add", "away", str(other), data=data)
    carrel("source", "add", "birds", str(folder), data=data)
    other.rmdir()
    done = carrel("source", "sync", data=data)
    assert done.code == 1 and "birds → default: 1 items · 1 new" in done.out
    assert "away: the folder of a source must exist" in done.err
    assert "failed" in carrel("source", "list", data=data).out
    (stays := carrel("source", "remove", "birds", "--json", data=data).json)
    assert stays["documents"] == 0
    assert "heron.md" in carrel("documents", data=data).out


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("s", "http://127.0.0.1/x"), "public address: 127.0.0.1"),
        (("s", "https://ann:pw@example.org/"), "no secret"),
        (("s", "s3://KEY@papers/?endpoint=http://10.0.0.1:9000"), "public address: 10.0.0.1"),
        (("s", "s3://KEY@papers/?endpoint=papers"), "an endpoint is an https"),
        (("s", "http://169.254.1.1/", "--allow-private"), "a link is never allowed"),
        (("s", "loader:os.system"), "system is no document loader"),
        (("s", "loader:langchain_core.Any", "--parameters", "bad.yaml"),
         "the file of parameters is YAML"),
        (("s", "nowhere"), "must exist"),
        (("s", ".", "--every", "1y"), "--every is a number"),
        (("s", ".", "--every", "1s"), "--every is a number"),
        (("s", ".", "--acl", "no good"), "role is 1 to 64"),
        (("a b", "."), "a source is 1 to 64"),
        (("s", ".", "--parameters", "x.yaml"), "those of a loader"),
        (("s", "loader:langchain_core.Any", "--parameters", "no.yaml"), "parameters must exist"),
        (("s", "loader:langchain_community.document_loaders.TextLoader", "--parameters", "p.yaml"),
         "secret is named, never written: api_key. Write `api_key: env:VARIABLE`"),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_no_entry(
    carrel: Carrel, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    given: tuple[str, ...], why: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text("api_key: abc\n")
    (tmp_path / "bad.yaml").write_text("n: [1\n")
    carrel("source", "add", *given, data=data).failed(2, why)
    assert carrel("source", "list", "--json", data=data).json == {"sources": []}
