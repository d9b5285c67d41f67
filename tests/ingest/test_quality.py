"""The quality report finds what is wrong in texts and records, and nothing in healthy ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import write_files
from hypothesis import given
from hypothesis import strategies as st

from ingest.quality.report import quality_report
from ingest.quality.texts import (
    Lengths,
    QualityFinding,
    QualityReport,
    broken_words,
    find_garbled,
    measure_unended,
    new_part,
    other_signs,
)
from ingest.summary import Summary
from stores.sqlite.catalogue import Collection
from stores.store import Store

HEALTHY = {
    "en": "The walrus sleeps in the sea. Nobody wakes it before noon! Why should they? ",
    "ru": "Морж спит в море. Никто не будит его до полудня! Зачем бы им это? Он — зверь. ",
    "uk": "Морж спить у морі. Ніхто не будить його до полудня! Їжак іще спить. ВІДІЙДИ! ",
    "zh": "海象在海里睡觉。没有人在中午之前叫醒它!为什么要叫醒它呢?",
    "fr": "Le garçon s’éveilla à l’aube. « Où êtes-vous ? » demanda-t-il, déçu. Noël vint. ",
}
Report = Callable[..., QualityReport]


@pytest.fixture
def report(
    store: Store, collection: Collection, ingest: Callable[..., Summary], tmp_path: Path
) -> Report:
    """Return a function that ingests files and reports on them."""

    def make(files: dict[str, str | list[dict[str, Any]]], **values: Any) -> QualityReport:
        for name, content in files.items():
            if not isinstance(content, str):
                content = "\n".join(json.dumps(row) for row in content)
            write_files(tmp_path / "in", {name: content})
        values |= {"drop_repeats": True, "book_links": True}
        ingest(tmp_path / "in", **values)
        return quality_report(store.maintenance, collection)

    return make


def by_code(report: QualityReport) -> dict[str, QualityFinding]:
    return {finding.code: finding for finding in report.findings}


def record(name: str, **fields: Any) -> dict[str, Any]:
    row = {
        "_id": name,
        "title": f"Title of {name}",
        "authors": ["Ann Wick"],
        "year": 1900,
        "keywords": ["wax", "light"],
        "udc": "54",
        "language": "en",
        "annotation": f"About {name}. " + HEALTHY["en"] * 10,
    }
    return {key: value for key, value in (row | fields).items() if value is not None}


def test_nothing_is_found_in_a_healthy_library(report: Report) -> None:
    files: dict[str, Any] = {"books.jsonl": [record("b1", file="en.txt"), record("b2")]}
    files |= {f"{code}.txt": text * 12 for code, text in HEALTHY.items()}
    found = report(files)
    assert set(by_code(found)) <= {"text_without_book", "book_without_text"}
    assert (found.records, found.texts, found.linked, found.files) == (2, 5, 1, 6)
    assert found.kinds["annotation"] == 2 and found.kinds["record"] == 2
    assert found.annotation_lengths.count == 2 and found.chunks == sum(found.kinds.values())
    assert found.chunk_lengths.count == found.chunks


def test_records_that_lack_something_are_named(report: Report) -> None:
    rows = [
        record("b1", authors=None, annotation=None),
        record("b2", year=None, udc=None, keywords=None),
        record("b3", year=1200),
        record("b4", annotation="Short but there."),
        record("b5", title="Same", annotation="One. " * 60),
        record("b6", title="Same", annotation="Two. " * 800),
    ]
    found = by_code(report({"books.jsonl": rows}))
    examples = {code: finding.examples for code, finding in found.items()}
    assert examples["lacks_authors"] == ["b1"] == examples["lacks_annotation"]
    assert examples["lacks_year"] == examples["lacks_udc"] == examples["lacks_keywords"] == ["b2"]
    assert examples["bad_year"] == ["b3"]
    assert examples["same_work"] == ["b5, b6"]
    assert [e.split()[0] for e in examples["long_annotation"]] == ["b6"]
    assert "lacks_title" not in found
    assert (found["lacks_year"].count, found["lacks_year"].of) == (1, 6)


def test_what_is_left_out_or_repeated_is_named_with_the_reason(report: Report) -> None:
    same = HEALTHY["en"] * 10
    files = {
        "books.jsonl": [record("b1", annotation=same), record("b2", annotation=same)],
        "short.txt": "Too short.",
        "one.txt": HEALTHY["ru"] * 12,
        "two.txt": HEALTHY["ru"] * 12,
        "broken.jsonl": '{"_id": "x", "title": "X", "year": 1}\nnot json\n',
    }
    found = by_code(report(files, min_text_words=20))
    assert found["left_out"].examples == [
        "short.txt: 2 words; the profile keeps texts of 20 or more"
    ]
    assert found["repeated_annotations"].examples == ["b2 (as b1)"]
    assert found["repeated_passages"].examples[0] == "two.txt (as one.txt)"
    assert found["failed"].examples[0].startswith("broken.jsonl:2: ")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("long_sentence", "words without any end of a sentence " * 60),
        ("lone_words", "Torn. Apart. By. A. Scanner. Today. Again. Here. Now. " * 3),
        ("broken_words", "The informa- tion of a li- brary. More information. A library. " * 3),
        ("noise", "~~ 3 $ 7 || == 1 4 ;; 0 9 ## 2 % ^ 8 8 1 0 -- 5 4 3 : : 7 6 1 2 3 ab " * 4),
        (
            "headers",
            "".join(f"ANNUAL REPORT\n\nPage {n} says more. It ends.\n\n" for n in range(9)),
        ),
        ("lost_characters", HEALTHY["en"] * 4 + "A caf\ufffd is closed."),
        ("garbled", HEALTHY["en"] * 4 + "The cafÃ© isnâ€™t open."),
    ],
)
def test_damaged_texts_are_named(report: Report, code: str, text: str) -> None:
    found = by_code(report({"damaged.txt": text, "healthy.txt": HEALTHY["en"] * 12}))
    assert [e.split(" (")[0] for e in found[code].examples] == ["damaged.txt"]
    assert found[code].advice and 0 < found[code].share <= 1


@pytest.mark.parametrize(
    ("code", "encoding"), [("ru", "cp1251"), ("uk", "cp1251"), ("fr", "cp1252")]
)
def test_text_read_in_a_wrong_encoding_is_recognised(code: str, encoding: str) -> None:
    text = HEALTHY[code]
    assert find_garbled(text.encode().decode(encoding, "ignore"))
    assert not find_garbled(text) and not find_garbled(text.upper())


@given(st.text("абвгдежзийклмнопрстуфхцчшщъыьэюяіїєґАВІЇЄҐРСЯ -.,«»", max_size=200))
def test_cyrillic_text_is_not_taken_for_garbled(text: str) -> None:
    assert not find_garbled(text)


def test_halves_of_words_and_hyphens() -> None:
    text = "an informa-\ntion, two- and three-dimensional, a well-known li- brary, Anna- Maria"
    assert list(broken_words(text)) == ["information", "twoand", "library"]


def test_runs_without_an_end_go_on_in_the_next_passage() -> None:
    assert measure_unended("One. Two and more", 0) == (13, 13)
    assert measure_unended(" and more. End.", 13) == (13 + 10, 0)
    assert measure_unended("a\n\nb", 500) == (503, 1)
    assert measure_unended("一句话。", 0) == (4, 0)
    assert new_part("Begin. The same sentence.", "The same sentence. And on.") == " And on."
    assert new_part("Begin.", "Something else altogether.") == "Something else altogether."


def test_signs_that_are_no_letters() -> None:
    assert other_signs("") == 0 and other_signs("слово 字 नमस्ते") == 0
    assert other_signs("ab 12") == 0.5 and other_signs("1 2 3") == 1


@given(st.lists(st.integers(0, 5000), max_size=60))
def test_lengths_spread_as_they_are(values: list[int]) -> None:
    lengths = Lengths(100, 10)
    for value in values:
        lengths.add(value)
    spread = lengths.spread()
    assert spread.count == len(values) == sum(bar[2] for bar in spread.bars)
    if values:
        assert (spread.least, spread.most) == (min(values), max(values))
        assert spread.median == sorted(values)[(len(values) - 1) // 2]
        for first, last, count in spread.bars:
            assert count == sum(first <= value < last for value in values)
