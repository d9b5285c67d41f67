"""JSON files: arrays of objects are records, anything else is a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loading import loaded, only, reason, sections, texts

BOOKS = [
    {"id": 1, "name": "Кобзар", "year": 1840, "tags": ["поезія", "вірші"]},
    {"id": 2, "name": "红楼梦", "author": {"family": "曹", "given": "雪芹"}},
]


def dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "value",
    [
        BOOKS,
        {"books": BOOKS},
        {"count": 2, "next": None, "books": BOOKS},
        {"1": {"name": "Кобзар", "year": 1840}, "2": {"name": "红楼梦"}},
    ],
)
def test_records(tmp_path: Path, value: object) -> None:
    documents, failures = loaded(tmp_path / "b.json", dumped(value))
    assert not failures
    assert [document.document_id for document in documents] == ["1", "2"]
    assert [document.title for document in documents] == ["Кобзар", "红楼梦"]
    assert documents[0].is_record and documents[0].fields["year"] == 1840


def test_prose_beside_the_records_is_kept(tmp_path: Path) -> None:
    value = {"about": "a list of books that we lend", "books": BOOKS}
    documents, _ = loaded(tmp_path / "b.json", dumped(value))
    assert [document.document_id for document in documents] == ["1", "2", "b.json"]
    assert texts(documents[2]) == ["about: a list of books that we lend"]


def test_any_other_value_is_a_text(tmp_path: Path) -> None:
    value = {
        "server": {"host": "localhost", "ports": [80, 443]},
        "title": "Настройки",
        "long": "word " * 60,
    }
    document = only(tmp_path / "c.json", dumped(value))
    assert document.title == "Настройки" and not document.is_record
    assert sections(document) == ["", "server"]
    assert texts(document)[1] == "host: localhost\nports: 80, 443"
    assert texts(only(tmp_path / "s.json", b'"one string"')) == ["one string"]
    assert texts(only(tmp_path / "l.json", b'["a", "b"]')) == ["a, b"]


def test_json_lines_under_another_name(tmp_path: Path) -> None:
    documents, _ = loaded(tmp_path / "x.json", b'{"id": "a", "name": "A"}\n{"id": "b", "v": "B"}\n')
    assert [document.document_id for document in documents] == ["a", "b"]


def test_what_stands_before_damage_is_kept(tmp_path: Path) -> None:
    documents, failures = loaded(tmp_path / "d.json", dumped(BOOKS)[:-20])
    assert [document.document_id for document in documents] == ["1"]
    assert list(failures) == ["d.json: item 2"] and "not valid JSON" in str(failures)


def test_equal_and_empty_records(tmp_path: Path) -> None:
    documents, failures = loaded(tmp_path / "e.json", dumped([*BOOKS, BOOKS[0], {}]))
    assert len(documents) == 2
    assert failures == {
        "e.json: item 3": "the id '1' is already used by item 1",
        "e.json: item 4": "no text and no title in this record",
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{", "not valid JSON"),
        (b"nothing", "not valid JSON"),
        (b"[]", "an empty array"),
        (b"{}", "no text"),
        (b'{"a": null}', "no text"),
        (b" \n", "white space"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes, expected: str) -> None:
    assert expected in reason(tmp_path / "x.json", content)


def test_deep_nesting(tmp_path: Path) -> None:
    assert "not valid JSON" in str(loaded(tmp_path / "n.json", b"[" * 100_000)[1])
    nested = b'{"a":' * 300 + b'"bottom"' + b"}" * 300
    assert "bottom" in texts(only(tmp_path / "o.json", nested))[-1]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)


@given(VALUES)
def test_any_value_ends_in_documents_or_reasons(
    tmp_path_factory: pytest.TempPathFactory, value: object
) -> None:
    path = tmp_path_factory.mktemp("json") / "x.json"
    documents, failures = loaded(path, json.dumps(value).encode())
    assert documents or failures
    assert not any("gave up" in reason for reason in failures.values()), failures


def test_a_text_that_metadata_describe_as_a_catalogue_does_is_a_record(tmp_path: Path) -> None:
    metadata = {"authors": ["Ann Lee"], "year": 2001, "pages": 90, "rating": 4.5}
    line = {"_id": "b1", "title": "Fog", "text": "Fog comes over the water.", "metadata": metadata}
    documents, _ = loaded(tmp_path / "b.jsonl", dumped(line))
    assert documents[0].is_record and documents[0].fields["year"] == 2001
    assert texts(documents[0])[-1] == "Fog comes over the water."
    passage = line | {"metadata": {"article": "Fog", "page": 3}}
    documents, _ = loaded(tmp_path / "p.jsonl", dumped(passage))
    assert not documents[0].is_record
