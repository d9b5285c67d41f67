"""Reading a data set: what is accepted, and what each fault is told as."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from core.errors import CallerError
from evals.dataset import read_dataset, read_qrels

GOOD = '{"_id": "owl", "text": "An owl."}\n'
QUERY = '{"_id": "q1", "text": "owl?"}\n'
QREL = "q1\towl\t1\n"


def test_a_data_set_is_read_as_it_stands(dataset):
    folder = dataset(metadata={"q1": {"type": "factual"}, "q2": {"category": 3, "language": "en"}})
    found = read_dataset(folder)
    assert found.name == "tiny"
    assert [query.query_id for query in found.queries] == ["q1", "q2", "q3"]
    assert [query.query_id for query in found.unused] == ["q4"]
    assert found.queries[0].grades == {"owl": 2}
    assert [query.type for query in found.queries] == ["factual", "3", ""]
    assert found.queries[1].language == "en"
    assert found.document_ids == {"owl", "walrus", "candle", "harbour"}
    assert found.warnings == []


def test_packed_files_are_the_same(dataset):
    plain, packed = read_dataset(dataset()), read_dataset(dataset(name="packed", packed=True))
    assert plain.queries == packed.queries
    assert plain.document_ids == packed.document_ids


def test_limit_takes_the_first_judged_queries_in_the_order_of_the_file(dataset):
    queries = {"q4": "nobody judged this", "q3": "candle", "q1": "owl", "q2": "walrus"}
    found = read_dataset(dataset(queries=queries), limit=2)
    assert [query.query_id for query in found.queries] == ["q3", "q1"]
    assert [query.query_id for query in found.unused] == ["q4", "q2"]


@pytest.mark.parametrize(
    "text",
    [
        "q1\towl\t2\nq2\twalrus\t0\n",
        "query-id\tcorpus-id\tscore\nq1\towl\t2\nq2\twalrus\t0\n",
        "q1 0 owl 2\nq2 0 walrus 0\n",
        "q1\t0\towl\t2\n\nq2\tQ0\twalrus\t0",
        "\ufeffquery-id\tcorpus-id\tscore\r\nq1\towl\t2\r\nq2\twalrus\t0\r\n",
        "q1\towl\t2\nq1\towl\t2\nq2\twalrus\t0\n",
    ],
)
def test_three_and_four_columns_with_and_without_a_header(tmp_path, text):
    path = tmp_path / "qrels.tsv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_qrels(path) == {"q1": {"owl": 2}, "q2": {"walrus": 0}}


def test_the_archive_layout_of_judgments_is_found(dataset):
    folder = dataset(qrels_tsv=None)
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(QREL)
    assert len(read_dataset(folder).queries) == 1


def fault(folder: Path, **options: object) -> str:
    with pytest.raises(CallerError) as caught:
        read_dataset(folder, **options)
    assert caught.value.hint, "an error says what to do"
    return str(caught.value)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"corpus_jsonl": None}, ["needs corpus.jsonl"]),
        ({"queries_jsonl": None}, ["needs queries.jsonl"]),
        ({"qrels_tsv": None}, ["needs qrels.tsv"]),
        ({"corpus_jsonl": ""}, ["must hold documents"]),
        ({"corpus_jsonl": "\n\n"}, ["must hold documents"]),
        ({"corpus_jsonl": GOOD + '{"_id": \n'}, ["corpus.jsonl:2", "not valid JSON"]),
        ({"corpus_jsonl": GOOD + "[1]\n"}, ["corpus.jsonl:2", "object"]),
        ({"corpus_jsonl": GOOD + '{"text": "x"}\n'}, ["corpus.jsonl:2", "_id"]),
        ({"corpus_jsonl": GOOD + '{"_id": true, "text": "x"}\n'}, ["corpus.jsonl:2", "_id"]),
        ({"corpus_jsonl": GOOD + '{"_id": "\\ud800"}\n'}, ["corpus.jsonl:2", "_id"]),
        ({"corpus_jsonl": GOOD * 2}, ["corpus.jsonl:2", "already used at corpus.jsonl:1"]),
        ({"corpus_jsonl": GOOD.encode() + b'{"_id": "\xff"}\n'}, ["corpus.jsonl:2", "UTF-8"]),
        ({"corpus_jsonl": "[" * 100_000}, ["corpus.jsonl:1", "not valid JSON"]),
        ({"queries_jsonl": QUERY + "{\n"}, ["queries.jsonl:2", "not valid JSON"]),
        ({"queries_jsonl": QUERY * 2}, ["queries.jsonl:2", "already used"]),
        ({"queries_jsonl": '{"_id": "q1"}\n'}, ["queries.jsonl:1", "needs a text"]),
        ({"queries_jsonl": '{"_id": "q1", "text": " "}\n'}, ["queries.jsonl:1", "needs a text"]),
        ({"queries_jsonl": '{"_id": "q1", "text": 7}\n'}, ["queries.jsonl:1", "needs a text"]),
        ({"qrels_tsv": ""}, ["no query has a judged relevant document"]),
        ({"qrels_tsv": "q1\towl\t0\n"}, ["no query has a judged relevant document"]),
        ({"qrels_tsv": "q99\towl\t1\n"}, ["no query has a judged relevant document"]),
        ({"qrels_tsv": "q1\towl\n"}, ["qrels.tsv:1", "three columns"]),
        ({"qrels_tsv": "q1\t\t1\n"}, ["qrels.tsv:1", "three columns"]),
        ({"qrels_tsv": "q1\t0\towl\t1\tx\n"}, ["qrels.tsv:1", "three columns"]),
        ({"qrels_tsv": QREL + "q1\twalrus\t0.5\n"}, ["qrels.tsv:2", "whole number", "0.5"]),
        ({"qrels_tsv": QREL + "q1\towl\t2\n"}, ["qrels.tsv:2", "already judged 1"]),
        ({"qrels_tsv": "q1\towl\thigh\n"}, ["qrels.tsv:1", "whole number"]),
    ],
)
def test_each_fault_is_named_with_its_place(dataset, files, words):
    message = fault(dataset(**files))
    assert not [word for word in words if word not in message], message


def test_a_folder_in_place_of_a_file_is_told(dataset, tmp_path):
    folder = dataset(corpus_jsonl=None)
    (folder / "corpus.jsonl").mkdir()
    assert "needs corpus.jsonl" in fault(folder)
    for path in (folder, tmp_path / "nowhere"):
        with pytest.raises(CallerError, match="readable"):
            read_qrels(path)


def test_a_missing_folder_and_a_bad_limit(dataset, tmp_path):
    assert "folder" in fault(tmp_path / "nowhere")
    assert "at least 1" in fault(dataset(), limit=0)


def test_a_damaged_gzip_file_is_told(dataset):
    folder = dataset(corpus_jsonl=None)
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(GOOD.encode() * 500)[:40])
    assert "gzip" in fault(folder)


def test_documents_that_are_judged_and_missing(dataset):
    qrels = [("q1", "owl", 1), *((f"q{n}", f"gone{n}", 1) for n in range(1, 8))]
    folder = dataset(qrels=qrels)
    message = fault(folder)
    assert "every judged document must be in the corpus" in message
    assert "7 (gone1, gone2, gone3, gone4, gone5, …)" in message
    assert "--allow-missing" in message
    found = read_dataset(folder, allow_missing=True)
    assert any("7 (gone1" in warning for warning in found.warnings)
    assert found.queries[0].relevant == {"owl", "gone1"}


def test_judged_queries_that_are_missing_are_a_warning(dataset):
    qrels = [("q1", "owl", 1), ("lost", "owl", 1)]
    assert "lost" in read_dataset(dataset(qrels=qrels)).warnings[0]


def test_ids_may_be_numbers_and_hold_what_they_like(dataset):
    names = ["7", "a b", "ключ/1", "=x", "<b>"]
    corpus = "".join(
        json.dumps({"_id": 7 if n == "7" else n, "text": f"text of {n}"}) + "\n" for n in names
    )
    qrels = "".join(f"q1\t{name}\t1\n" for name in names)
    found = read_dataset(dataset(corpus_jsonl=corpus, qrels_tsv=qrels))
    assert found.document_ids == set(names) == found.queries[0].relevant
