"""CSV rows and JSON lines become records or documents, one bad line never costs the file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from loading import loaded

from ingest.types import ParsedDocument


def parse(path: Path, content: str) -> tuple[list[ParsedDocument], dict[str, str]]:
    data = content.encode()
    return loaded(path, gzip.compress(data) if path.suffix == ".gz" else data)


def lines(*objects: object) -> str:
    return "\n".join(json.dumps(item, ensure_ascii=False) for item in objects)


def test_a_line_of_prose_is_a_document(tmp_path: Path) -> None:
    meta = {"author": "A B; C D", "page": {"n": 3}, "tags": ["x"]}
    (document,), _ = parse(
        tmp_path / "c.jsonl.gz", lines({"_id": 7, "title": "T", "text": "Body.", "metadata": meta})
    )
    assert (document.document_id, document.source) == ("7", "c.jsonl.gz#7")
    assert not document.is_record
    assert document.fields == {"author": "A B; C D", "page.n": 3, "tags": ["x"]}
    assert document.metadata == {"authors": ["A B", "C D"], "page.n": 3, "keywords": ["x"]}


def test_markdown_in_a_line_gets_sections(tmp_path: Path) -> None:
    line = lines({"_id": "a", "text": "# H\n\nx\n\n## S\n\ny"})
    (document,), _ = parse(tmp_path / "c.jsonl", line)
    assert document.title == "H"
    assert [block.section for block in document.blocks] == ["H", "H › S"]


def test_any_other_object_is_a_record(tmp_path: Path) -> None:
    long = "About the sea. " * 30
    row = {
        "book_id": 5, "name": "Moby Dick", "maintained_by": "H. M.", "year": 1851, "none": None,
        "authors": [{"name": "Herman"}, {"name": "M"}], "annotation": long,
    }  # fmt: skip
    (record,), _ = parse(tmp_path / "r.jsonl", lines(row))
    assert record.is_record and record.document_id == "5" and record.title == "Moby Dick"
    assert record.blocks[0].kind == "record"
    assert record.blocks[0].text == (
        "name: Moby Dick\nbook id: 5\nmaintained by: H. M.\nyear: 1851\nauthors name: Herman, M"
    )
    assert (record.blocks[1].kind, record.blocks[1].text) == ("annotation", long)
    assert "annotation" not in record.fields and record.fields["authors.name"] == ["Herman", "M"]


def test_bad_lines_fail_alone(tmp_path: Path) -> None:
    content = "\n".join(
        [
            lines({"_id": "a", "text": "one"}), "{bad", "[1]", lines({"_id": "b"}), "",
            lines({"_id": "a", "text": "two"}), lines({"text": "no id\u2028kept"}), "[" * 20_000,
        ]
    )  # fmt: skip
    documents, failures = parse(tmp_path / "x.jsonl", content)
    assert [document.document_id for document in documents] == ["a", "x.jsonl#7"]
    assert documents[1].source == "x.jsonl#7"
    assert set(failures) == {f"x.jsonl:{number}" for number in (2, 3, 4, 6, 8)}
    assert "not valid JSON" in failures["x.jsonl:2"]
    assert failures["x.jsonl:6"] == "the id 'a' is already used on line 1"


def test_csv_rows(tmp_path: Path) -> None:
    content = 'id;title;year;note\n1;"A\nB";1999;x\n2;C;2001;\n2;D;2002;y\n3;E\n'
    records, failures = parse(tmp_path / "b.csv", content)
    assert [record.document_id for record in records] == ["1", "2"]
    assert records[0].fields == {"id": "1", "title": "A\nB", "year": 1999, "note": "x"}
    assert records[1].metadata["year"] == 2001
    assert records[1].blocks[0].text == "title: C\nid: 2\nyear: 2001"
    assert failures == {
        "b.csv:5": "the id '2' is already used on line 4",
        "b.csv:6": "2 cells where the header has 4",
    }


def test_tsv_without_ids_counts_rows(tmp_path: Path) -> None:
    records, _ = parse(tmp_path / "b.tsv", "name\tcity\nAda\tLondon\nBob, Jr\tParis\n")
    assert [record.document_id for record in records] == ["b.tsv#1", "b.tsv#2"]
    assert [record.title for record in records] == ["Ada", "Bob, Jr"]
    assert records[0].source == "b.tsv#1"


def test_one_too_long_record_fails_alone(tmp_path: Path) -> None:
    content = lines({"_id": "a", "text": "x" * 200_001}, {"_id": "b", "text": "ok"})
    documents, failures = parse(tmp_path / "l.jsonl", content)
    assert [document.document_id for document in documents] == ["b"]
    assert "max_characters" in failures["l.jsonl#a"]
